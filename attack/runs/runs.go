// Package runs attacks trained runs: their reconstructions, and the predictions of their heads.
package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// ErrNoGradients is the error for an attack on a model of package classical, which has no gradients.
var ErrNoGradients = errors.New("it has no gradients to attack it with")

// Measure measures the effect of attacks on the reconstructions of a run. Adversarial examples are computed from the first limit images (0: all) on
// which the run is evaluated. Equal seeds of the attacks give equal reports. If the data set has a `scale`, perturbations and errors
// are those of scaled values. If an attack has no range, perturbed values stay within [0,1] or, if it is larger, within the range of the
// fitted samples (Range of the run); with a `scale`, within that of the measured samples. It returns [ErrNoGradients] for a baseline.
func Measure(ctx context.Context, r *tessera.Run, attacks []attack.Trial, limit int) (*attack.Report, error) {
	if err := attacked(r, func(attack.Target) error { return nil }); err != nil { // before images are read
		return nil, err
	}
	s, err := r.Sample(ctx, evaluation.PlanOf(r.Model).First)
	if err != nil {
		return nil, err
	}
	images := s.Images
	if images.Holed() {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "entries of its samples are missing or hidden, and attacks compare all of them"}
	}
	low, high := r.Range()
	if r.Scaling() != nil {
		low, high = images.Range()
	}
	attacks = slices.Clone(attacks)
	for i := range attacks {
		if attacks[i].Range == [2]float32{} && (low < 0 || high > 1) {
			attacks[i].Range = [2]float32{low, high}
		}
	}
	if limit > 0 {
		images = images.First(limit)
	}
	var report *attack.Report
	err = attacked(r, func(target attack.Target) error {
		report, err = attack.Measure(ctx, target, images.Float32(), attacks)
		return err
	})
	if err != nil {
		return nil, err
	}
	report.Model, report.Dataset, report.Place = r.Model.Name, r.Model.Dataset.Name, placeOf(r, s)
	return report, nil
}

// placeOf says which samples of a run were attacked.
func placeOf(r *tessera.Run, s *evaluation.Sample) attack.Place {
	split := string(s.Split)
	return attack.Place{Split: split, Note: evaluation.ReportOf(r.Model, &metrics.Result{Split: split}).Note}
}

// attacked calls f with the gradients of the model.
func attacked(r *tessera.Run, f func(attack.Target) error) error {
	return r.Do(func(c metrics.Coder) error {
		target, ok := c.(attack.Target)
		if !ok {
			return fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
		}
		return f(target)
	})
}

// HeadAttack describes attacks on a head of a run.
type HeadAttack struct {
	Head     string // one of ClassHeads; "" selects the only head
	Trials   []attack.Trial
	Limit    int          // number of attacked images, from the first; 0 attacks all
	From     *tessera.Run // run from which the examples are computed; nil for the attacked run
	FromHead string       // head of From from which they are computed; "" for the head with the name of the attacked one, or else the only one
}

// source returns the head from which the examples are computed. head is the attacked one.
func (a HeadAttack) source(head string) (string, error) {
	if a.FromHead == "" && slices.Contains(a.From.ClassHeads(), head) {
		return head, nil
	}
	return a.From.ClassHead(a.FromHead)
}

