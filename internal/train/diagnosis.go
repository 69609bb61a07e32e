package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/losses"
)

// This file finds adaptive weights of loss terms ([losses.Adaptive]) that did not reach their limits: if a limit cannot be reached, the
// codes of a model may become empty, because the empty code is the sparsest one.

// unweighted returns the mean over an epoch of the i-th term without its weight, in which a step counts as much as its weight, and the
// weight at the end of the epoch. ok is false for a term without an adaptive weight or with a weight of 0 throughout.
func (s *job) unweighted(m Metrics, i int) (weight, value float64, ok bool) {
	if i >= len(m.unweighted) || math.IsNaN(m.unweighted[i]) || math.IsInf(m.unweighted[i], 0) {
		return 0, 0, false
	}
	return s.progress.Weights[i], m.unweighted[i], true
}

// diagnose warns of adaptive weights whose terms missed their limits in the last epoch, and of values that the model cannot reach.
func (s *job) diagnose(m Metrics) {
	if s.options.Warn == nil {
		return
	}
	if s.unreachable != "" {
		s.options.Warn(s.unreachable)
	}
	for i, l := range s.spec.Losses {
		weight, value, ok := s.unweighted(m, i)
		if d, can := l.Weight.(losses.Diagnosing); ok && can {
			if text := d.Diagnose(weight, value, s.dead); text != "" {
				s.options.Warn(fmt.Sprintf("loss[%d] (%s): %s", i, s.spec.TermName(i), text))
			}
		}
	}
}

// collapsed returns an error if, at the end of an epoch, every unit is dead and a term has an adaptive weight: further
// training would not revive the model.
func (t *trainee) collapsed(m Metrics) error {
	dead, measured := m.Measured.Number("dead_units")
	if !measured || t.watcher == nil {
		return nil
	}
	if t.dead = dead / float64(t.watcher.units); t.dead < 1 {
		return nil
	}
	var held []string
	for i, l := range t.spec.Losses {
		if weight, value, ok := t.unweighted(m, i); ok {
			text := fmt.Sprintf("the weight of loss[%d] (%s) is %s and the term %s", i, t.spec.TermName(i), numeral.Digits(weight, 3), numeral.Float(value))
			if rule, is := l.Weight.(*losses.Multiplier); is {
				text += fmt.Sprintf(", its limit %g", rule.Limit)
			}
			held = append(held, text)
		}
	}
	if len(held) == 0 {
		return nil
	}
	if _, why := t.watcher.belowZero(); why != "" {
		held[len(held)-1] += "; " + why
	}
	return &Diverged{Run: t.run, Epoch: t.progress.Epoch + 1, Step: t.progress.Step,
		Collapse: "every unit is dead: " + strings.Join(held, ", and "), advice: "a larger limit, a smaller rate or an upper bound `most` of the weight"}
}

// The thresholds of [watcher.belowZero] and [trainee.badBelowZero]. Noise around 0 can reach the first; a model that finds more than noise
// stays below the second.
const (
	leastBelowZero = 0.2 // share of the sum of squares in values below 0
	leastError     = 0.5 // mse of a bad model, as a share of the variance
)

// badBelowZero returns a warning if the model explains less than half of the variance and a reason is that its images have values below 0.
func (t *trainee) badBelowZero(m Metrics) string {
	compares := func(l config.Loss) bool {
		return l.On == losses.Output && l.Mask == "" && (l.Against == "" || l.Against == data.ImagesColumn)
	}
	if !slices.ContainsFunc(t.spec.Losses, compares) {
		return ""
	}
	variance, why := t.watcher.belowZero()
	if mse, ok := m.Measured.Number("val_mse"); !ok || mse < leastError*variance {
		return ""
	}
	return why
}

// belowZero returns the variance of the first watched images, and a text if many of their values are below 0 while no weight of the
// decoder's last layer is; else "".
func (w *watcher) belowZero() (variance float64, why string) {
	if !w.outputs || w.last == nil || slices.Min(w.last.Data) < 0 || w.images.Bytes(0) != nil {
		return 0, ""
	}
	values, pixels := w.images.First(w.size).Float32(), w.images.Pixels()
	means := make([]float64, pixels)
	below, all := 0.0, 0.0
	for i, v := range values {
		means[i%pixels] += float64(v) / float64(len(values)/pixels)
		if all += float64(v) * float64(v); v < 0 {
			below += float64(v) * float64(v)
		}
	}
	if below < leastBelowZero*all || all == 0 {
		return 0, ""
	}
	for i, v := range values {
		d := float64(v) - means[i%pixels]
		variance += d * d / float64(len(values))
	}
	return variance, fmt.Sprintf(`%.0f %% of the sum of squares of the images is in values below 0, which sums of atoms >= 0 do not reach: shift the images `+
		`(scale = "minmax" in the dataset table), or allow atoms or codes below 0`, 100*below/all)
}

