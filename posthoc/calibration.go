package posthoc

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Calibration changes the logits of a head so that its probabilities, the softmax of the logits, agree with the
// frequencies of the classes. There are three methods.
//
//	temperature  z / T: one number for all classes. The order of the classes stays the same.
//	platt        a_k z_k + b_k. For two classes this is Platt's scaling, p = sigmoid(a (z_1 - z_0) + b); for more classes it is vector scaling.
//	isotonic     log of g_k(p_k) / sum_j g_j(p_j), where p is the softmax of z. Each g_k is piecewise linear and does not decrease.
//
// Sources: Guo et al., On calibration of modern neural networks, ICML 2017 (temperature and vector scaling); Platt,
// Probabilistic outputs for support vector machines, 1999; Zadrozny and Elkan, Transforming classifier scores into
// accurate multiclass probability estimates, KDD 2002 (isotonic regression, one class against the rest).
type Calibration struct {
	Method  string `json:"method"`
	Split   string `json:"split,omitempty"` // split of the samples to which the calibration was fitted
	Samples int    `json:"samples"`

	Temperature float64   `json:"temperature,omitempty"` // T of the formula
	Scales      []float64 `json:"scales,omitempty"`      // a of the formula, one for each class
	Biases      []float64 `json:"biases,omitempty"`      // b of the formula, one for each class
	Curves      []Curve   `json:"curves,omitempty"`      // g of the formula, one for each class
}

// The methods.
const (
	Temperature = "temperature"
	Platt       = "platt"
	Isotonic    = "isotonic"
)

// Methods lists the methods, with the default first.
func Methods() []string { return []string{Temperature, Platt, Isotonic} }

// fits maps each method to the function that fits it. [Fit] has checked the logits and classes.
var fits = map[string]func(c *Calibration, logits []float32, labels []int, classes int) error{
	Temperature: fitTemperature, Platt: fitPlatt, Isotonic: fitIsotonic,
}

// Fit fits a calibration to the logits of samples whose classes are known. logits has one row for each label. Samples
// with a negative label, which means an unknown class, are left out. Fit returns an error for an unknown method, for
// logits that are not finite, and for samples that do not determine the calibration.
func Fit(method string, logits []float32, labels []int) (*Calibration, error) {
	fit, ok := fits[method]
	if !ok {
		return nil, fmt.Errorf("posthoc: unknown method %q, want one of %s", method, strings.Join(Methods(), ", "))
	}
	if len(labels) == 0 || len(logits)%len(labels) != 0 || len(logits)/len(labels) < 2 {
		return nil, fmt.Errorf("posthoc: got %d logits of %d samples, want at least 2 for each", len(logits), len(labels))
	}
	classes := len(logits) / len(labels)
	var rows []float32
	var known []int
	for i, class := range labels {
		if class >= classes {
			return nil, fmt.Errorf("posthoc: sample %d has the class %d, the head has %d logits", i, class, classes)
		}
		if class >= 0 {
			known, rows = append(known, class), append(rows, logits[i*classes:(i+1)*classes]...)
		}
	}
	for i, z := range rows {
		if z-z != 0 {
			return nil, fmt.Errorf("posthoc: a logit of sample %d is %g", i/classes, z)
		}
	}
	if occurring := slices.Compact(slices.Sorted(slices.Values(known))); len(occurring) < 2 {
		return nil, fmt.Errorf("%s: the samples have %d classes, want at least 2: they do not determine a calibration", method, len(occurring))
	}
	c := &Calibration{Method: method, Samples: len(known)}
	if err := fit(c, rows, known, classes); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return c, c.check(classes)
}

// Apply changes the logits in place. They have one row of classes values for each sample. A nil calibration changes
// nothing.
func (c *Calibration) Apply(logits []float32, classes int) {
	if c == nil {
		return
	}
	p := make([]float64, classes)
	for at := 0; at+classes <= len(logits); at += classes {
		row := logits[at : at+classes]
		switch c.Method {
		case Isotonic:
			c.isotonic(row, p)
		default:
			for k, z := range row {
				scale, bias := c.linear(k)
				row[k] = float32(scale*float64(z) + bias)
			}
		}
	}
}

// Linear returns the factor and the summand for each logit of a sample. ok is false for isotonic calibration, which is
// not linear in the logits.
func (c *Calibration) Linear(classes int) (scales, biases []float32, ok bool) {
	if c.Method == Isotonic {
		return nil, nil, false
	}
	for k := range classes {
		scale, bias := c.linear(k)
		scales, biases = append(scales, float32(scale)), append(biases, float32(bias))
	}
	return scales, biases, true
}

func (c *Calibration) linear(k int) (scale, bias float64) {
	if c.Method == Temperature {
		return 1 / c.Temperature, 0
	}
	return c.Scales[k], c.Biases[k]
}

// String describes the calibration, as in "temperature 1.83".
func (c *Calibration) String() string {
	if c.Method == Temperature {
		return fmt.Sprintf("temperature %.4g", c.Temperature)
	}
	return c.Method
}

// check returns an error for values that Fit never produces.
func (c *Calibration) check(classes int) error {
	numbers := slices.Concat([]float64{c.Temperature}, c.Scales, c.Biases)
	for _, g := range c.Curves {
		numbers = append(append(numbers, g.X...), g.Y...)
		if len(g.X) != len(g.Y) || len(g.X) == 0 || !slices.IsSorted(g.X) || !slices.IsSorted(g.Y) {
			return fmt.Errorf("a curve does not ascend")
		}
	}
	for _, v := range numbers {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("got %g, want a finite number", v)
		}
	}
	of := map[string]int{Temperature: classes, Platt: len(c.Scales), Isotonic: len(c.Curves)}
	switch n, ok := of[c.Method]; {
	case !ok:
		return fmt.Errorf("unknown method %q", c.Method)
	case n != classes || c.Method == Platt && len(c.Biases) != classes:
		return fmt.Errorf("%s of %d classes, the head has %d", c.Method, n, classes)
	case c.Method == Temperature && !(c.Temperature > 0):
		return fmt.Errorf("temperature: got %g, want > 0", c.Temperature)
	}
	return nil
}
