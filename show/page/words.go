package page

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/constraints"
	"tessera/data"
	"tessera/internal/shell"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
	"tessera/train"
	"tessera/train/evaluation"
	"tessera/train/folder"
)

// Verdict is one number that says whether a run worked, with its meaning.
type Verdict struct{ Value, Title, About string }

// wordsOf says in sentences what was trained, and how it ended.
func wordsOf(r *Run, opened *tessera.Run) []string {
	m := opened.Model
	words := []string{whatOf(m, opened)}
	if m.About != "" {
		words = append(words, "Its declaration says: "+strings.TrimSuffix(m.About, ".")+".")
	}
	if objective := objectiveOf(m); objective != "" {
		words = append(words, objective)
	}
	words = append(words, fittedOf(m, r.Noun), r.endOf(opened))
	if on := r.Measured; on != nil {
		words = append(words, "The numbers and pictures of "+r.Noun+"s below are of "+on.Words+"; the curves are of the training, and numbers that are marked as fitted are of fitted "+r.Noun+"s.")
		if on.Drawn < on.Images {
			words = append(words, fmt.Sprintf("The pictures, and the statistics of units, codes and heads, are of %s of these %ss, evenly spread.", grouped(on.Drawn), r.Noun))
		}
	} else {
		words = append(words, "Nothing was measured: "+r.Missing+".")
	}
	return append(words, r.Hints...)
}

// whatOf names the model.
func whatOf(m *config.Model, opened *tessera.Run) string {
	if m.Baseline != nil {
		return fmt.Sprintf("%s is a baseline of kind %s with %s.", m.Name, m.Kind, plural(opened.Units(), "component"))
	}
	noun := nounOf(opened.Shape())
	return layersText(m, noun, article(noun)+" of "+shapeText(opened.Shape()), "a code of "+plural(opened.Units(), "number"))
}

// classifies reports whether a model without a decoder learns labels.
func classifies(m *config.Model) bool {
	return m.Baseline == nil && len(m.Decoder) == 0 && slices.ContainsFunc(m.Losses, func(l config.Loss) bool { return l.Loss != nil && l.Reads().Against == losses.Labels })
}

// layersText says what a model is and names its layers; input and code are what its encoder reads and gives, in words.
func layersText(m *config.Model, noun, input, code string) string {
	kinds := func(layers []config.Layer) string {
		var list []string
		for _, l := range layers {
			list = append(list, l.Kind)
		}
		return strings.Join(list, ", ")
	}
	what := "an auto-encoder"
	switch {
	case len(m.Decoder) > 0:
	case classifies(m):
		what = "a classifier"
	default:
		what = "an encoder"
	}
	text := fmt.Sprintf("%s is %s: its encoder (%s) turns %s into %s", m.Name, what, kinds(m.Encoder), input, code)
	if len(m.Decoder) > 0 {
		text += fmt.Sprintf("; its decoder (%s) turns a code into %s", kinds(m.Decoder), article(noun))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		text += fmt.Sprintf("; its head %s (%s) reads the %s", name, kinds(m.Heads[name].Layers), m.Heads[name].From)
	}
	return text + "."
}

