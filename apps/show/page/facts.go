package page

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/constraints"
	"tessera/data"
	"tessera/internal/shell"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
)

// Verdict is a number that indicates whether a run was successful, with its meaning.
type Verdict struct{ Value, Title, About string }

// Fact is one line of the table at the top of a page.
type Fact struct{ Name, Text string }

// facts lists the lines of the table, in order.
type facts []Fact

// add adds a line. A line without a text is not added.
func (f *facts) add(name, text string) {
	if text != "" {
		*f = append(*f, Fact{name, text})
	}
}

// factsOf returns a description of the model, its data, the end of its training, and the images on which the page measures it.
func factsOf(r *Run, opened *tessera.Run) (list facts) {
	m := opened.Model
	list.addModel(m, nounOf(opened.Shape())+" of "+shapeText(opened.Shape()), opened.Units(), true)
	list.add("data", dataText(m, r.Noun))
	if m.Baseline == nil {
		list.add("training", fmt.Sprintf("%s, seed %d", scheduleText(m), m.Train.Seed))
	}
	list.add("state", r.stateText(opened))
	list.add("loss", strings.TrimPrefix(r.Curves.summary("loss"), "loss: "))
	measured := "nothing: " + r.Missing
	if on := r.Measured; on != nil {
		if measured = on.Words; on.Drawn < on.Images {
			measured += fmt.Sprintf("; pictures, and statistics of units, codes and heads, are of %s of them, evenly spread", grouped(on.Drawn))
		}
	}
	list.add("measured on", measured)
	return list
}

// addModel describes a declaration. input describes the input of the encoder in words, and units is the number of units of the
// code, 0 if it varies. If weights is true, the weights of the loss terms are included.
func (f *facts) addModel(m *config.Model, input string, units int, weights bool) {
	f.add("model", strings.TrimSuffix(m.Name+": "+m.About, ": "))
	if m.Baseline != nil {
		kind := m.Kind + ", a baseline"
		if units > 0 {
			kind += " with " + plural(units, "component")
		}
		f.add("kind", kind)
		return
	}
	code := losses.Code
	if units > 0 {
		code += " of " + plural(units, "number")
	}
	kind := "auto-encoder"
	switch {
	case len(m.Decoder) > 0:
	case classifies(m):
		kind = "classifier"
	default:
		kind = "encoder"
	}
	f.add("kind", kind)
	chain := func(from string, layers []config.Layer, to ...string) string {
		steps := []string{from}
		for _, l := range layers {
			steps = append(steps, l.Kind)
		}
		return strings.Join(append(steps, to...), " → ")
	}
	f.add("encoder", chain(input, m.Encoder, code))
	if len(m.Decoder) > 0 {
		noun, _, _ := strings.Cut(input, " ")
		f.add("decoder", chain(losses.Code, m.Decoder, noun))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		f.add("head "+name, chain(strings.Join(m.Heads[name].From, ", "), m.Heads[name].Layers))
	}
	f.add("objective", objectiveText(m, weights))
	var kept []string
	for _, c := range m.Constraints {
		kept = append(kept, c.Kind+" on "+c.On)
	}
	f.add("constraints", strings.Join(kept, ", "))
}

// classifies reports whether a model without a decoder is trained to predict classes.
func classifies(m *config.Model) bool {
	return m.Baseline == nil && len(m.Decoder) == 0 && len(m.ClassHeads()) > 0
}

func shapeText(shape []int) string {
	if len(shape) == 1 {
		return plural(shape[0], "value")
	}
	text := fmt.Sprintf("%d × %d pixels", shape[0], shape[1])
	if len(shape) > 2 && shape[2] != 1 {
		text += fmt.Sprintf(" and %d channels", shape[2])
	}
	return text
}

// objectiveText returns the objective of a training as a sum of terms, "" for a baseline.
func objectiveText(m *config.Model, weights bool) string {
	var terms []string
	changing := ""
	for i, l := range m.Losses {
		factor := ""
		text, changes := weightText(l.Weight)
		switch {
		case !weights || text == "1":
		case changes:
			factor, changing = "("+text+") × ", "; a weight in brackets changes during the training"
		default:
			factor = text + " × "
		}
		terms = append(terms, factor+m.TermName(i))
	}
	if !weights && len(terms) > 1 {
		return "a weighted sum of " + strings.Join(terms, ", ")
	}
	return strings.Join(terms, " + ") + changing
}

