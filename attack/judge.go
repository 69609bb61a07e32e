package attack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// Accuracy is the share of images that are classified correctly, with its 95 % confidence interval by Wilson's score.
// The interval treats the images as independent draws.
type Accuracy struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// AccuracyOf returns the accuracy for right correctly classified images of n.
func AccuracyOf(right, n int) Accuracy {
	const z = 1.959963984540054 // the 97.5 % quantile of the normal distribution
	p, of := float64(right)/float64(n), float64(n)
	centre := (p + z*z/(2*of)) / (1 + z*z/of)
	half := z / (1 + z*z/of) * math.Sqrt(p*(1-p)/of+z*z/(4*of*of))
	return Accuracy{p, max(0, centre-half), min(1, centre+half)}
}

// Described names an attack and its settings in a result.
type Described struct {
	Method    string         `json:"method"` // name of the attack
	Norm      Norm           `json:"norm"`
	Epsilon   float64        `json:"epsilon"`
	Objective Objective      `json:"objective,omitempty"` // of an attack on a head that uses it
	Settings  map[string]any `json:"-"`                   // the keys of the attack that are not 0; in JSON they are members of the result
}

// described describes a trial and how it was carried out.
func (t *Trial) described(task *Task) Described {
	d := Described{Method: t.Name(), Norm: t.Norm, Epsilon: t.Epsilon, Settings: map[string]any{}}
	if task.aims && task.Labels != nil {
		d.Objective = task.Objective
	}
	for _, f := range table.Fields(t.Attack) {
		if !f.Value.IsZero() {
			d.Settings[f.Key] = f.Value.Interface()
		}
	}
	if a, ok := t.Attack.(Iterative); ok {
		d.Settings["steps"], d.Settings["step_size"] = a.Plan(t.Epsilon, 1)
	}
	return d
}

// joined returns one JSON object with the members of several.
func joined(objects ...any) (all []byte, err error) {
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		switch {
		case len(all) == 0:
			all = text
		case len(text) > len("{}"):
			all = append(append(all[:len(all)-1], ','), text[1:]...)
		}
	}
	return all, nil
}

// TrialResult is the effect of one attack on a classifier.
type TrialResult struct {
	Described
	Effect
	Examples []float32 `json:"-"` // the examples of the first [Trial.Keep] images
}

func (r TrialResult) MarshalJSON() ([]byte, error) { return joined(r.Described, r.Settings, r.Effect) }

// Effect is what an attack on a classifier attains.
type Effect struct {
	Curve    []CurvePoint `json:"curve,omitempty"` // accuracy against the number of queries, for a black-box attack
	Accuracy Accuracy     `json:"accuracy"`        // robust accuracy: accuracy on the adversarial examples
	Risk     float64      `json:"risk"`            // adversarial risk: mean cross entropy on the adversarial examples, in nats
	Largest  float64      `json:"largest"`         // largest norm of a perturbation, in float64; at most epsilon
}

