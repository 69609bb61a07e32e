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
	"tessera/metrics"
	"tessera/show/figures"
)

func rankCommand() *cobra.Command {
	var f rankFlags
	cmd := &cobra.Command{
		Use:   "rank MODEL --ranks K,K,...",
		Short: "Choose the number of units of an auto-encoder, or of components of a PCA, an NMF, a mixture, k-means, ...",
		Long: "Measure numbers of components by cross-validation. Of a pca or an nmf, blocks of images and pixels are held out and predicted from\n" +
			"the others: choose the number with the lowest error. Of a gmm, a bmm or a factor_analysis, images are held out: choose the number with\n" +
			"the highest log-likelihood, or the lowest BIC. Of a kmeans, choose the highest silhouette, or the elbow of the error, where more centres\n" +
			"begin to help less. Of a matrix_factorisation, entries are held out: choose the number with the lowest error, from which the held-out\n" +
			"error rises while that of the fitted entries falls. Of an auto-encoder, entries of the images are hidden (dataset.hide, else a tenth), once for\n" +
			"each fold: choose the fewest units within one standard error of the lowest error. --figure draws the numbers. All other keys are those of\n" +
			"the model; no run is kept.",
		Example: "  tessera rank nmf --ranks 10,20,50,100 --set dataset.limit=2000\n  tessera rank pca --ranks 5,10,20,40,80 --folds 4\n" +
			"  tessera rank my-gmm --ranks 2,3,4,5,6 --folds 5 --figure rank.png\n" +
			"  tessera rank my-autoencoder --ranks 8,12,16,24,32 --folds 4",
		Args: one("model"),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			if f.figure != "" {
				if err := figures.CheckPath(f.figure); err != nil {
					return usagef("--figure: %v", err)
				}
			}
			measured, err := f.measure(cmd, args[0])
			if err != nil {
				return err
			}
			if f.figure != "" {
				if err := measured.draw(f.figure); err != nil {
					return err
				}
			}
			switch {
			case f.json && measured.densities != nil:
				return printJSON(cmd.OutOrStdout(), measured.densities)
			case f.json && measured.clusters != nil:
				return printJSON(cmd.OutOrStdout(), measured.clusters)
			case f.json && measured.entries != nil:
				return printJSON(cmd.OutOrStdout(), measured.entries)
			case f.json && measured.units != nil:
				return printJSON(cmd.OutOrStdout(), measured.units)
			case f.json:
				return printJSON(cmd.OutOrStdout(), measured.errors)
			case measured.densities != nil:
				return printDensities(cmd, measured.densities)
			case measured.clusters != nil:
				return printClusters(cmd, measured.clusters)
			case measured.entries != nil:
				return printEntries(cmd, measured.entries)
			case measured.units != nil:
				return printUnits(cmd, measured.units)
			}
			return printRanks(cmd, measured.errors)
		}),
	}
	f.add(cmd)
	addDataFlag(cmd, &f.data)
	cmd.Flags().IntSliceVar(&f.ranks, "ranks", nil, "numbers of components to compare")
	cmd.Flags().IntVar(&f.folds, "folds", 2, "folds of the images, and of the pixels or entries")
	cmd.Flags().StringVar(&f.figure, "figure", "", "also draw the numbers: a .png, .svg or .pdf file")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// rankFlags contains the flags of the command rank.
type rankFlags struct {
	modelFlags
	ranks  []int
	folds  int
	json   bool
	figure string
}

// ranked contains the measurements for one kind of model: errors for a factorisation, densities for a density, clusters for
// k-means, entries for a matrix, units for an auto-encoder. The other lists are nil.
type ranked struct {
	errors    []baselines.RankError
	densities []baselines.RankDensity
	clusters  []baselines.RankClusters
	entries   []baselines.RankEntries
	units     []rankUnits
}

// draw writes the figure of the measurements.
func (r ranked) draw(path string) error {
	var names []string
	var line figures.SweptLine
	point := func(components int, deviation float64, values ...metrics.Value) {
		if names == nil {
			for _, v := range values {
				names = append(names, v.Name)
			}
		}
		p := figures.SweptPoint{X: float64(components), Mean: values, Deviation: metrics.Values{{Name: values[0].Name, Number: deviation}}}
		line.Points = append(line.Points, p)
	}
	value := func(name string, number float64) metrics.Value { return metrics.Value{Name: name, Number: number} }
	silhouette := func(s *float64) metrics.Value {
		v := metrics.NotApplicable("one cluster")
		if s != nil {
			v = metrics.Number(*s)
		}
		v.Name = "silhouette"
		return v
	}
	for _, e := range r.errors {
		point(e.Components, e.Deviation, value("held-out mse", e.MSE))
	}
	mixture := slices.ContainsFunc(r.densities, func(d baselines.RankDensity) bool { return d.Silhouette != nil })
	for _, d := range r.densities {
		values := []metrics.Value{value("held-out log-likelihood", d.LogLikelihood), value("bic", d.BIC)}
		if mixture {
			values = append(values, silhouette(d.Silhouette))
		}
		point(d.Components, d.Deviation, values...)
	}
	for _, c := range r.clusters {
		point(c.Components, c.Deviation, value("held-out mse", c.HeldOut), value("mse of all samples", c.MSE), silhouette(c.Silhouette))
	}
	for _, e := range r.entries {
		point(e.Components, e.Deviation, value("held-out rmse", e.HeldOut), value("rmse of fitted entries", e.Fitted))
	}
	for _, u := range r.units {
		point(u.Components, u.Deviation, value("held-out mse", u.HeldOut), value("mse of the other entries", u.Fitted), value("units in use", u.Used))
	}
	f, err := figures.Swept("components", names, []figures.SweptLine{line})
	if err != nil {
		return usagef("--figure: %v", err)
	}
	return f.Save(path)
}