// weightText returns the weight of a term as text, for a schedule all weights that it goes through, and whether it changes.
func weightText(w losses.Weight) (text string, changes bool) {
	if _, adaptive := w.(losses.Adaptive); adaptive {
		return "adapted", true
	}
	through := losses.Through(w)
	if _, constant := w.(*losses.Constant); constant {
		return short(through[0]), false
	}
	texts := make([]string, len(through))
	for i, weight := range through {
		texts[i] = short(weight)
	}
	return strings.Join(texts, " to "), true
}

// dataText returns a description of the fitted images: "first 1,000 training images of mnist, 10 % of them held out for
// validation".
func dataText(m *config.Model, noun string) string {
	text := ""
	if m.Dataset.Limit > 0 {
		text = "first " + grouped(m.Dataset.Limit) + " "
	}
	switch {
	case !data.HasTest(m.Dataset.Source): // the set has no other ones
	case m.Dataset.Fit == string(data.TestSplit):
		text += "test "
	default:
		text += "training "
	}
	text += noun + "s of " + datasetName(m.Dataset)
	switch v := m.Dataset.Validation; {
	case v.Test:
		text += "; the test split is the validation set"
	case v.Fraction > 0:
		text += fmt.Sprintf(", %s of them held out for validation", sharePercent(v.Fraction))
	}
	return text
}

// scheduleText returns a description of the optimizer and the length of the training: "adam, mini-batches of 20, 2 epochs".
func scheduleText(m *config.Model) string {
	if searches(m) { // a search ends where it finds no better point
		return fmt.Sprintf("%s on the full batch, at most %s", m.Optimizer.Kind, plural(m.Train.Epochs, "iteration"))
	}
	text := fmt.Sprintf("%s, mini-batches of %d, ", m.Optimizer.Kind, m.Train.Batch)
	if m.EarlyStops() {
		text += "at most "
	}
	text += plural(m.Train.Epochs, "epoch")
	if n := m.Train.MinEpochSteps; n > 0 {
		text += fmt.Sprintf(" of %d steps or more", n)
	}
	return text
}

// searches reports whether the optimizer uses the full batch, so that an epoch is an iteration.
func searches(m *config.Model) bool {
	_, search := m.Optimizer.Optimizer.(optim.Search)
	return search
}

// unitOf returns the unit of the length of a training: "epoch", or "iteration" for baselines and full-batch optimizers.
func unitOf(m *config.Model) string {
	if m.Baseline != nil || searches(m) {
		return "iteration"
	}
	return "epoch"
}

// stateText returns a description of the progress of the training and of the shown parameters.
func (r *Run) stateText(opened *tessera.Run) string {
	at, m := train.StatusOf(r.Path), opened.Model
	unit, done := unitOf(m), at.Epoch
	if at.State == train.Damaged { // only the parameters say how far it is
		done = opened.Epoch
	}
	text := endText(m, at, plural(done, unit), fmt.Sprintf("%s of %s", grouped(done), plural(at.Epochs, unit)))
	if r.Curves.seconds > 0 {
		text += " (" + spent(r.Curves.seconds) + ")"
	}
	if at.State == train.Interrupted {
		text += "; the command tessera resume " + shell.Word(r.Path) + " continues it"
	}
	if _, err := os.Stat(filepath.Join(r.Path, folder.Best)); err == nil {
		text += fmt.Sprintf("; early stopping keeps the best epoch: the parameters of %s %d are shown", unit, opened.Epoch)
	}
	return text
}

// endText returns a description of the progress of a training; done is the number of completed epochs.
func endText(m *config.Model, at train.Status, done, of string) string {
	switch {
	case at.State == train.Training:
		return "in training: " + of + " were done when this page was made"
	case at.State == train.Interrupted:
		return "not finished: " + of + " were done"
	case at.State == train.Damaged:
		return "damaged, so that it cannot be resumed; the parameters are those after " + done
	case m.Baseline != nil || at.Epoch >= at.Epochs:
		return "finished after " + done
	case searches(m) && !m.EarlyStops():
		return "ended after " + of + ": the optimizer found no better point"
	case !searches(m) && m.EarlyStops():
		return "ended by early stopping after " + of
	}
	return "ended early, after " + of
}

// verdicts lists the numbers that indicate whether a run was successful.
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

// accuracies lists the accuracies of the heads.
func (v *view) accuracies(r *evaluation.Report) (list []Verdict) {
	for _, one := range r.Shown() {
		if m, _ := metrics.MeasureOf(one.Name); m.Name == "accuracy" && one.Missing == "" {
			list = append(list, Verdict{sharePercent(one.Number), one.Name, "Share of the " + v.noun() + "s whose class is predicted correctly."})
		}
	}
	return list
}