func shapeText(shape []int) string {
	var parts []string
	for _, n := range shape {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(parts) == 1 {
		return parts[0] + " values"
	}
	text := strings.Join(parts[:2], " × ") + " pixels"
	if len(parts) > 2 && parts[2] != "1" {
		text += " and " + parts[2] + " channels"
	}
	return text
}

// fittedOf says on what it was trained.
func fittedOf(m *config.Model, noun string) string {
	text := fmt.Sprintf("It was trained on the %s%ss of %s", fitText(m), noun, datasetName(m))
	switch v := m.Dataset.Validation; {
	case v.Test:
		text += "; the test split served as validation set"
	case v.Fraction > 0:
		text += fmt.Sprintf(", of which %s were held out for validation", sharePercent(v.Fraction))
	}
	if m.Baseline == nil {
		text += fmt.Sprintf(", %s, from seed %d", scheduleText(m), m.Train.Seed)
	}
	return text + "."
}

// scheduleText says how an auto-encoder is trained: "with adam, in mini-batches of 20, for 2 epochs".
func scheduleText(m *config.Model) string {
	if searches(m) { // a search ends where it finds no better point
		return fmt.Sprintf("with %s on the full batch, for at most %s", m.Optimizer.Kind, plural(m.Train.Epochs, "iteration"))
	}
	most, steps := "", ""
	if m.EarlyStops() {
		most = "at most "
	}
	if n := m.Train.MinEpochSteps; n > 0 {
		steps = fmt.Sprintf(" of %d steps or more", n)
	}
	return fmt.Sprintf("with %s, in mini-batches of %d, for %s%s%s", m.Optimizer.Kind, m.Train.Batch, most, plural(m.Train.Epochs, "epoch"), steps)
}

// searches reports whether the optimizer takes the full batch: its epochs are iterations.
func searches(m *config.Model) bool {
	_, search := m.Optimizer.Optimizer.(optim.Search)
	return search
}

// fitText says which images of a set are fitted: "first 1,000 training ".
func fitText(m *config.Model) (text string) {
	if m.Dataset.Limit > 0 {
		text = "first " + grouped(m.Dataset.Limit) + " "
	}
	switch {
	case !data.HasTest(m.Dataset.Source): // the set has no other ones
		return text
	case m.Dataset.Fit == string(data.TestSplit):
		return text + "test "
	}
	return text + "training "
}

// endOf says how far the training is, and which parameters are shown.
func (r *Run) endOf(opened *tessera.Run) string {
	at, m := train.StatusOf(r.Path), opened.Model
	unit, done := "epoch", at.Epoch
	if m.Baseline != nil || searches(m) {
		unit = "iteration"
	}
	if at.State == train.Damaged { // nothing but the parameters says how far it is
		done = opened.Epoch
	}
	text := endText(m, at, unit, done)
	if r.Curves.seconds > 0 {
		text += " (" + spent(r.Curves.seconds) + ")"
	}
	if at.State == train.Interrupted {
		text += ". The command tessera resume " + shell.Word(r.Path) + " continues it"
	}
	if loss := r.Curves.summary("loss"); loss != "" {
		text += ". The loss went " + strings.TrimPrefix(loss, "loss: ")
	}
	if _, err := os.Stat(filepath.Join(r.Path, folder.Best)); err == nil {
		text += fmt.Sprintf(". Early stopping keeps the best epoch: the parameters of %s %d are shown here", unit, opened.Epoch)
	}
	return text + "."
}

// endText says how far a training is, without a full stop.
func endText(m *config.Model, at train.Status, unit string, done int) string {
	of := fmt.Sprintf("%s of %s", grouped(done), plural(at.Epochs, unit))
	switch {
	case at.State == train.Training:
		return "It is in training: " + of + " were done when this page was made"
	case at.State == train.Interrupted:
		return "It is not finished: " + of + " were done"
	case at.State == train.Damaged:
		return "Its state cannot be read, so that it cannot be resumed; the parameters are those after " + plural(done, unit)
	case m.Baseline != nil:
		return "The fit ended after " + plural(done, unit)
	case done >= at.Epochs:
		return "The training is finished after " + plural(done, unit)
	case searches(m) && !m.EarlyStops():
		return "The optimizer found no better point after " + of
	case !searches(m) && m.EarlyStops():
		return "Early stopping ended the training after " + of
	}
	return "The training ended early, after " + of
}

// verdicts are the numbers that say whether a run worked.
func (v *view) verdicts(r *evaluation.Report) (list []Verdict) {
	if classifies(v.run.Model) {
		list = v.accuracies(r)
	}
	mse, ok := r.Number("mse")
	if share, known := r.Number("explained_variance"); ok && known {
		list = append(list, explained(mse, share, r.Fitted, v.noun()))
	}
	k := v.run.Units()
	if l0, ok := r.Number("l0"); ok {
		list = append(list, Verdict{fmt.Sprintf("%.1f of %d", l0*float64(k), k), "units make up one " + v.noun() + ", on average",
			"Mean number of units that contribute more than 1 % of the largest contribution. Fewer is sparser."})
	}
	if useful, ok := r.Number("useful_units"); ok {
		list = append(list, Verdict{fmt.Sprintf("%.0f of %d", useful, k), "units are useful over all " + v.noun() + "s", "Least number of units that carry the reconstruction: holding all others at their mean raises the error by at most 1 %."})
	} else if dead, ok := r.Number("dead_units"); ok {
		list = append(list, Verdict{fmt.Sprintf("%.0f of %d", dead, k), "units are dead", "Units that no " + v.noun() + " activates."})
	}
	if lost, ok := r.Number("additivity_lost"); ok && !negative(v.codes32) && !negative(v.atoms.Values) { // else atoms cancel by design
		list = append(list, Verdict{sharePercent(1 - lost), "of what atoms add remains",
			"100 % says that " + v.noun() + "s are sums of parts: nothing that an atom adds is taken away by another one."})
	}
	if !classifies(v.run.Model) {
		list = append(list, v.accuracies(r)...)
	}
	return list
}

// accuracies are the shares of the heads.
func (v *view) accuracies(r *evaluation.Report) (list []Verdict) {
	for _, one := range r.Shown() {
		if m, _ := metrics.MeasureOf(one.Name); m.Name == "accuracy" && one.Missing == "" {
			list = append(list, Verdict{sharePercent(one.Number), one.Name, "Share of the " + v.noun() + "s whose class is predicted correctly."})
		}
	}
	return list
}

// datasetName names the data of a model: your own files by their path, other sets by their name.
func datasetName(m *config.Model) string {
	switch s := m.Dataset.Source.(type) {
	case *data.ImageFolders:
		return s.Images
	case *data.PNG:
		return s.Images
	case *data.CSV:
		return s.Images
	case *data.NPY:
		return s.Images
	case *data.IDX:
		return s.Images
	}
	return m.Dataset.Name
}

// hints are what a reader of the page should doubt.
func (r *Run) hints(opened *tessera.Run, result *evaluation.Report) (list []string) {
	fitted := result.FittedImages
	if result.Split == string(data.TrainSplit) || result.Split == string(data.AllSplit) {
		fitted = result.Images
	}
	if units := opened.Units(); fitted > 0 && 5*units > fitted && opened.Atoms() != nil {
		list = append(list, fmt.Sprintf("Note: %s are many for %s that were fitted. An atom may show a whole %s instead of a part: try fewer units.",
			plural(units, "unit"), plural(fitted, r.Noun), r.Noun))
	}
	if area, ok := result.Number("atom_area"); ok {
		if shape := opened.Shape(); len(shape) > 1 && 3*area > float64(shape[0]*shape[1]) {
			list = append(list, fmt.Sprintf("Note: an atom covers %.0f %% of the picture on average. Parts are smaller: fewer units, a sparser code or non-negative weights make them local.",
				100*area/float64(shape[0]*shape[1])))
		}
	}
	return list
}

// explained compares an error with that of the mean image, which is all of the variance, and with the error on fitted images where
// it was measured.
func explained(mse, share float64, fitted *metrics.Result, noun string) Verdict {
	about := "Mean squared error " + short(mse)
	if fitted != nil {
		if other, ok := fitted.Number("mse"); ok {
			about += fmt.Sprintf(", on fitted %ss %s", noun, short(other))
		}
	}
	if share < 1 {
		about += fmt.Sprintf("; the mean %s alone has %s", noun, short(mse/(1-share)))
	}
	if share < 0 {
		return Verdict{"no", "reconstruction: the mean " + noun + " is better", about + "."}
	}
	return Verdict{sharePercent(share), "of the variance is reconstructed", about + ". Higher is better, 100 % is perfect."}
}

// Term is one term of an objective and what it is.
type Term struct{ Name, About string }

// objectiveOf says what a training minimises and under which constraints, "" for a baseline.
func objectiveOf(m *config.Model) string {
	var terms, sets []string
	changing := false
	for i, l := range m.Losses {
		factor := ""
		first, last := l.Weight.At(0), l.Weight.At(math.Inf(1))
		_, constant := l.Weight.(*losses.Constant)
		_, adaptive := l.Weight.(losses.Adaptive)
		switch {
		case adaptive:
			factor, changing = "(adapted) × ", true
		case !constant:
			factor, changing = fmt.Sprintf("(%s to %s) × ", short(first), short(last)), true
		case first != 1:
			factor = short(first) + " × "
		}
		terms = append(terms, factor+m.TermName(i))
	}
	if len(terms) == 0 {
		return ""
	}
	text := "It minimises " + strings.Join(terms, " + ")
	if changing {
		text += ", where a weight in brackets changes during the training,"
	}
	for i, c := range m.Constraints {
		if i > 0 && m.Constraints[i-1].On == c.On {
			sets = append(sets, constraintText(c))
		} else {
			sets = append(sets, parametersText(c.On)+" kept "+constraintText(c))
		}
	}
	if len(sets) > 0 {
		text = strings.TrimSuffix(text, ",") + ", with " + strings.Join(sets, " and ")
	}
	return strings.TrimSuffix(text, ",") + "."
}

// constraintText says what a constraint demands.
func constraintText(c config.Constraint) string {
	switch c.Kind {
	case "nonneg":
		return "non-negative"
	case "unit_norm":
		return "of length 1 in every row"
	}
	about := ""
	if entry, ok := constraints.Registry.Lookup(c.Kind); ok {
		about, _, _ = strings.Cut(entry.About, ": ")
	}
	return fmt.Sprintf("%s (%s)", c.Kind, about)
}

// parametersText names the parameters that a glob matches.
func parametersText(glob string) string {
	if glob == "decoder.*.weight" {
		return "the weights of the decoder"
	}
	return glob
}

// termsOf explains the terms of an objective.
func termsOf(m *config.Model) (list []Term) {
	for i, l := range m.Losses {
		if entry, ok := losses.Registry.Lookup(l.Kind); ok {
			list = append(list, Term{m.TermName(i), plain(entry.About)})
		}
	}
	return list
}
