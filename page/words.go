package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/evaluation"
	"tessera/metrics"
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
	if r.Measured != nil {
		words = append(words, "The numbers and pictures of "+r.Noun+"s below are of "+r.Measured.Words+"; the curves are of the training, and numbers that are marked as fitted are of fitted "+r.Noun+"s.")
	} else {
		words = append(words, "Nothing was measured: "+r.Missing+".")
	}
	return words
}

// whatOf names the model.
func whatOf(m *config.Model, opened *tessera.Run) string {
	if m.Baseline != nil {
		return fmt.Sprintf("%s is a baseline of kind %s with %s.", m.Name, m.Kind, plural(opened.Units(), "component"))
	}
	var kinds []string
	for _, l := range m.Encoder {
		kinds = append(kinds, l.Kind)
	}
	text := fmt.Sprintf("%s is an auto-encoder: its encoder (%s) turns %s of %s into a code of %s", m.Name, strings.Join(kinds, ", "),
		article(nounOf(opened.Shape())), shapeText(opened.Shape()), plural(opened.Units(), "number"))
	if len(m.Decoder) > 0 {
		kinds = nil
		for _, l := range m.Decoder {
			kinds = append(kinds, l.Kind)
		}
		text += fmt.Sprintf("; its decoder (%s) turns a code into %s", strings.Join(kinds, ", "), article(nounOf(opened.Shape())))
	} else {
		text += "; it has no decoder"
	}
	if n := len(m.Heads); n > 0 {
		text += fmt.Sprintf(". It has %s", plural(n, "head"))
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
	text := fmt.Sprintf("It was trained on the %s%ss of %s", fitText(m), noun, m.Dataset.Name)
	switch v := m.Dataset.Validation; {
	case v.Test:
		text += "; the test split served as validation set"
	case v.Fraction > 0:
		text += fmt.Sprintf(", of which %s were held out for validation", sharePercent(v.Fraction))
	}
	if m.Baseline == nil {
		text += fmt.Sprintf(", with %s, in mini-batches of %d, for %s%s, from seed %d", m.Optimizer.Kind, m.Train.Batch, atMost(m), plural(m.Train.Epochs, "epoch"), m.Train.Seed)
	}
	return text + "."
}

// atMost says that a training may end before its last epoch.
func atMost(m *config.Model) string {
	if m.Train.Patience > 0 {
		return "at most "
	}
	return ""
}

func fitText(m *config.Model) string {
	if !data.HasTest(m.Dataset.Source) {
		return "" // the set has no other ones
	}
	if m.Dataset.Fit == string(data.TestSplit) {
		return "test "
	}
	return "training "
}

// endOf says how the training ended.
func (r *Run) endOf(opened *tessera.Run) string {
	done, length := len(r.Curves.Epochs), opened.Model.Train.Epochs
	if last, ok := r.Curves.last.Number("epoch"); ok {
		done = int(last)
	}
	took := ""
	if r.Curves.seconds > 0 {
		took = " (" + spent(r.Curves.seconds) + ")"
	}
	loss, change := r.Curves.summary("loss"), ""
	if loss != "" {
		change = " The loss went " + strings.TrimPrefix(loss, "loss: ") + "."
	}
	_, err := os.Stat(filepath.Join(r.Path, folder.Best))
	switch {
	case opened.Model.Baseline != nil:
		return fmt.Sprintf("The fit ended after %s%s.%s", plural(done, "iteration"), took, change)
	case err == nil && done < length:
		return fmt.Sprintf("Early stopping looks for the lowest validation error: after %s of %d%s the parameters of epoch %d are the best, and are shown here.%s",
			plural(done, "epoch"), length, took, opened.Epoch, change)
	case r.training:
		return fmt.Sprintf("It is in training: %d of %d epochs were done when this page was made%s.%s", done, length, took, change)
	case done < length:
		return fmt.Sprintf("It is not finished: %d of %d epochs are done%s. The command tessera resume %s continues it.%s", done, length, took, quoted(r.Path), change)
	}
	return fmt.Sprintf("The training is finished: all %s are done%s.%s", plural(length, "epoch"), took, change)
}

// verdicts are the numbers that say whether a run worked.
func (v *view) verdicts(r *evaluation.Report) (list []Verdict) {
	if mse, ok := r.Number("mse"); ok {
		if variance := v.variance(); variance > 0 {
			list = append(list, explained(mse, variance, r.Fitted, v.noun()))
		}
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
	if lost, ok := r.Number("additivity_lost"); ok {
		list = append(list, Verdict{sharePercent(1 - lost), "of what atoms add remains",
			"100 % says that " + v.noun() + "s are sums of parts: nothing that an atom adds is taken away by another one."})
	}
	for _, one := range r.Shown() {
		if m, _ := metrics.MeasureOf(one.Name); m.Name == "accuracy" && one.Missing == "" {
			list = append(list, Verdict{sharePercent(one.Number), one.Name, "Share of the " + v.noun() + "s whose class is predicted correctly."})
		}
	}
	return list
}

// explained compares an error with that of the mean image, and with the error on fitted images where it was measured.
func explained(mse, variance float64, fitted *metrics.Result, noun string) Verdict {
	about := fmt.Sprintf("Mean squared error %s", short(mse))
	if fitted != nil {
		if other, ok := fitted.Number("mse"); ok {
			about += fmt.Sprintf(", on fitted %ss %s", noun, short(other))
		}
	}
	about += fmt.Sprintf("; the mean %s alone has %s.", noun, short(variance))
	if mse > variance {
		return Verdict{"no", "reconstruction: the mean " + noun + " is better", about}
	}
	return Verdict{sharePercent(1 - mse/variance), "of the variance is reconstructed", about + " Higher is better, 100 % is perfect."}
}

// variance is the mean squared error of the mean image, of scaled images as all errors are.
func (v *view) variance() float64 {
	pixels, images := len(v.images)/v.n, v.scaling.Applied(v.images)
	mean := make([]float64, pixels)
	for i, x := range images {
		mean[i%pixels] += float64(x) / float64(v.n)
	}
	sum := 0.0
	for i, x := range images {
		d := float64(x) - mean[i%pixels]
		sum += d * d
	}
	return sum / float64(len(images))
}