// datasetName returns the name of a data set: the path for user files, otherwise the name of the set.
func datasetName(d config.Dataset) string {
	if of, ok := d.Source.(*tessera.Answers); ok {
		var parts []string
		if of.Value != "" {
			parts = append(parts, "value "+of.Value)
		}
		if of.Labels != "" {
			parts = append(parts, "labels are the predictions of its head "+of.Labels)
		}
		name := "the run " + of.Run
		if len(parts) > 0 {
			name += " (" + strings.Join(parts, ", ") + ")"
		}
		return name
	}
	for _, f := range table.Fields(d.Source) {
		if (f.Key == "images" || f.Key == "file") && f.Value.String() != "" && data.IsOwn(d.Source) {
			return f.Value.String()
		}
	}
	return d.Name
}

// hints lists warnings for the reader of the page: reasons to doubt the numbers.
func (r *Run) hints(opened *tessera.Run, result *evaluation.Report) (list []string) {
	fitted := result.FittedImages
	if result.Split == string(data.TrainSplit) || result.Split == string(data.AllSplit) {
		fitted = result.Images
	}
	if units := opened.Units(); fitted > 0 && 5*units > fitted && opened.Atoms() != nil {
		list = append(list, fmt.Sprintf("Note: %s are many for %s that were fitted. An atom may show a whole %s instead of a part: try fewer units.",
			plural(units, "unit"), plural(fitted, r.Noun), r.Noun))
	}
	if text := deadAndUseful(result.Values, opened.Units()); text != "" {
		list = append(list, text)
	}
	if area, ok := result.Number("atom_area"); ok {
		if shape := opened.Shape(); len(shape) > 1 && 3*area > float64(shape[0]*shape[1]) {
			list = append(list, fmt.Sprintf("Note: an atom covers %.0f %% of the picture on average. Parts are smaller: fewer units, a sparser code or non-negative weights make them local.",
				100*area/float64(shape[0]*shape[1])))
		}
	}
	return list
}

// deadAndUseful explains numbers of dead and of useful units that together exceed the number of units; "" if they do not.
func deadAndUseful(values metrics.Values, units int) string {
	dead, ok := values.Number("dead_units")
	useful, counted := values.Number("useful_units")
	if !ok || !counted || int(dead+useful) <= units {
		return ""
	}
	return fmt.Sprintf("Note: some of the %.0f dead units are among the %.0f useful ones. A unit is dead if its activations stay below 1 %% of the largest of any unit; "+
		"it is useful if the error rises without it, as it may if its atom is large.", dead, useful)
}

// explained compares an error with the error of the mean image, which equals the variance, and with the error on fitted images
// if it was measured.
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

// Term is one term of an objective with its explanation.
type Term struct{ Name, About string }

// termsOf explains the terms of an objective and its constraints. Terms of one kind list the settings in which they differ, their
// weights only if the whole page has the same ones.
func termsOf(m *config.Model, weights bool) (list []Term) {
	for i, l := range m.Losses {
		if entry, ok := losses.Registry.Lookup(l.Kind); ok {
			about := plain(entry.About)
			if differs := differences(m.Losses, l, weights); len(differs) > 0 {
				about += ": " + strings.Join(differs, ", ")
			}
			list = append(list, Term{m.TermName(i), about})
		}
	}
	for _, c := range m.Constraints {
		if entry, ok := constraints.Registry.Lookup(c.Kind); ok {
			list = append(list, Term{c.Kind, plain(entry.About)})
		}
	}
	return list
}

// differences lists the settings of a term that another term of its kind does not have.
func differences(all []config.Loss, of config.Loss, weights bool) (list []string) {
	settings := func(l config.Loss) (texts []string) {
		texts = append(texts, "on "+l.On, "against "+l.Reads().Against, "mask "+cmp.Or(l.Mask, "none"), "sample_weight "+cmp.Or(l.SampleWeight, "none"),
			"teacher "+l.TeacherName())
		for _, f := range table.Fields(l.Loss) {
			switch value := f.Value.Interface().(type) {
			case bool:
				texts = append(texts, map[bool]string{true: f.Key, false: "not " + f.Key}[value])
			default:
				texts = append(texts, fmt.Sprintf("%s %v", f.Key, value))
			}
		}
		if text, _ := weightText(l.Weight); weights {
			texts = append(texts, "weight "+text)
		}
		return texts
	}
	for _, text := range settings(of) {
		if slices.ContainsFunc(all, func(l config.Loss) bool { return l.Kind == of.Kind && !slices.Contains(settings(l), text) }) {
			list = append(list, text)
		}
	}
	return list
}
