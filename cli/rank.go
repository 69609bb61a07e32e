package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"tessera/baselines"
	"tessera/config"
	"tessera/data"
)

func rankCommand() *cobra.Command {
	var f modelFlags
	var ranks []int
	var folds int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rank MODEL --ranks K,K,...",
		Short: "Choose the number of components of a PCA or an NMF",
		Long: "Measure numbers of components by bi-cross-validation: blocks of images and pixels are held out and predicted from the others.\n" +
			"The number with the least error is the choice. Everything but components is as the model declares it; nothing is kept.",
		Example: "  tessera rank nmf --ranks 10,20,50,100 --set dataset.limit=2000\n  tessera rank pca --ranks 5,10,20,40,80 --folds 4",
		Args:    one("model"),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			m, err := f.model(args[0])
			if err != nil {
				return err
			}
			method, ok := m.Baseline.(baselines.Method)
			if !ok || m.Kind != "pca" && m.Kind != "nmf" {
				return usagef(`rank: %s is of kind %q: want a model of kind "pca" or "nmf"`, m.Name, m.Kind)
			}
			if len(ranks) == 0 {
				return usagef("rank: --ranks is missing: give numbers of components, such as --ranks 5,10,20")
			}
			images, err := fitted(cmd.Context(), m, data.SearchDirs(f.data))
			if err != nil {
				return err
			}
			report := func(done int) { fmt.Fprintf(cmd.ErrOrStderr(), "tessera: block %d of %d\n", done, folds*folds) }
			errs, err := baselines.BiCrossValidate(cmd.Context(), method, images, ranks, folds, m.Train.Seed, report)
			var refused *data.Error
			switch {
			case cmd.Context().Err() != nil, errors.As(err, &refused), errors.Is(err, baselines.ErrDiverged):
				return err
			case err != nil:
				return usagef("rank: %v", err)
			case asJSON:
				return printJSON(cmd.OutOrStdout(), errs)
			}
			return printRanks(cmd, errs)
		}),
	}
	f.add(cmd)
	addDataFlag(cmd, &f.data)
	cmd.Flags().IntSliceVar(&ranks, "ranks", nil, "numbers of components to compare")
	cmd.Flags().IntVar(&folds, "folds", 2, "folds of the images, and of the pixels")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// fitted loads the images that the model would be fitted to.
func fitted(ctx context.Context, m *config.Model, dirs data.Dirs) (*data.Images, error) {
	set, err := m.Dataset.Source.Load(ctx, dirs, m.Dataset.Need())
	if err != nil {
		return nil, err
	}
	splits, err := set.Split(m.Dataset.Selection, m.Train.Seed)
	return splits.Fit, err
}

func printRanks(cmd *cobra.Command, errs []baselines.RankError) error {
	best := slices.MinFunc(errs, func(a, b baselines.RankError) int { return cmp.Compare(a.MSE, b.MSE) })
	t := newTable(cmd.OutOrStdout())
	t.row("components", "held-out mse", "standard error", "")
	for _, e := range errs {
		mark := ""
		if e == best {
			mark = "least"
		}
		t.row(e.Components, e.MSE, e.Deviation, mark)
	}
	return t.flush()
}
