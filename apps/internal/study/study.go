// Package study compares the results of sweeps with the published results of the study: a page of tables and figures for
// each of its tables. The pages of the other sweeps that the documentation reports compare their settings with each other. The
// package reads the results and the runs of a sweep and does not train.
package study

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/docs"
	"tessera/internal/lists"
	"tessera/internal/sweep"
)

// Reproduction is one table or figure of the study that can be reproduced by a sweep, or a table of another sweep that a page of
// docs/reproduction reports.
type Reproduction struct {
	Name    string   // name of the reproduction and of its sweep in models.toml
	Title   string   // title of the page
	About   string   // the compared models
	Sources []string // sources of published rows; rows of the first source are listed even without a trial
	Dataset string   // data set of the published rows
	SVM     bool     // the study classified the codes
	Deep    bool     // the published curves are those of deep encoders
	Figures []string // names of the figures on the page; nil for all
	Columns []string // metrics of a page without published rows, whose one table has them as columns; nil for a comparison
	With    []string // settings of metrics, as KEY=VALUE of --with; nil for their defaults
	Drawing *Drawing // of a page of generative models; nil for none
	File    string   // file of [docs.Declarations] with the sweep and its models; "" for a sweep of models.toml
	Needs   string   // how to make the files of its images; "" for data that need no such step
}

