package tessera

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/attack"
	"tessera/data"
	"tessera/metrics"
)

// HeadAttack describes attacks on a head of a run.
type HeadAttack struct {
	Head   string // one of [Run.ClassHeads]; "" selects the only head
	Trials []attack.Trial
	Limit  int  // number of attacked images, from the first; 0 attacks all
	From   *Run // run from which the examples are computed; nil for the attacked run
}

// AttackHead measures the effect of attacks on a head that predicts classes. Adversarial examples are computed from the images
// on which the run is evaluated, before `scale` is applied, except images of unknown class. Perturbations and their norms
// refer to the values before scaling. Perturbed values stay within [0,1], or within the range of the fitted samples
// ([Run.Range]) if that is larger. Equal seeds give equal results. The error is [ErrNoClasses] for a model without such a
// head, and [ErrNoGradients] for a baseline.
func (r *Run) AttackHead(ctx context.Context, a HeadAttack) (j *attack.Judgement, err error) {
	if r != nil && r.network == nil && r.coder != nil {
		return nil, fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
	}
	head, err := r.classHead(a.Head)
	if err != nil {
		return nil, err
	}
	images, labels, err := r.labelled(ctx, head, a.Limit)
	if err != nil {
		return nil, err
	}
	trials := slices.Clone(a.Trials)
	for i := range trials {
		if low, high := r.Range(); low < 0 || high > 1 {
			trials[i].Range = [2]float32{low, high}
		}
	}
	err = r.withHead(head, func(model attack.WhiteBox) error {
		if a.From == nil || a.From == r {
			j, err = attack.Judge(ctx, model, nil, images, labels, trials)
			return err
		}
		other, err := a.From.classHead("")
		if err != nil {
			return err
		}
		return a.From.withHead(other, func(source attack.WhiteBox) error {
			j, err = attack.Judge(ctx, model, source, images, labels, trials)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	j.Model, j.Dataset, j.Head = r.Model.Name, r.Model.Dataset.Name, head
	if a.From != nil && a.From != r {
		j.From = a.From.Path
	}
	return j, nil
}

// InputGradients returns the gradient of the cross entropy -log p_c of a head with respect to images, before `scale` is applied. labels
// are the classes c of the images; "" names the only head of [Run.ClassHeads]. The errors are those of [Run.AttackHead].
func (r *Run) InputGradients(head string, images []float32, labels []int) (gradient []float32, err error) {
	if r != nil && r.network == nil && r.coder != nil {
		return nil, fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
	}
	if head, err = r.classHead(head); err != nil {
		return nil, err
	}
	err = r.withHead(head, func(model attack.WhiteBox) error {
		gradient, err = attack.Gradients(model, images, labels)
		return err
	})
	return gradient, err
}

// labelled returns the images of known class, in the column that the head predicts, on which the run is evaluated, before scaling.
func (r *Run) labelled(ctx context.Context, head string, limit int) ([]float32, []int, error) {
	if limit < 0 {
		return nil, nil, fmt.Errorf("tessera: limit: got %d, want >= 0", limit)
	}
	column := r.ClassColumn(head)
	sample, err := r.Sample(ctx, data.TestSplit, slices.DeleteFunc([]string{column}, func(name string) bool { return name == data.LabelsColumn })...)
	if err != nil {
		return nil, nil, err
	}
	all := sample.Images.Classes(column)
	var known, labels []int
	for i, c := range all {
		if c >= 0 && (limit == 0 || len(known) < limit) {
			known, labels = append(known, i), append(labels, c)
		}
	}
	if len(known) == 0 {
		return nil, nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "the class of no image is known: there is no prediction to attack"}
	}
	return sample.Images.Scaled(nil).Subset(known).Float32(), labels, nil
}

// withHead calls f with a classifier for a head of the run. Its inputs are images before scaling.
func (r *Run) withHead(head string, f func(attack.WhiteBox) error) error {
	return r.computing(func(c metrics.Coder) error {
		coder, ok := c.(metrics.HeadAttacker)
		if !ok {
			return errors.New("tessera: the run has no heads")
		}
		model, err := coder.Attacked(head, r.scaling)
		if err != nil {
			return err
		}
		return f(model)
	})
}
