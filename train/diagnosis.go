package train

import (
	"fmt"
	"math"
	"strings"

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

// diagnose warns of adaptive weights whose terms missed their limits in the last epoch, and of images with values that the model
// cannot have.
func (s *job) diagnose(m Metrics) {
	if s.options.Warn == nil {
		return
	}
	if s.unsigned != "" {
		s.options.Warn(s.unsigned)
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

// mostNegative is the share of the sum of squares in values below 0 that noise around 0 may have.
const mostNegative = 0.05

// negativeShare returns the share of the sum of squares that is in values below 0.
func negativeShare(values []float32) float64 {
	below, all := 0.0, 0.0
	for _, v := range values {
		all += float64(v) * float64(v)
		if v < 0 {
			below += float64(v) * float64(v)
		}
	}
	if all == 0 {
		return 0
	}
	return below / all
}

// cannotSubtract says that the watched images have values below 0, but none of their reconstructions; "" if this is not so.
func (w *watcher) cannotSubtract() string {
	if !w.outputs || w.negative < mostNegative || w.subtracts {
		return ""
	}
	return fmt.Sprintf(`values below 0 have %.0f %% of the sum of squares of the images, and no reconstruction has one: the model adds atoms and `+
		`cannot subtract; shift the values (scale = "minmax" in the dataset table), or allow atoms or codes below 0`, 100*w.negative)
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
			text := fmt.Sprintf("the weight of loss[%d] (%s) is %.3g and the term %.4g", i, t.spec.TermName(i), weight, value)
			if rule, is := l.Weight.(*losses.Multiplier); is {
				text += fmt.Sprintf(", its limit %g", rule.Limit)
			}
			held = append(held, text)
		}
	}
	if len(held) == 0 {
		return nil
	}
	if t.unsigned != "" {
		held[len(held)-1] += "; " + t.unsigned
	}
	return &Diverged{Run: t.run, Epoch: t.progress.Epoch + 1, Step: t.progress.Step,
		Collapse: "every unit is dead: " + strings.Join(held, ", and "), advice: "a larger limit, a smaller rate or an upper bound `most` of the weight"}
}

// The thresholds of [job.watchCodes]. The codes of images that differ have a spread of 0.05 and more even if all are positive.
const (
	leastSpread = 1e-3
	leastRank   = 1.5
)

// watchCodes returns a warning, once in a run, if the codes of a model that compares views have collapsed at the end of an epoch:
// almost equal codes of all images, or codes along one direction, make the views alike but say little of the image.
func (s *job) watchCodes(m Metrics) string {
	spread, measured := m.Measured.Number(spreadKey)
	rank, ranked := m.Measured.Number(rankKey)
	var what string
	switch {
	case s.progress.Collapsed || !measured:
		return ""
	case spread < leastSpread:
		what = fmt.Sprintf("the codes of all images are almost equal: code_spread %.2g, want at least %g", spread, leastSpread)
	case ranked && rank < leastRank:
		what = fmt.Sprintf("the codes differ along one direction only: effective_rank %.3g, want at least %g", rank, leastRank)
	default:
		return ""
	}
	s.progress.Collapsed = true
	return fmt.Sprintf("epoch %d: the codes have collapsed; %s; lower the learning rate, enlarge the batch, give a larger weight to the "+
		"terms that spread the codes (nt_xent, variance, covariance, barlow_twins), or a larger decay to the teacher", m.Epoch, what)
}
