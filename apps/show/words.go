package show

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/classical"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/constraints"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/shell"
	"tessera/internal/train"
	"tessera/losses"
	"tessera/metrics"
)

// Classifies reports whether a model without a decoder is trained to predict classes.
func Classifies(m *config.Model) bool {
	return len(m.Decoder) == 0 && len(m.ClassHeads()) > 0
}

func shapeText(shape []int) string {
	if len(shape) == 1 {
		return numeral.Of(shape[0], "value")
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
		return numeral.Float(through[0]), false
	}
	texts := lists.Map(through, numeral.Float)
	return strings.Join(texts, " to "), true
}

// DataText returns a description of the fitted images: "first 1,000 training images of mnist, 10 % of them held out for
// validation".
func DataText(m *config.Model, noun string) string {
	text := ""
	if m.Dataset.Limit > 0 {
		text = "first " + numeral.Count(m.Dataset.Limit) + " "
	}
	switch {
	case !data.HasTest(m.Dataset.Source): // the set has no other ones
	case m.Dataset.Fit == string(data.TestSplit):
		text += "test "
	default:
		text += "training "
	}
	text += noun + "s of " + DatasetName(m.Dataset)
	switch v := m.Dataset.Validation; {
	case v.Test:
		text += "; the test split is the validation set"
	case v.Fraction > 0:
		text += fmt.Sprintf(", %s of them held out for validation", numeral.Percent(v.Fraction))
	}
	return text
}

// ScheduleText returns a description of the optimizer and the length of the training: "adam, mini-batches of 20, 2 epochs".
func ScheduleText(m *config.Model) string {
	if m.Training().Iterates { // a search ends where it finds no better point
		return fmt.Sprintf("%s on the full batch, at most %s", m.Optimizer.Kind, numeral.Of(m.Train.Epochs, "iteration"))
	}
	text := fmt.Sprintf("%s, mini-batches of %d, ", m.Optimizer.Kind, m.Train.Batch)
	if m.EarlyStops() {
		text += "at most "
	}
	text += numeral.Of(m.Train.Epochs, "epoch")
	if n := m.Train.MinEpochSteps; n > 0 {
		text += fmt.Sprintf(" of %d steps or more", n)
	}
	return text
}

// UnitOf returns the unit of the length of a training: "epoch", or "iteration" for baselines and full-batch optimizers.
func UnitOf(m *config.Model) string {
	if m.Training().Iterates {
		return "iteration"
	}
	return "epoch"
}

// stateText returns a description of the progress of the training and of the shown parameters.
func stateText(s *subject) string {
	at, m := s.status, s.model
	unit, done := UnitOf(m), at.Epoch
	if at.State == train.Damaged { // only the parameters say how far it is
		done = s.epoch
	}
	text := endText(m, at, numeral.Of(done, unit), fmt.Sprintf("%s of %s", numeral.Count(done), numeral.Of(at.Epochs, unit)))
	if at.State == train.Interrupted {
		text += "; the command tessera resume " + shell.Word(at.Run) + " continues it"
	}
	if best := s.best(); best != nil {
		text += fmt.Sprintf("; early stopping keeps the best epoch: the parameters of %s %d are shown", unit, best)
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
	case m.Training().Method != "" || at.Epoch >= at.Epochs:
		return "finished after " + done
	case m.Training().Iterates && !m.EarlyStops():
		return "ended after " + of + ": the optimizer found no better point"
	case !m.Training().Iterates && m.EarlyStops():
		return "ended by early stopping after " + of
	}
	return "ended early, after " + of
}

// DatasetName returns the name of a data set: the path for user files, otherwise the name of the set.
func DatasetName(d config.Dataset) string {
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
		if f.Key == "file" && f.Value.String() != "" && data.IsOwn(d.Source) {
			return f.Value.String()
		}
	}
	return d.Name
}

