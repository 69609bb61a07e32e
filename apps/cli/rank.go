package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera/baselines"
	"tessera/config"
	"tessera/data"
)

func rankCommand() *cobra.Command {
	var f rankFlags
	cmd := &cobra.Command{
		Use:   "rank MODEL --ranks K,K,...",
		Short: "Choose the number of components of a PCA, an NMF, a mixture or a factor analysis",
		Long: "Measure numbers of components by cross-validation. Of a pca or an nmf, blocks of images and pixels are held out and predicted from\n" +
			"the others: choose the number with the lowest error. Of a gmm, a bmm or a factor_analysis, images are held out: choose the number with\n" +
			"the highest log-likelihood, or the lowest BIC. All other keys are those of the model; no run is kept.",
		Example: "  tessera rank nmf --ranks 10,20,50,100 --set dataset.limit=2000\n  tessera rank pca --ranks 5,10,20,40,80 --folds 4\n" +
			"  tessera rank my-gmm --ranks 2,3,4,5,6 --folds 5",
		Args: one("model"),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			measured, err := f.measure(cmd, args[0])
			switch {
			case err != nil:
				return err
			case f.json && measured.densities != nil:
				return printJSON(cmd.OutOrStdout(), measured.densities)
			case f.json:
				return printJSON(cmd.OutOrStdout(), measured.errors)
			case measured.densities != nil:
				return printDensities(cmd, measured.densities)
			}
			return printRanks(cmd, measured.errors)
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

// ranked is what was measured: one of the two.
type ranked struct {
	errors    []baselines.RankError
	densities []baselines.RankDensity
}

// measure cross-validates the model of that name.
func (f *rankFlags) measure(cmd *cobra.Command, name string) (measured ranked, err error) {
	var first []string // the declared number of components need not suit the data
	if len(f.ranks) > 0 {
		first = []string{fmt.Sprintf("components=%d", f.ranks[0])}
	}
	m, err := f.model(name, first...)
	if err != nil { // also of a model without components
		var other error
		if m, other = f.model(name); other != nil {
			return measured, err
		}
	}
	method, ok := m.Baseline.(baselines.Method)
	density := slices.Contains([]string{"gmm", "bmm", "factor_analysis"}, m.Kind)
	if !ok || m.Kind != "pca" && m.Kind != "nmf" && !density {
		return measured, usagef(`rank: %s is of kind %q: want a model of kind "pca", "nmf", "gmm", "bmm" or "factor_analysis"`, m.Name, m.Kind)
	}
	if len(f.ranks) == 0 {
		return measured, usagef("rank: --ranks is missing: give numbers of components, such as --ranks 5,10,20")
	}
	images, err := fitted(cmd.Context(), m, data.SearchDirs(f.data))
	if err != nil {
		return measured, err
	}
	report := func(what string, all int) func(int) {
		return func(done int) { fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s %d of %d\n", what, done, all) }
	}
	if density {
		measured.densities, err = baselines.CrossValidateDensity(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed,
			report("fit", (f.folds+1)*len(f.ranks)))
	} else {
		measured.errors, err = baselines.BiCrossValidate(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed, report("block", f.folds*f.folds))
	}
	var refused *data.Error
	if err == nil || cmd.Context().Err() != nil || errors.As(err, &refused) || errors.Is(err, baselines.ErrDiverged) {
		return measured, err
	}
	return measured, usagef("rank: %v", err)
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

func printDensities(cmd *cobra.Command, list []baselines.RankDensity) error {
	most := slices.MaxFunc(list, func(a, b baselines.RankDensity) int { return cmp.Compare(a.LogLikelihood, b.LogLikelihood) })
	least := slices.MinFunc(list, func(a, b baselines.RankDensity) int { return cmp.Compare(a.BIC, b.BIC) })
	t := newTable(cmd.OutOrStdout())
	t.row("components", "held-out log-likelihood", "standard error", "bic", "")
	for _, d := range list {
		var marks []string
		if d == most {
			marks = append(marks, "highest likelihood")
		}
		if d == least {
			marks = append(marks, "least bic")
		}
		t.row(d.Components, d.LogLikelihood, d.Deviation, d.BIC, strings.Join(marks, ", "))
	}
	return t.flush()
}