// Judge measures the effect of attacks on a head that predicts classes. Adversarial examples are computed from the images
// on which the run is evaluated, before `scale` is applied, except images of unknown class. Perturbations and their norms
// refer to the values before scaling. Perturbed values stay within [0,1], or within the range of the fitted samples
// (Range of the run) if that is larger. With an exact scaling, see [data.Scaling.IsExact], images are those minus its shift, and their range
// is that of the measured images. Equal seeds give equal results. The error is [tessera.ErrNoClasses] for a model without such a
// head, and [ErrNoGradients] for a baseline.
func Judge(ctx context.Context, r *tessera.Run, a HeadAttack) (j *attack.Judgement, err error) {
	if err := attacked(r, func(attack.Target) error { return nil }); err != nil {
		return nil, err
	}
	head, err := r.ClassHead(a.Head)
	if err != nil {
		return nil, err
	}
	shift, _ := r.Scaling().Split() // without it, float32 does not represent the images
	sample, images, labels, err := labelled(ctx, r, head, a.Limit)
	if err != nil {
		return nil, err
	}
	trials := slices.Clone(a.Trials)
	for i := range trials {
		low, high := r.Range()
		if shift != nil {
			low, high = images.Range()
		}
		if low < 0 || high > 1 {
			trials[i].Range = [2]float32{low, high}
		}
	}
	values := images.Float32()
	err = withHead(r, head, shift, func(model attack.WhiteBox) error {
		if a.From == nil || a.From == r {
			j, err = attack.Judge(ctx, model, nil, values, labels, trials)
			return err
		}
		other, err := a.source(head)
		if err != nil {
			return err
		}
		return withHead(a.From, other, shift, func(source attack.WhiteBox) error {
			j, err = attack.Judge(ctx, model, source, values, labels, trials)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	j.Model, j.Dataset, j.Place, j.Head = r.Model.Name, r.Model.Dataset.Name, placeOf(r, sample), head
	if a.From != nil && a.From != r {
		if j.From = a.From.Path; a.FromHead != "" {
			j.From += ", head " + a.FromHead
		}
	}
	return j, nil
}

// Gradients returns the gradient of the cross entropy -log p_c of a head with respect to images, before `scale` is applied, or minus
// the shift of an exact scaling, see [data.Scaling.Split]. labels
// are the classes c of the images; "" names the only head of ClassHeads. The errors are those of [Judge].
func Gradients(r *tessera.Run, head string, images []float32, labels []int) (gradient []float32, err error) {
	if err := attacked(r, func(attack.Target) error { return nil }); err != nil {
		return nil, err
	}
	if head, err = r.ClassHead(head); err != nil {
		return nil, err
	}
	shift, _ := r.Scaling().Split()
	err = withHead(r, head, shift, func(model attack.WhiteBox) error {
		gradient, err = attack.Gradients(model, images, labels)
		return err
	})
	return gradient, err
}

// labelled returns the samples on which the run is evaluated, and those of them of known class, in the column that the head predicts, before scaling, or
// minus the shift of an exact scaling.
func labelled(ctx context.Context, r *tessera.Run, head string, limit int) (*evaluation.Sample, *data.Images, []int, error) {
	if limit < 0 {
		return nil, nil, nil, fmt.Errorf("tessera: limit: got %d, want >= 0", limit)
	}
	column := r.ClassColumn(head)
	sample, err := r.Sample(ctx, evaluation.PlanOf(r.Model).First, slices.DeleteFunc([]string{column}, func(name string) bool { return name == data.LabelsColumn })...)
	if err != nil {
		return nil, nil, nil, err
	}
	all := sample.Images.Classes(column)
	var known, labels []int
	for i, c := range all {
		if c >= 0 && (limit == 0 || len(known) < limit) {
			known, labels = append(known, i), append(labels, c)
		}
	}
	if len(known) == 0 {
		return nil, nil, nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "the class of no sample is known: there is no prediction to attack"}
	}
	shift, _ := r.Scaling().Split()
	return sample, sample.Images.Scaled(shift).Subset(known), labels, nil
}

// withHead calls f with a classifier for a head of the run. Its inputs are images before scaling, from which shift has been subtracted.
func withHead(r *tessera.Run, head string, shift *data.Scaling, f func(attack.WhiteBox) error) error {
	return r.Do(func(c metrics.Coder) error {
		coder, ok := c.(metrics.HeadAttacker)
		if !ok {
			return errors.New("tessera: the run has no heads")
		}
		model, err := coder.Attacked(head, r.Scaling().After(shift))
		if err != nil {
			return err
		}
		return f(model)
	})
}
