package metrics

import (
	"cmp"
	"context"

	"tessera/attack"
	"tessera/data"
)

var _ Parted = (*Robustness)(nil)

func init() {
	Registry.Register("robustness", "accuracy and risk of a head under attack", func() Metric {
		return &Robustness{Attack: "pgd", By: &attack.PGD{Steps: 40}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.1}, Objective: attack.CrossEntropy, Limit: 1000, Seed: 1}
	})
}

// Robustness measures the accuracy of a head on adversarial examples. An attack, projected gradient descent by default,
// computes them from images of a known class. Perturbations and their norms refer to values before scaling; the examples stay
// within the range of the fitted samples, which is at least [0,1]. With the same settings the results equal those of `tessera
// attack --on`. Gradients and logits are those before a calibration.
//
// Source: Madry et al., Towards deep learning models resistant to adversarial attacks, 2018.
type Robustness struct {
	Attack attack.Name `toml:"attack" doc:"attack that computes the examples; its keys are settings too, as in steps=10"`
	attack.Ball
	Objective attack.Objective `toml:"objective" oneof:"cross_entropy margin" doc:"what the attack maximises: cross_entropy or margin"`
	Limit     int              `toml:"limit" want:">= 0" doc:"number of samples that are attacked, from the first of a known class; 0 attacks all"`
	Seed      uint64           `toml:"seed" doc:"seed of the random points"`

	By attack.Attack // the attack with its settings; if Attack is the name of another one, it has the defaults
}

// HeadAttacker is a [Coder] whose heads can be attacked by gradients.
type HeadAttacker interface {
	Coder
	// Attacked returns a head whose inputs are images before the given scaling; nil for none.
	Attacked(head string, scaling *data.Scaling) (attack.WhiteBox, error)
}

func (*Robustness) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "robust_accuracy", Better: Higher, Doc: "share of the labelled samples for which the attack, PGD by default, ends at no misclassified sample of the ball: of the first 1,000 samples, " +
				"40 steps in linf 0.1. `--with norm=l2 --with epsilon=2` changes the ball; `attack`, the keys of the attack such as `steps` and `restarts`, `objective` and `limit` are further keys (Madry et al. 2018). For heads that a loss compares with classes"},
			{Name: "robust_accuracy_low", Better: Higher, Doc: "lower end of the 95 % interval of `robust_accuracy` over samples, Wilson's score"},
			{Name: "robust_accuracy_high", Better: Higher, Doc: "upper end of that interval"},
			{Name: "adversarial_risk", Unit: "nats", Better: Lower, Doc: "mean of -log p_c of the same adversarial examples, p_c the probability of the class of the sample"},
		},
		Reads: ReadsImages | ReadsLogits | ReadsLabels, ScaleFree: true, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *Robustness) Part() any {
	if e, ok := attack.Registry.Lookup(string(m.Attack)); ok && attack.Registry.NameOf(m.By) != e.Name {
		m.By = e.New()
	}
	return m.By
}

func (m *Robustness) Start(s *Subject) (Meter, error) {
	by, _ := m.Part().(attack.Attack)
	trial := attack.Trial{Attack: by, Ball: m.Ball, Objective: m.Objective, Seed: m.Seed}
	shift, scaling := s.Scaling.Split()
	unscaled := s.Unscaled.Scaled(shift)
	switch width := s.Range[1] - s.Range[0]; {
	case shift != nil && unscaled != nil:
		trial.Range[0], trial.Range[1] = unscaled.Range()
	case shift != nil:
		trial.Range = [2]float32{-width, width}
	case s.Range[0] < 0 || s.Range[1] > 1:
		trial.Range = s.Range
	}
	if err := cmp.Or(trial.Check(), trial.Suits(s.Shape)); err != nil {
		return nil, err
	}
	c, ok := s.Coder.(HeadAttacker)
	if !ok {
		return Fixed(NotApplicable("the model gives no gradients")), nil
	}
	head, err := c.Attacked(s.Head, scaling)
	if err != nil {
		return Fixed(NotApplicable(err.Error())), nil
	}
	return &robustnessMeter{Robustness: *m, trial: trial, head: head, scaling: scaling, unscaled: unscaled}, nil
}

type robustnessMeter struct {
	Robustness
	trial attack.Trial
	head  attack.WhiteBox

	scaling  *data.Scaling // second part of [data.Scaling.Split]
	unscaled *data.Images
	seen     int // images of earlier batches

	images []float32 // images of a known class, before scaling, or minus the shift of an exact scaling
	labels []int
}

func (m *robustnessMeter) Add(b *Batch) error {
	for i, class := range b.Labels {
		if class >= 0 && (m.Limit == 0 || len(m.labels) < m.Limit) {
			pixels := len(b.Images) / len(b.Labels)
			from := len(m.images)
			m.images, m.labels = append(m.images, b.Images[i*pixels:(i+1)*pixels]...), append(m.labels, class)
			if m.unscaled != nil { // what the scaling has clipped cannot be restored
				m.unscaled.Batch(m.images[from:], []int{m.seen + i})
			} else {
				m.scaling.Undo(m.images[from:])
			}
		}
	}
	m.seen += len(b.Labels)
	return nil
}

func (m *robustnessMeter) Values(ctx context.Context) ([]Value, error) {
	if len(m.labels) == 0 {
		return []Value{NotApplicable(noLabels)}, nil
	}
	j, err := attack.Judge(ctx, m.head, nil, m.images, m.labels, []attack.Trial{m.trial})
	if err != nil {
		return nil, err
	}
	r := j.Trials[0]
	return []Value{Number(r.Accuracy.Value), Number(r.Accuracy.Low), Number(r.Accuracy.High), Number(r.Risk)}, nil
}
