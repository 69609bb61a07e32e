package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// Result is the effect of one attack on a model.
type Result struct {
	Described
	Change
}

func (r Result) MarshalJSON() ([]byte, error) { return joined(r.Described, r.Settings, r.Change) }

// Change is what an attack on reconstructions attains.
type Change struct {
	MSE        float64 `json:"mse"`         // squared error between the output for attacked images and the clean images, mean over pixels and images
	CodeChange float64 `json:"code_change"` // |h(x')-h(x)| / |h(x)|, mean over the images whose code is not 0; 0 if there are none
}

// Report is the effect of several attacks on a model.
type Report struct {
	Model   string `json:"model"`
	Dataset string `json:"dataset"`
	Place
	Images  int      `json:"images"`
	MSE     float64  `json:"mse"` // mean squared error of the output for clean images
	Attacks []Result `json:"attacks"`
}

// Place says which samples of a data set were attacked.
type Place struct {
	Split string `json:"split"`
	Note  string `json:"note,omitempty"` // whether they were fitted
}

// Measure runs each attack on the images. Black-box attacks are those of classifiers. The result is deterministic.
func Measure(ctx context.Context, target Target, images []float32, attacks []Trial) (*Report, error) {
	clean, err := (&Trial{}).reconstruction(ctx, target, images)
	if err != nil {
		return nil, err
	}
	if len(attacks) == 0 {
		return nil, errors.New("attack: no attacks")
	}
	for i := range attacks {
		if err := cmp.Or(attacks[i].Check(), attacks[i].Suits(target.Shape())); err != nil {
			return nil, fmt.Errorf("attack %d: %w", i, err)
		}
		if _, ok := attacks[i].Attack.(BlackBox); ok {
			return nil, part.KeyErrorf("attack", "%s attacks predictions of classes, not reconstructions", attacks[i].Name())
		}
	}
	codes, mse, err := clean.reconstructed(target, images)
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	r := &Report{Images: clean.Samples, MSE: mse}
	for i := range attacks {
		a := &attacks[i]
		task, err := a.reconstruction(ctx, target, images)
		if err != nil {
			return nil, err
		}
		x, _, err := a.examples(task)
		if err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		attacked, mse, err := clean.reconstructed(target, x)
		if err != nil {
			return nil, fmt.Errorf("attack: %w", err)
		}
		one := Result{a.described(task), Change{mse, codeChange(attacked, codes, target.Units())}}
		if !finite(one.MSE) || !finite(one.CodeChange) {
			return nil, part.KeyErrorf("epsilon", "got %v: the code or the output of attacked samples is not finite; lower it", a.Epsilon)
		}
		r.Attacks = append(r.Attacks, one)
	}
	return r, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// reconstructed returns the codes of x, and the mean squared error of its outputs from the clean images.
func (t *Task) reconstructed(target Target, x []float32) (codes []float32, mse float64, err error) {
	err = t.batches(x, lists.Range(0, t.Samples), func(x []float32, of []int, _, n int) error {
		h, err := target.Encode(x)
		if err != nil {
			return err
		}
		codes = append(codes, h[:n*target.Units()]...)
		outputs, err := target.Decode(h)
		for k, i := range of[:n] {
			if err == nil {
				d := distance(t.Sample(outputs, k), t.Sample(t.Clean, i))
				mse += d * d / float64(len(t.Clean))
			}
		}
		return err
	})
	return codes, mse, err
}

// codeChange returns the mean change of the codes, relative to their length.
func codeChange(codes, clean []float32, units int) float64 {
	sum, n := 0.0, 0
	for at := 0; at < len(clean); at += units {
		if length := vectors.Norm(clean[at : at+units]); length > 0 {
			sum += distance(codes[at:at+units], clean[at:at+units]) / length
			n++
		}
	}
	return sum / float64(max(n, 1))
}