// badTargets returns a warning if a head predicts numbers worse than their mean does, R² < 0, and the numbers are far from 0, where its
// outputs begin: a step of the optimizer is about as long as its learning rate, whatever the unit of the numbers.
func (t *trainee) badTargets(m Metrics) string {
	for _, h := range t.watcher.heads {
		r2, ok := m.Measured.Number("val_r2")
		if !ok {
			r2, ok = m.Measured.Number("val_" + h.Name + ".r2")
		}
		if h.Target == nil || !ok || r2 >= 0 {
			continue
		}
		values, size := t.watcher.columns(0, min(t.watcher.size, t.watcher.images.Len()))[h.Target.Column], max(1, h.Target.Size)
		mean, spread := moments(values, 0, 1)
		if math.Abs(mean) <= max(1, spread) {
			continue
		}
		within := 0.0 // mean variance of one number of the target
		for k := range size {
			_, s := moments(values, k, size)
			within += s * s / float64(size)
		}
		begins := fmt.Sprintf("%s predicts %s worse than its mean does (R² %s): outputs begin near 0, far from numbers of mean %s and standard deviation %s",
			h.Name, h.Target.Column, numeral.Float(r2), numeral.Float(mean), numeral.Float(spread))
		longer := "train longer, with a larger optimizer.learning_rate"
		layers := t.spec.Heads[h.Name].Layers
		switch last := len(layers) - 1; {
		case spread > 3*math.Sqrt(within):
			return fmt.Sprintf("%s. Its %d numbers have different means: give each a head that ends with a layer affine of its mean and standard deviation", begins, size)
		case last >= 0 && layers[last].Kind == "affine":
			return fmt.Sprintf("%s. Its last layer affine begins there if factor is about %.4g and offset %.4g; else %s", begins, cmp.Or(spread, 1), mean, longer)
		default:
			return fmt.Sprintf("%s. End the head with the layer { kind = \"affine\", factor = %.4g, offset = %.4g }, which gives them their unit, or %s", begins, cmp.Or(spread, 1), mean, longer)
		}
	}
	return ""
}

// moments returns mean and standard deviation of every step-th value, beginning at the first-th. Values that are not finite are left out.
func moments(values []float32, first, step int) (mean, spread float64) {
	squares, n := 0.0, 0.0
	for k := first; k < len(values); k += step {
		if y := float64(values[k]); y-y == 0 {
			mean, squares, n = mean+y, squares+y*y, n+1
		}
	}
	mean /= n
	return mean, math.Sqrt(max(0, squares/n-mean*mean))
}

// The thresholds of [job.watchCodes]. The codes of images that differ have a spread of 0.05 and more even if all are positive.
const (
	leastSpread = 1e-3
	leastRank   = 1.5
)

// watchCodes returns a warning, once in a run, if the codes have collapsed at the end of an epoch: all codes are 0, or, for a
// model that compares views, almost equal codes of all images, or codes along one direction, which make the views alike but
// say little of the image.
func (s *job) watchCodes(m Metrics) string {
	if m.silent > 0 && !s.progress.Collapsed {
		s.progress.Collapsed = true
		return fmt.Sprintf("epoch %d: %v", m.Epoch, allDead(s.spec, m.silent))
	}
	spread, measured := m.Measured.Number(spreadKey)
	rank, ranked := m.Measured.Number(rankKey)
	var what string
	switch {
	case s.progress.Collapsed || !measured:
		return ""
	case spread < leastSpread:
		what = fmt.Sprintf("the codes of all samples are almost equal: code_spread %.2g, want at least %g", spread, leastSpread)
	case ranked && rank < leastRank:
		what = fmt.Sprintf("the codes differ along one direction only: effective_rank %.3g, want at least %g", rank, leastRank)
	default:
		return ""
	}
	s.progress.Collapsed = true
	remedies := []string{"lower the learning rate", "enlarge the batch"}
	var spreading []string
	teacher := false
	for _, l := range s.spec.Losses {
		teacher = teacher || l.Loss.Reads().Teacher
		if slices.Contains([]string{"nt_xent", "variance", "covariance", "barlow_twins"}, l.Kind) {
			spreading = append(spreading, l.Kind)
		}
	}
	switch {
	case len(spreading) > 0:
		remedies = append(remedies, "give a larger weight to "+strings.Join(spreading, ", "))
	case !teacher:
		remedies = append(remedies, "add a term that spreads the codes (nt_xent, variance, covariance, barlow_twins)")
	}
	if teacher {
		remedies = append(remedies, "give a larger decay to the teacher")
	}
	return fmt.Sprintf("epoch %d: the codes have collapsed; %s; %s", m.Epoch, what, strings.Join(remedies, ", or "))
}
