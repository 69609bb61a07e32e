package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tessera/apps/show/figures"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
)

func init() {
	Commands.Register("rank", "Choose the number of units of an auto-encoder, or of components of a PCA, an NMF, a mixture, k-means, ...", func() Command {
		return &rankCommand{threadFlags: allThreads()}
	})
}

type rankCommand struct {
	Model string `arg:"MODEL" is:"model" doc:"the name of a model"`
	modelFlags
	threadFlags
	jsonFlag
	Epochs int    `flag:"epochs" want:"> 0" doc:"number of epochs of an auto-encoder; short for --set train.epochs=N"`
	Ranks  []int  `flag:"ranks" want:"> 0" doc:"numbers of components to compare" default:"from a quarter of the declared number to twice as many"`
	Seeds  int    `flag:"seeds" want:">= 3" doc:"fits of an NMF from different random starts, whose consensus is measured in place of held-out blocks"`
	Folds  int    `flag:"folds" want:">= 2" doc:"folds of the samples, and of the values or entries" default:"5 of the entries of a matrix_factorisation, which half of them would not determine, otherwise 2"`
	Figure string `flag:"figure" is:"output" doc:"also draw the numbers: a .png, .svg or .pdf file"`
}

func (f *rankCommand) Help() Help {
	return Help{
		Long: "Measure numbers of components by cross-validation. Of a pca or an nmf, blocks of images and pixels are held out and predicted from\n" +
			"the others: choose the fewest components within one standard error of the lowest error. Of a gmm, a bmm or a factor_analysis, images are held out: choose the number with\n" +
			"the highest log-likelihood, or the lowest BIC. Of a kmeans, choose the highest silhouette, or the elbow of the error, where more centres\n" +
			"begin to help less. Of a matrix_factorisation, entries are held out: choose the fewest within one standard error, from which the held-out\n" +
			"error rises while that of the fitted entries falls. Of an auto-encoder, entries of the images are hidden (dataset.hide, else a tenth), once for\n" +
			"each fold: choose the fewest units within one standard error. --figure draws the numbers\n" +
			"and marks these choices. With --seeds fits of an NMF from random starts are compared: choose a large number whose parts are stable; the table of parts says\n" +
			"in how many fits each of the most stable number is, and its largest columns. Fits that end in different local minima hide the number: give an nmf init=random and restarts. All other keys are those of\n" +
			"the model; no run is kept.",
		Examples: []string{"tessera rank nmf --ranks 10,20,50,100 --set dataset.limit=2000", "tessera rank pca --ranks 5,10,20,40,80 --folds 4",
			"tessera rank my-nmf --ranks 5,10,15,20 --seeds 20", "tessera rank my-gmm --ranks 2,3,4,5,6 --folds 5 --figure rank.png", "tessera rank my-autoencoder --ranks 8,12,16,24,32 --folds 4"},
	}
}

func (f *rankCommand) Do(cmd *Call) error {
	if f.Figure != "" {
		if err := errors.Join(figures.CheckPath(f.Figure), outputFile(f, f.Figure)); err != nil {
			return usagef("--figure: %v", err)
		}
	}
	measured, err := f.measure(cmd, f.Model)
	if err != nil {
		return err
	}
	warn(cmd, measured.atEdges()...)
	if err := cmd.Show(measured.document(), f.JSON); err != nil {
		return err
	}
	if f.Figure == "" {
		return nil
	}
	return measured.draw(f.Figure) // after the table, which no problem of the figure takes away
}

// ladder returns numbers of components from a quarter of the declared one to twice as many, up to most.
func ladder(declared, most int) (list []int) {
	for _, quarters := range []int{1, 2, 3, 4, 6, 8} {
		list = append(list, max(1, min(most, declared*quarters/4)))
	}
	return slices.Compact(list)
}

// training returns the settings of the flags.
func (f *rankCommand) training() []string {
	if f.Epochs == 0 {
		return nil
	}
	return []string{fmt.Sprintf("train.epochs=%d", f.Epochs)}
}

// measure cross-validates the named model.
func (f *rankCommand) measure(cmd *Call, name string) (*ranking, error) {
	options, err := f.options(f.Data)
	if err != nil {
		return nil, err
	}
	var first []string // replaces the declared number of components, which may not suit the data
	if len(f.Ranks) > 0 {
		first = []string{fmt.Sprintf("components=%d", f.Ranks[0])}
	}
	m, err := f.model(name, append(first, f.training()...)...)
	if err != nil { // also of a model without components
		var other error
		if m, other = f.model(name, f.training()...); other != nil {
			return nil, f.noEpochs(name, f.Epochs, err)
		}
	}
	if f.Folds == 0 {
		f.Folds = 2
		if m.Kind == "matrix_factorisation" {
			f.Folds = 5
		}
	}
	if m.Baseline == nil && f.Seeds > 0 {
		return nil, usagef("rank: --seeds compares fits of an NMF, and %s is an auto-encoder: leave it out", m.Name)
	}
	if m.Baseline == nil {
		units, err := f.measureUnits(cmd, m, options)
		if err != nil {
			return nil, err
		}
		return ranked(units, "units"), nil
	}
	images, err := fitted(cmd.Context(), m, data.SearchDirs(f.Data))
	if err != nil {
		return nil, err
	}
	report := func(done, all int) { counting(cmd.ErrOrStderr(), "step", all)(done) }
	if f.Seeds > 0 {
		return f.consensus(cmd, m, images, report)
	}
	if len(f.Ranks) == 0 {
		f.Ranks = ladder(m.Baseline.Describe().Units, classical.MostRanked(m.Baseline, images, f.Folds))
	}
	of, err := classical.Rank(cmd.Context(), m.Baseline, images, f.Ranks, f.Folds, m.Train.Seed, report)
	if err != nil {
		return nil, rankError(cmd.Context(), m, err)
	}
	return ranked(of, "components"), nil
}

// rankError returns an error of the settings as one of usage.
func rankError(ctx context.Context, m *config.Model, err error) error {
	if _, ok := errors.AsType[*data.Error](err); ctx.Err() != nil || ok || errors.Is(err, classical.ErrDiverged) {
		return err
	}
	return usagef("rank: %s, of kind %q: %v", m.Name, m.Kind, err)
}

// consensus compares fits from different random starts.
func (f *rankCommand) consensus(cmd *Call, m *config.Model, images *data.Images, report func(done, all int)) (*ranking, error) {
	if len(f.Ranks) == 0 {
		f.Ranks = ladder(m.Baseline.Describe().Units, images.Len())
	}
	of, err := classical.Consensus(cmd.Context(), m.Baseline, images, f.Ranks, f.Seeds, m.Train.Seed, report)
	if err != nil {
		return nil, rankError(cmd.Context(), m, err)
	}
	names := images.ValueNames()
	if names == nil && len(images.Shape) == 1 {
		for j := range images.Pixels() {
			names = append(names, strconv.Itoa(j))
		}
	}
	return ranked(of, "components").named(names), nil
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