// measure cross-validates the named model.
func (f *rankFlags) measure(cmd *cobra.Command, name string) (measured ranked, err error) {
	var first []string // replaces the declared number of components, which may not suit the data
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
	if len(f.ranks) == 0 {
		return measured, usagef("rank: --ranks is missing: give numbers of components, such as --ranks 5,10,20")
	}
	if m.Baseline == nil {
		measured.units, err = f.measureUnits(cmd, m)
		return measured, err
	}
	method, ok := m.Baseline.(baselines.Method)
	density := slices.Contains([]string{"gmm", "bmm", "factor_analysis"}, m.Kind)
	if !ok || m.Kind != "pca" && m.Kind != "nmf" && m.Kind != "kmeans" && m.Kind != "matrix_factorisation" && !density {
		return measured, usagef(`rank: %s is of kind %q: want an auto-encoder, or a model of kind "pca", "nmf", "kmeans", "gmm", "bmm", "factor_analysis" or "matrix_factorisation"`, m.Name, m.Kind)
	}
	images, err := fitted(cmd.Context(), m, data.SearchDirs(f.data))
	if err != nil {
		return measured, err
	}
	report := func(what string, all int) func(int) {
		return func(done int) { fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s %d of %d\n", what, done, all) }
	}
	switch {
	case m.Kind == "kmeans":
		measured.clusters, err = baselines.CrossValidateClusters(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed,
			report("fit", (f.folds+1)*len(f.ranks)))
	case m.Kind == "matrix_factorisation":
		measured.entries, err = baselines.CrossValidateEntries(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed, report("fit", f.folds*len(f.ranks)))
	case density:
		measured.densities, err = baselines.CrossValidateDensity(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed,
			report("fit", (f.folds+1)*len(f.ranks)))
	default:
		measured.errors, err = baselines.BiCrossValidate(cmd.Context(), method, images, f.ranks, f.folds, m.Train.Seed, report("block", f.folds*f.folds))
	}
	var refused *data.Error
	if err == nil || cmd.Context().Err() != nil || errors.As(err, &refused) || errors.Is(err, baselines.ErrDiverged) {
		return measured, err
	}
	return measured, usagef("rank: %v", err)
}

// fitted loads the images to which the model would be fitted.
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

func printEntries(cmd *cobra.Command, list []baselines.RankEntries) error {
	best := slices.MinFunc(list, func(a, b baselines.RankEntries) int { return cmp.Compare(a.HeldOut, b.HeldOut) })
	t := newTable(cmd.OutOrStdout())
	t.row("components", "held-out rmse", "standard error", "rmse of fitted entries", "")
	for _, e := range list {
		mark := ""
		if e == best {
			mark = "least"
		}
		t.row(e.Components, e.HeldOut, e.Deviation, e.Fitted, mark)
	}
	return t.flush()
}

func printDensities(cmd *cobra.Command, list []baselines.RankDensity) error {
	most := slices.MaxFunc(list, func(a, b baselines.RankDensity) int { return cmp.Compare(a.LogLikelihood, b.LogLikelihood) })
	least := slices.MinFunc(list, func(a, b baselines.RankDensity) int { return cmp.Compare(a.BIC, b.BIC) })
	apart := highest(len(list), func(i int) *float64 { return list[i].Silhouette })
	t := newTable(cmd.OutOrStdout())
	head := []any{"components", "held-out log-likelihood", "standard error", "bic"}
	if apart >= 0 {
		head = append(head, "silhouette")
	}
	t.row(append(head, "")...)
	for i, d := range list {
		row := []any{d.Components, d.LogLikelihood, d.Deviation, d.BIC}
		if apart >= 0 {
			row = append(row, known(d.Silhouette))
		}
		var marks []string
		if d == most {
			marks = append(marks, "highest likelihood")
		}
		if d == least {
			marks = append(marks, "least bic")
		}
		if i == apart {
			marks = append(marks, "highest silhouette")
		}
		t.row(append(row, strings.Join(marks, ", "))...)
	}
	return t.flush()
}

func printClusters(cmd *cobra.Command, list []baselines.RankClusters) error {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b baselines.RankClusters) int { return cmp.Compare(a.Components, b.Components) })
	var x, y []float64
	for _, c := range list {
		x, y = append(x, float64(c.Components)), append(y, c.MSE)
	}
	elbow, apart := baselines.Elbow(x, y), highest(len(list), func(i int) *float64 { return list[i].Silhouette })
	t := newTable(cmd.OutOrStdout())
	t.row("components", "mse", "held-out mse", "standard error", "silhouette", "")
	for i, c := range list {
		var marks []string
		if i == elbow {
			marks = append(marks, "elbow")
		}
		if i == apart {
			marks = append(marks, "highest silhouette")
		}
		t.row(c.Components, c.MSE, c.HeldOut, c.Deviation, known(c.Silhouette), strings.Join(marks, ", "))
	}
	return t.flush()
}

// highest returns the index of the largest of n numbers, some of which may be unknown (nil); -1 if all are unknown.
func highest(n int, of func(i int) *float64) int {
	best := -1
	for i := range n {
		if v := of(i); v != nil && (best < 0 || *v > *of(best)) {
			best = i
		}
	}
	return best
}

// known returns a number for a table, "-" if it is unknown.
func known(v *float64) any {
	if v == nil {
		return "-"
	}
	return *v
}
