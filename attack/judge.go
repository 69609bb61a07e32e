package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/internal/volume"
)

// Accuracy is the share of images that are classified correctly, with its 95 % confidence interval by Wilson's score.
// The interval treats the images as independent draws.
type Accuracy struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// accuracy returns the accuracy for right correctly classified images of n.
func accuracy(right, n int) Accuracy {
	const z = 1.959963984540054 // the 97.5 % quantile of the normal distribution
	p, of := float64(right)/float64(n), float64(n)
	centre := (p + z*z/(2*of)) / (1 + z*z/of)
	half := z / (1 + z*z/of) * math.Sqrt(p*(1-p)/of+z*z/(4*of*of))
	return Accuracy{p, max(0, centre-half), min(1, centre+half)}
}

// TrialResult is the effect of one attack on a classifier.
type TrialResult struct {
	Method      Method       `json:"method"`
	Norm        Norm         `json:"norm"`
	Epsilon     float64      `json:"epsilon"`
	Objective   Objective    `json:"objective,omitempty"`
	Steps       int          `json:"steps,omitempty"`
	StepSize    float64      `json:"step_size,omitempty"`
	Restarts    int          `json:"restarts,omitempty"`
	RandomStart bool         `json:"random_start,omitempty"`
	Early       bool         `json:"early,omitempty"`
	Queries     int          `json:"queries,omitempty"` // maximum number of queries per image of a black-box attack
	Estimator   Estimator    `json:"estimator,omitempty"`
	Curve       []CurvePoint `json:"curve,omitempty"` // accuracy against the number of queries, for a black-box attack
	Accuracy    Accuracy     `json:"accuracy"`        // robust accuracy: accuracy on the adversarial examples
	Risk        float64      `json:"risk"`            // adversarial risk: mean cross entropy on the adversarial examples, in nats
	Largest     float64      `json:"largest"`         // largest norm of a perturbation, in float64; at most epsilon
	Examples    []float32    `json:"-"`               // the examples of the first [Trial.Keep] images
}

// Judgement is the effect of several attacks on a classifier.
type Judgement struct {
	Model    string        `json:"model"`
	Dataset  string        `json:"dataset"`
	Head     string        `json:"head"`
	From     string        `json:"from,omitempty"` // model for which the examples were computed, if it is another one
	Images   int           `json:"images"`
	Accuracy Accuracy      `json:"accuracy"` // accuracy on clean images
	Risk     float64       `json:"risk"`     // standard risk: mean cross entropy on clean images, in nats
	Range    [2]float32    `json:"range"`    // range of pixel values
	Trials   []TrialResult `json:"trials"`
	Clean    []float32     `json:"-"`                // the first images, as many as the largest [Trial.Keep]
	Classes  []int         `json:"-"`                // the classes of these images
	Masked   []string      `json:"masked,omitempty"` // balls in which a black-box attack is stronger than the gradient attacks
}

// Judge runs each trial on images whose classes are known, and measures the model on the adversarial examples. The
// examples are computed with the gradients of source, or of the model itself if source is nil. With another model as
// source, Judge measures whether examples transfer. No example exceeds its ball, which is verified in float64. The
// result is deterministic.
func Judge(ctx context.Context, model, source Classifier, images []float32, labels []int, trials []Trial) (*Judgement, error) {
	own := source == nil
	if own {
		source = model
	}
	s, err := newSubject(ctx, model, source, images, labels)
	if err != nil {
		return nil, err
	}
	if len(trials) == 0 {
		return nil, errors.New("attack: no attacks")
	}
	for i := range trials {
		if err := cmp.Or(trials[i].Check(), trials[i].suits(source.Shape())); err != nil {
			return nil, fmt.Errorf("attack %d: %w", i, err)
		}
	}
	j := &Judgement{Images: s.inputs}
	j.Range[0], j.Range[1] = trials[0].span()
	if j.Accuracy, j.Risk, err = s.risk(model, images); err != nil {
		return nil, fmt.Errorf("attack: clean images: %w", err)
	}
	for _, t := range trials {
		if first := t.kept(s, images); len(first) > len(j.Clean) {
			j.Clean, j.Classes = first, labels[:len(first)/s.pixels]
		}
		if t.Method.blackBox() {
			r, err := t.queried(s, model)
			if err != nil {
				return nil, fmt.Errorf("attack: %w", err)
			}
			j.Trials = append(j.Trials, r)
			continue
		}
		r := TrialResult{Method: t.Method, Norm: t.Norm, Epsilon: t.Epsilon, Objective: t.objective(), Steps: t.Rounds(), StepSize: t.step(), Restarts: t.Restarts, RandomStart: t.RandomStart, Early: t.Early}
		x, err := t.byGradient(s)
		if err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		if r.Largest, err = t.largest(x, images, s.pixels); err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		if r.Accuracy, r.Risk, err = s.risk(model, x); err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		r.Examples = t.kept(s, x)
		j.Trials = append(j.Trials, r)
	}
	if own {
		j.Masked = masked(j.Trials)
	}
	return j, nil
}