var reproductions = []Reproduction{
	{
		Name: "table1", Title: "Table 1: shallow auto-encoders on Fashion-MNIST", Dataset: "fashion-mnist", SVM: true,
		About: "Table 1 of the study: sparse NMF and shallow auto-encoders of 100 units, 500 epochs of Adadelta. The last rows " +
			"are baselines, measured in the same way.",
		Sources: []string{"table 1", "notebook"},
	},
	{
		Name: "table2", Title: "Table 2: asymmetric auto-encoders on Fashion-MNIST", Dataset: "fashion-mnist", SVM: true, Deep: true,
		About: "Table 2 of the study: a convolutional encoder, a shallow decoder of 100 atoms. The study trained for 500 epochs; our " +
			"epochs are in the table.",
		Sources: []string{"table 2", "notebook"},
	},
	{
		Name: "figure8", Title: "Figure 8: four metrics over p and β", Dataset: "fashion-mnist",
		About:   "Figure 8 of the study: the shallow non-negative auto-encoder with four targets p and eight weights β of the KL penalty. The published values are read off the printed curves, to about 1 %.",
		Sources: []string{"figure 8"}, Figures: []string{"curves", "hoyer-scatter", "mse-scatter", "penalties"},
	},
	{
		Name: "figure8-deep", Title: "Figure 8: four metrics over p and β, with the convolutional encoder", Dataset: "fashion-mnist", Deep: true,
		About: "The second half of figure 8 of the study: the asymmetric auto-encoder with four targets p and eight weights β of the KL penalty. The study trained " +
			"for 500 epochs; our epochs are in the table. The published values are read off the printed curves, to about 1 %.",
		Sources: []string{"figure 8 deep"}, Figures: []string{"curves", "hoyer-scatter", "mse-scatter", "penalties"},
	},
	{
		Name: "mnist", Title: "MNIST: results from the author's notebooks of 2019", Dataset: "mnist",
		About: "Results on handwritten digits from the author's notebooks for the paper of 2019. The study trained for 500 epochs; our epochs " +
			"are in the table.",
		Sources: []string{"notebook"}, Figures: []string{"reconstructions", "codes", "atoms", "max-approximations", "training", "pareto"},
	},
	{
		Name: "shipped", Title: "Shipped models of images", Dataset: "fashion-mnist",
		About: "The shipped models that learn from whole images and need no other run, on the same small budget; `images` says how many images each was fitted to. " +
			"docs/reproduction/shipped.md says why the others are missing.",
		Columns: []string{"mse", "hoyer_contribution", "max_approx", "useful_units", "knn_accuracy", "linear_probe_accuracy", "accuracy"},
		Figures: []string{},
	},
	tabulated("parts", "surpass.md", "Additive parts of clothes and digits", nil,
		"mse", "hoyer_contribution", "l0", "max_approx", "additivity_lost", "useful_units", "dead_units"),
	tabulated("sparse-nmf-front", "surpass.md", "The front of sparse NMF", nil, "mse", "hoyer_contribution", "max_approx"),
	tabulated("known-parts", "known-parts.md", "Parts that are known: swimmer and bars", nil, "parts_found", "parts_cosine", "mse"),
	tabulated("known-parts-more", "known-parts.md", "Parts that are known: coloured swimmers, notes, topics", nil, "parts_found", "parts_cosine", "mse"),
	tabulated("penalty-or-projection", "penalty-or-projection.md", "Penalty or projection? Swimmer and bars", nil, penaltyColumns...),
	tabulated("penalty-or-projection-images", "penalty-or-projection.md", "Penalty or projection? Images", nil, penaltyColumns...),
	tabulated("penalty-or-projection-start", "penalty-or-projection.md", "Penalty or projection? Images, two starts", nil, penaltyColumns...),
	tabulated("regularisers", "regularisers.md", "Regularisers: the fronts", nil, "mse", "hoyer_contribution", "useful_units"),
	tabulated("regularisers-equal", "regularisers.md", "Regularisers at equal sparsity", nil,
		"mse", "hoyer_contribution", "useful_units", "l0", "max_approx", "atom_area"),
	ofPage("regularisers-zero", "regularisers", "Regularisers: the fronts at p = 0", "mse", "hoyer_contribution", "useful_units"),
	ofPage("regularisers-zero-equal", "regularisers", "Regularisers at p = 0, at equal sparsity", "mse", "hoyer_contribution", "useful_units"),
	tabulated("l1-or-l2", "regularisers.md", "L1 or L2 penalty of activations", nil, "mse", "active_units", "hoyer_contribution", "useful_units", "dead_units"),
	tabulated("prototypes", "prototypes.md", "Atoms of small targets and cluster means", nil, "mse", "hoyer_contribution", "useful_units"),
	tabulated("capacity", "capacity.md", "Number of units and depth of the encoder", nil, "mse", "useful_units"),
	tabulated("capacity-baselines", "capacity.md", "Number of units of NMF and PCA", nil, "mse", "useful_units"),
	needing(ofPage("letters", "surpass", "Additive parts of letters", "mse", "hoyer_contribution", "l0", "max_approx", "useful_units"),
		"`python3 internal/tools/bench/glyphs.py FONTS glyphs` makes the folder glyphs from the fonts in the folder FONTS (docs/reproduction/surpass.md)"),
	tabulated("parts-few", "surpass.md", "Additive parts of fewer images", nil, "mse", "hoyer_contribution", "max_approx", "useful_units"),
	tabulated("ncae", "ncae.md", "NCAE of clothes", nil, "mse", "hoyer", "hoyer_atoms", "max_approx", "negative_weights", "dead_units"),
	tabulated("parts-vae", "parts-vae.md", "Parts with a distribution of codes", nil, "elbo", "iwae", "mse", "hoyer_contribution", "max_approx", "dead_units"),
	ofPage("parts-vae-settings", "parts-vae", "Parts with a distribution of codes: settings", "elbo", "dead_units"),
	planted("identifiability", "Planted parts found, small images"),
	planted("identifiability-swimmer", "Parts of swimmers found"),
	planted("identifiability-large", "Planted parts found, large images"),
	drawn("generative", "Generative models of clothes"),
	drawn("generative-digits", "Generative models of digits"),
	drawn("generative-indices", "Images drawn from the indices of a code book"),
	ofPage("dsd-codes", "dsd-codes", "Dense-sparse-dense codes", "mse", "hoyer_contribution", "max_approx", "active_units", "useful_units"),
	ofPage("dsd-codes-settings", "dsd-codes", "Dense-sparse-dense codes: settings", "mse", "hoyer_contribution", "max_approx"),
	ofPage("weight-decay", "course", "Weight decay with and without batch normalisation", "accuracy", "nll", "weight_norm"),
	ofPage("few-images", "course", "A transformer and convolutions on few and many images", "accuracy", "nll"),
	ofPage("joint-embeddings", "joint-embeddings", "Joint embeddings", embeddingColumns...),
	ofPage("joint-embeddings-digits", "joint-embeddings", "Joint embeddings of digits", embeddingColumns...),
	ofPage("joint-embeddings-weight", "joint-embeddings", "Joint embeddings: the weight of the contrastive term",
		"linear_probe_accuracy", "knn_cosine_accuracy", "alignment", "mse"),
	ofPage("joint-embeddings-transformers", "joint-embeddings", "Joint embeddings: transformers",
		"linear_probe_accuracy", "knn_cosine_accuracy", "accuracy", "code_spread", "effective_rank"),
	needing(ofPage("patches", "patches", "Patches of photographs", patchColumns...), photographs),
	ofPage("patches-clothes", "patches", "Patches of clothes", patchColumns...),
	needing(ofPage("patches-weight", "patches", "Patches of photographs: the weight of the l1 norm", "gabor_fit", "gabor_atoms", "mse"), photographs),
	tabulated("deep-belief", "deep-belief.md", "Boltzmann machines of digits and clothes", []string{"temperatures=1000"},
		"rbm_ais", "rbm_ais_error", "mse", "hoyer", "hoyer_atoms", "useful_units"),
	tabulated("deep-belief-bars", "deep-belief.md", "Boltzmann machines of 3 x 3 bars", []string{"temperatures=1000"},
		"rbm_exact", "rbm_ais", "rbm_ais_error", "mse", "hoyer"),
	tabulated("deep-belief-patches", "deep-belief.md", "Boltzmann machines of patches", nil, "gabor_atoms", "gabor_fit", "l0", "hoyer", "mse", "atom_radius"),
}