// Terms explains the terms of an objective and its constraints. Terms of one kind list the settings in which they differ, their
// weights only if the whole page has the same ones.
func Terms(m *config.Model, weights bool) *doc.Table {
	t := &doc.Table{Title: "What the terms and constraints are", Folded: true, Columns: []doc.Column{{}, {Wrap: true}}, Notes: []string{
		"x is a sample, an image or a vector, y its reconstruction, h a code, t the mean activation of a unit over a mini-batch; s and p are targets that the settings give."}}
	for i, l := range m.Losses {
		if entry, ok := losses.Registry.Lookup(l.Kind); ok {
			about := Plain(entry.About)
			if differs := differences(m.Losses, l, weights); len(differs) > 0 {
				about += ": " + strings.Join(differs, ", ")
			}
			t.Row(m.TermName(i), about)
		}
	}
	for _, c := range m.Constraints {
		if entry, ok := constraints.Registry.Lookup(c.Kind); ok {
			t.Row(c.Kind, Plain(entry.About))
		}
	}
	return t
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

// Plain removes Markdown markup from a text.
func Plain(text string) string { return strings.NewReplacer("`", "", `\|`, "|").Replace(text) }

// NounOf returns the noun for one sample of a shape: "image", or "sample" for vectors.
func NounOf(shape []int) string {
	if len(shape) == 1 {
		return "sample"
	}
	return "image"
}

// KeyNames returns descriptions of the keys of a sweep. A key without a description that is correct for all models is returned
// unchanged.
func KeyNames(keys []string, models []*config.Model) []string {
	names := slices.Clone(keys)
	for i, key := range keys {
		for n, m := range models {
			name := keyName(key, m)
			if n > 0 && name != names[i] {
				name = key
			}
			names[i] = name
			if name == key {
				break
			}
		}
	}
	return names
}

// keyName returns a description of a key of a model: for loss.1.weight, "weight of the kl term".
func keyName(key string, m *config.Model) string {
	parts := strings.Split(key, ".")
	last := strings.ReplaceAll(parts[len(parts)-1], "_", " ")
	switch {
	case len(parts) == 2 && parts[0] == "optimizer":
		return last + " of the optimizer"
	case len(parts) == 2 && parts[0] == "dataset":
		return last + " of the data set"
	case len(parts) != 3:
		return key
	}
	i, err := strconv.Atoi(parts[1])
	if err != nil || i < 0 {
		return key
	}
	switch {
	case parts[0] == "loss" && i < len(m.Losses):
		return last + " of the " + m.TermName(i) + " term"
	case parts[0] == "constraint" && i < len(m.Constraints):
		return last + " of the constraint " + m.Constraints[i].Kind
	case parts[0] == "encoder" && i < len(m.Encoder):
		return fmt.Sprintf("%s of layer %d of the encoder", last, i+1)
	case parts[0] == "decoder" && i < len(m.Decoder):
		return fmt.Sprintf("%s of layer %d of the decoder", last, i+1)
	}
	return key
}

// ValueNames returns the names of the values of a run's samples, such as those of the columns of a table, for figures and tables; nil if
// they have none, or if the file of the training is missing.
func ValueNames(ctx context.Context, run *tessera.Run) []string {
	if len(run.Shape()) != 1 {
		return nil
	}
	names, err := run.ValueNames(ctx)
	if err != nil || len(names) == 0 {
		names = run.ColumnNames() // of a sparse matrix
	}
	if len(names) != run.Shape()[0] {
		return nil
	}
	return names
}

// OutputNames is [ValueNames] of the output, and so of atoms: names of the target of a transcoder.
func OutputNames(ctx context.Context, run *tessera.Run) []string {
	if run.OutputIsSample() {
		return ValueNames(ctx, run)
	}
	for _, t := range metrics.TargetsOf(run) {
		if t.Value == metrics.OutputName {
			return lists.Map(lists.Range(0, t.Size), t.Name)
		}
	}
	return nil
}

// PartName names a part of a table by its columns with the largest values, at most three of at least half the largest one, with a minus
// before columns of negative values.
func PartName(atom []float32, names []string) string { return largest(atom, names, 3, 0.5) }

// largest lists at most n names of the values with the largest magnitudes, which are at least the given share of the largest one.
func largest(atom []float32, names []string, n int, share float64) string {
	if len(names) != len(atom) {
		return ""
	}
	size := func(i int) float64 { return math.Abs(float64(atom[i])) }
	order := lists.Range(0, len(atom))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	if len(atom) > n && atom[0] != 0 && !slices.ContainsFunc(atom, func(v float32) bool { return v != atom[0] }) {
		return "all columns alike" // such as the bias of a row of a matrix
	}
	var list []string
	for _, i := range order[:min(n, len(order))] {
		if size(i) == 0 || size(i) < share*size(order[0]) {
			break
		}
		name := names[i]
		if atom[i] < 0 {
			name = "-" + name
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// mostWords is the largest number of words that describe a part of texts, or of many columns.
const mostWords = 8

// manyColumns is the number of columns from which a part is described by as many as one of texts.
const manyColumns = 64

// TopWords names a part of texts by its words with the largest values, the largest first; "" if it has none.
func TopWords(atom []float32, words []string) string {
	if len(words) != len(atom) {
		return ""
	}
	order := lists.Range(0, len(atom))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(atom[b], atom[a]) })
	var list []string
	for _, i := range order[:min(mostWords, len(order))] {
		if atom[i] > 0 {
			list = append(list, words[i])
		}
	}
	return strings.Join(list, ", ")
}

// PartNames returns the function that names the parts of a run, and the title of these names.
func PartNames(run *tessera.Run, names []string) (name func(atom []float32, names []string) string, title string) {
	switch {
	case run.Tokens() != nil:
		return TopWords, "largest words"
	case len(names) > manyColumns:
		return func(atom []float32, names []string) string { return largest(atom, names, mostWords, 0) }, "largest columns"
	}
	return PartName, "largest columns"
}

// Parts lists the parts of a run of named vectors, each by its largest columns, those of texts by their largest words; nil for other runs.
func Parts(ctx context.Context, run *tessera.Run) *doc.Table {
	a := run.Atoms()
	if a == nil {
		return nil
	}
	names := OutputNames(ctx, run)
	if names == nil {
		return nil
	}
	name, what := PartNames(run, names)
	unit := "unit"
	if a.Count != run.Units() {
		unit = "hidden unit"
	}
	t := &doc.Table{Key: "atoms", Title: "Parts", Columns: []doc.Column{{Key: "unit", Title: unit}, {Key: "columns", Title: what, Wrap: true}}}
	for j := range min(a.Count, mostParts) {
		t.Row(doc.Index(j), name(a.Values[j*a.Pixels():(j+1)*a.Pixels()], names))
	}
	if a.Count > mostParts {
		t.Notes = []string{fmt.Sprintf("the first %d of %s", mostParts, numeral.Of(a.Count, unit))}
	}
	if a.Indirect != "" {
		t.Notes = append(t.Notes, a.Indirect)
	}
	if s, ok := run.Model.Baseline.(*classical.MatrixFactorisation); ok && s.Biases {
		t.Notes = append(t.Notes, fmt.Sprintf("unit %d is the bias of the row, and no component", s.Components))
	}
	return t
}

// mostParts is the largest number of parts that are listed.
const mostParts = 40

// Numbered lists numbers, such as those of units: "1, 4, 7".
func Numbered(list []int) string { return strings.Join(lists.Map(list, strconv.Itoa), ", ") }