// queried returns the result of a black-box attack.
func (t *Trial) queried(s *subject, model Classifier) (r TrialResult, err error) {
	r = TrialResult{Method: t.Method, Norm: t.Norm, Epsilon: t.Epsilon, Queries: t.budget()}
	if t.Method == Score {
		r.Objective, r.Estimator = t.objective(), cmp.Or(t.Estimator, NES)
	}
	x, spent, err := t.byQueries(s)
	if err != nil {
		return r, err
	}
	r.Curve = curve(spent, r.Queries)
	if r.Largest, err = t.largest(x, s.images, s.pixels); err == nil {
		r.Accuracy, r.Risk, err = s.risk(model, x)
	}
	r.Examples = t.kept(s, x)
	return r, err
}

// kept returns the examples that the result keeps.
func (t *Trial) kept(s *subject, x []float32) []float32 {
	return slices.Clone(x[:min(max(t.Keep, 0), s.inputs)*s.pixels])
}

// objective returns the function that the attack maximises.
func (t *Trial) objective() Objective {
	if t.Objective == "" {
		return CrossEntropy
	}
	return t.Objective
}

// newSubject returns a classifier with its images. It returns an error if the images or their classes are invalid.
func newSubject(ctx context.Context, model, source Classifier, images []float32, labels []int) (*subject, error) {
	switch {
	case ctx == nil:
		return nil, errors.New("attack: no context: give context.Background()")
	case model == nil:
		return nil, errNoTarget
	}
	s := &subject{ctx: ctx, model: source, images: images, labels: labels, pixels: volume.Of(model.Shape()), inputs: len(labels)}
	switch {
	case s.inputs == 0:
		return nil, errors.New("attack: no images whose class is known")
	case len(images) != s.inputs*s.pixels:
		return nil, fmt.Errorf("attack: got %d values of images, want %d for %d classes", len(images), s.inputs*s.pixels, s.inputs)
	case volume.Of(source.Shape()) != s.pixels || source.Classes() != model.Classes():
		return nil, fmt.Errorf("attack: the examples are computed on a model of %d values and %d classes, want %d and %d as of the attacked one",
			volume.Of(source.Shape()), source.Classes(), s.pixels, model.Classes())
	}
	for i, c := range labels {
		if c < 0 || c >= model.Classes() {
			return nil, fmt.Errorf("attack: image %d has the class %d, but the head has %d logits", i, c, model.Classes())
		}
	}
	return s, nil
}

// risk returns the accuracy and the mean cross entropy, in nats, of a model on the images x.
func (s *subject) risk(model Classifier, x []float32) (a Accuracy, risk float64, err error) {
	right := 0
	err = s.batches(indices(s.inputs), func(batch []int, n int) error {
		o, err := s.judge(model, s.gathered(x, batch), s.classes(batch))
		for k := range batch[:n] {
			risk += o.loss[k] / float64(s.inputs)
			if !o.wrong[k] {
				right++
			}
		}
		return err
	})
	return accuracy(right, s.inputs), risk, err
}