// penaltyColumns are the columns of the pages that compare penalties of negative weights with their projection.
var penaltyColumns = []string{"mse", "parts_found", "parts_cosine", "negative_weights", "negative_share", "additivity_lost", "max_approx", "atom_area",
	"useful_units", "hoyer_contribution", "dead_units"}

var embeddingColumns = []string{"linear_probe_accuracy", "knn_cosine_accuracy", "code_spread", "effective_rank", "uniformity", "alignment", "mse",
	"hoyer_contribution", "additivity_lost"}

var patchColumns = []string{"gabor_atoms", "gabor_fit", "l0", "explained_variance", "mse", "hoyer_contribution", "atom_radius"}

const photographs = "`python3 internal/tools/bench/patches.py pictures pictures` makes the folder pictures from pictures of SciPy and scikit-learn " +
	"(docs/reproduction/patches.md)"

// tabulated returns the reproduction of a sweep whose results docs/reproduction/page reports: one table of the given metrics.
func tabulated(name, page, title string, with []string, columns ...string) Reproduction {
	return Reproduction{Name: name, Title: title, About: "docs/reproduction/" + page + " has the question and the answer.",
		Columns: columns, With: with, Figures: []string{}}
}

// ofPage returns the reproduction of a sweep that docs/reproduction/PAGE.toml declares, with models that are not shipped.
func ofPage(name, page, title string, columns ...string) Reproduction {
	r := tabulated(name, page+".md", title, nil, columns...)
	r.File = "reproduction/" + page + ".toml"
	return r
}

// needing returns the reproduction of a sweep whose images have to be made first.
func needing(r Reproduction, needs string) Reproduction {
	r.Needs = needs
	return r
}

// Explain returns an error of the reproduction, which says how to make the files of its images if they are not found.
func (r Reproduction) Explain(err error) error {
	if missing, ok := errors.AsType[*data.Error](err); r.Needs != "" && ok && missing.Problem == data.NotFound {
		return fmt.Errorf("%w; %s", err, r.Needs)
	}
	return err
}

// planted returns the reproduction of a sweep over images with planted parts, which are found from a cosine of 0.9 on.
func planted(name, title string) Reproduction {
	r := ofPage(name, "identifiability", title, "parts_found", "parts_cosine", "dead_units")
	r.With = []string{"part_cosine=0.9"}
	return r
}

// drawn returns the reproduction of a sweep of generative models and a classifier.
func drawn(name, title string) Reproduction {
	r := tabulated(name, "generative.md", title, nil, "accuracy")
	r.Drawing = &Drawing{Features: "classifier", Count: 1000, Seeds: []uint64{1, 2, 3}}
	return r
}