// Judgement is the effect of several attacks on a classifier.
type Judgement struct {
	Model   string `json:"model"`
	Dataset string `json:"dataset"`
	Place
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
// examples are computed on source, or on the model itself if source is nil. With another model as
// source, Judge measures whether examples transfer. No example exceeds its ball, which is verified in float64. The
// result is deterministic.
func Judge(ctx context.Context, model, source Classifier, images []float32, labels []int, trials []Trial) (*Judgement, error) {
	own := source == nil
	if own {
		source = model
	}
	judge, err := NewTask(ctx, Trial{}, model, images, labels)
	if err != nil {
		return nil, err
	}
	if volume.Of(source.Shape()) != judge.Pixels || source.Classes() != model.Classes() {
		return nil, fmt.Errorf("attack: the examples are computed on a model of %d values and %d classes, want %d and %d as of the attacked one",
			volume.Of(source.Shape()), source.Classes(), judge.Pixels, model.Classes())
	}
	if len(trials) == 0 {
		return nil, errors.New("attack: no attacks")
	}
	for i := range trials {
		if err := cmp.Or(trials[i].Check(), trials[i].Suits(source.Shape())); err != nil {
			return nil, fmt.Errorf("attack %d: %w", i, err)
		}
	}
	j := &Judgement{Images: judge.Samples}
	j.Range[0], j.Range[1] = trials[0].span()
	if j.Accuracy, j.Risk, err = judge.risk(images); err != nil {
		return nil, fmt.Errorf("attack: clean samples: %w", err)
	}
	for _, t := range trials {
		r, err := t.judged(ctx, judge, source)
		if err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		if n := len(r.Examples); n > len(j.Clean) {
			j.Clean, j.Classes = slices.Clone(images[:n]), labels[:n/judge.Pixels]
		}
		j.Trials = append(j.Trials, r)
	}
	if own {
		j.Masked = masked(j.Trials)
	}
	return j, nil
}

// judged computes the examples of a trial on source, and measures the model of judge on them.
func (t *Trial) judged(ctx context.Context, judge *Task, source Classifier) (r TrialResult, err error) {
	task, err := NewTask(ctx, *t, source, judge.Clean, judge.Labels)
	if err != nil {
		return r, err
	}
	x, largest, err := t.examples(task)
	if err != nil {
		return r, err
	}
	r = TrialResult{Described: t.described(task), Examples: slices.Clone(x[:min(max(t.Keep, 0), task.Samples)*task.Pixels])}
	r.Largest = largest
	if b, ok := t.Attack.(BlackBox); ok {
		r.Curve = curve(task.spent, b.Budget())
	}
	r.Accuracy, r.Risk, err = judge.risk(x)
	return r, err
}

// risk returns the accuracy and the mean cross entropy, in nats, of the model on the images x.
func (t *Task) risk(x []float32) (a Accuracy, risk float64, err error) {
	o, err := t.Outcomes(x, lists.Range(0, t.Samples))
	if err != nil {
		return a, 0, err
	}
	right := 0
	for i, loss := range o.Loss {
		if risk += loss / float64(t.Samples); !o.Wrong[i] {
			right++
		}
	}
	return AccuracyOf(right, t.Samples), risk, nil
}

// CurvePoint is a point of the curve of the accuracy against the number of queries per image.
type CurvePoint struct {
	Queries  int     `json:"queries"`
	Accuracy float64 `json:"accuracy"`
}

// curve returns the accuracy after 1, 2, 5, 10, 20, 50, ... queries and after budget queries.
func curve(spent []int, budget int) (points []CurvePoint) {
	at := func(queries int) {
		right := 0
		for _, n := range spent {
			if n < 0 || n > queries {
				right++
			}
		}
		points = append(points, CurvePoint{queries, float64(right) / float64(len(spent))})
	}
	for tens := 1; ; tens *= 10 {
		for _, n := range []int{tens, 2 * tens, 5 * tens} {
			if n >= budget {
				at(budget)
				return points
			}
			at(n)
		}
	}
}

// masked lists the black-box attacks that are stronger than the gradient attacks in the same ball: their accuracy is
// lower by more than 0.01. The gradients are then misleading (Athalye, Carlini and Wagner, Obfuscated Gradients Give a
// False Sense of Security, 2018).
func masked(results []TrialResult) (list []string) {
	for _, black := range results {
		if !black.blackBox() {
			continue
		}
		best := math.Inf(1)
		for _, white := range results {
			if !white.blackBox() && white.Norm == black.Norm && white.Epsilon == black.Epsilon {
				best = min(best, white.Accuracy.Value)
			}
		}
		if !math.IsInf(best, 1) && best > black.Accuracy.Value+0.01 {
			list = append(list, fmt.Sprintf("%s %g: %s leaves an accuracy of %.4f, the attacks by gradients only %.4f: the gradients are masked, do not judge the model by them",
				black.Norm, black.Epsilon, black.Method, black.Accuracy.Value, best))
		}
	}
	return list
}

// blackBox reports whether the attack uses queries.
func (r *TrialResult) blackBox() bool { return r.Curve != nil }
