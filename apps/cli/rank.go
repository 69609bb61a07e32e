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
	var f rankFlags
	cmd := &cobra.Command{
		Use:   "rank MODEL --ranks K,K,...",
		Short: "Choose the number of components of a PCA or an NMF",
		Long: "Measure numbers of components by bi-cross-validation: blocks of images and pixels are held out and predicted from the others.\n" +
			"Choose the number with the lowest error. All other keys are those of the model; no run is kept.",
		Example: "  tessera rank nmf --ranks 10,20,50,100 --set dataset.limit=2000\n  tessera rank pca --ranks 5,10,20,40,80 --folds 4",
		Args:    one("model"),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			errs, err := f.measure(cmd, args[0])
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), errs)
			}
			return printRanks(cmd, errs)
		}),
	}
	f.add(cmd)
	addDataFlag(cmd, &f.data)
	cmd.Flags().IntSliceVar(&f.ranks, "ranks", nil, "numbers of components to compare")
	cmd.Flags().IntVar(&f.folds, "folds", 2, "folds of the images, and of the pixels")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// rankFlags are the flags of rank.
type rankFlags struct {
	modelFlags
	ranks []int
	folds int
	json  bool
}

// measure cross-validates the model of that name.
func (f *rankFlags) measure(cmd *cobra.Command, name string) ([]baselines.RankError, error) {
	var first []string // the declared number of components need not suit the data
	if len(f.ranks) > 0 {
		first = []string{fmt.Sprintf("components=%d", f.ranks[0])}
	}
	m, err := f.model(name, first...)
	if err != nil { // also of a model without components
		var other error
		if m, other = f.model(name); other != nil {
			return nil, err
		}
	}
	method, ok := m.Baseline.(baselines.Method)
	if !ok || m.Kind != "pca" && m.Kind != "nmf" {
		return nil, usagef(`rank: %s is of kind %q: want a model of kind "pca" or "nmf"`, m.Name, m.Kind)
	}
	if len(f.ranks) == 0 {
		return nil, usagef("rank: --ranks is missing: give numbers of components, such as --ranks 5,10,20")
	}
	images, err := fitted(cmd.Context(), m, data.SearchDirs(f.data))
	if err != nil {
		return nil, err
	}
	report := func(done int) { fmt.Fprintf(cmd.ErrOrStderr(), "tessera: block %d of %d\n", done, f.folds*f.folds) }
	errs, err := baselines.BiCrossValidate(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed, report)
	var refused *data.Error
	if err == nil || cmd.Context().Err() != nil || errors.As(err, &refused) || errors.Is(err, baselines.ErrDiverged) {
		return errs, err
	}
	return nil, usagef("rank: %v", err)
}

// fitted loads the images that the model would be fitted to.
func fitted(ctx context.Context, m *config.Model, dirs data.Dirs) (*data.Images, error) {
	set, err := data.Load(ctx, m.Dataset.Source, dirs, m.Dataset.Need())
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