// Declaration returns the models and sweeps among which the sweep of the reproduction is declared: the shipped ones, and those of
// its file.
func (r Reproduction) Declaration() (*config.File, error) {
	if r.File == "" {
		return tessera.Shipped(), nil
	}
	text, err := docs.Declarations.ReadFile(r.File)
	if err != nil {
		return nil, err
	}
	page, err := config.Load("docs/"+r.File, text)
	if err != nil {
		return nil, err
	}
	page.Extend(tessera.Shipped())
	return page, nil
}

// Reproductions lists all reproductions.
func Reproductions() []Reproduction { return slices.Clone(reproductions) }

// Names lists the names of all reproductions.
func Names() []string {
	return lists.Map(reproductions, func(r Reproduction) string { return r.Name })
}

// Unknown is the error for an unknown name of a reproduction.
type Unknown struct{ Name string }

func (e *Unknown) Error() string {
	return fmt.Sprintf("unknown reproduction %q: %s", e.Name, table.Suggest(e.Name, Names()))
}

// Find returns the named reproduction; the error is [*Unknown].
func Find(name string) (Reproduction, error) {
	i := slices.IndexFunc(reproductions, func(r Reproduction) bool { return r.Name == name })
	if i < 0 {
		return Reproduction{}, &Unknown{name}
	}
	return reproductions[i], nil
}

// published returns the published rows of the reproduction: all rows of its first source, and those rows of the other
// sources that match a measured model.
func (r Reproduction) published(rows []figures.Published, measured []Measured) []figures.Published {
	var wanted []figures.Published
	for i, source := range r.Sources {
		for _, row := range rows {
			if row.Source != source || row.Dataset != r.Dataset {
				continue
			}
			if i == 0 || slices.ContainsFunc(measured, func(m Measured) bool { return corresponds(row, m) }) {
				wanted = append(wanted, row)
			}
		}
	}
	return wanted
}

// shown is one setting of a sweep: its measured values, and the trial that represents it in figures.
type shown struct {
	Measured
	model *config.Model
	row   *sweep.Row // the first finished trial; nil if there is none
}

// settings returns the settings of a completed sweep. Results of another sweep are an error.
func settings(s *sweep.Sweep, r *sweep.Results) (all []shown, err error) {
	for _, setting := range r.Settings {
		i := slices.IndexFunc(s.Trials, func(t *sweep.Trial) bool { return slices.Contains(setting.Trials, t.ID) })
		if i < 0 {
			return nil, fmt.Errorf("study: the results are not of this sweep: it has no trial of the setting %q; take those that its Run returned",
				strings.TrimSpace(setting.Model+" "+values(r.Keys, setting)))
		}
		m := s.Trials[i].Model
		one := shown{model: m, Measured: Measured{Model: setting.Model, Values: values(r.Keys, setting), Dataset: m.Dataset.Name, Split: r.Split,
			Done: len(setting.Seeds), Trials: len(setting.Trials), Mean: setting.Mean, Deviation: setting.Deviation}}
		one.P, one.Beta = Penalty(m)
		if t := m.Training(); t.Method == "" {
			one.Epochs = t.Most
		}
		for j, row := range r.Trials {
			if row.Metrics != nil && slices.Contains(setting.Trials, row.Trial) {
				one.row = &r.Trials[j]
				break
			}
		}
		all = append(all, one)
	}
	if distinct(all) {
		for i := range all {
			all[i].Values = ""
		}
	}
	return all, nil
}

// Penalty returns target and weight of a model's first KL term, NaN if it has none.
func Penalty(m *config.Model) (p, beta float64) {
	if p, beta, ok := m.KL(); ok {
		return p, beta
	}
	return math.NaN(), math.NaN()
}

// values returns the swept settings in words.
func values(keys []string, s sweep.Setting) string {
	var parts []string
	for i, text := range s.Texts(keys) {
		if text != "" { // else the key is not of this model
			parts = append(parts, keys[i]+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// distinct reports whether model, p and beta distinguish all settings.
func distinct(all []shown) bool {
	type key struct {
		model   string
		p, beta uint64 // as bits, so that NaN equals NaN
	}
	seen := map[key]bool{}
	for _, s := range all {
		k := key{s.Model, math.Float64bits(s.P), math.Float64bits(s.Beta)}
		if seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}
