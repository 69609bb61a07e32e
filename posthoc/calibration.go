package posthoc

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config/part"
)

// Method is a way to calibrate the logits of a head, so that its probabilities, the softmax of the logits, agree with the frequencies of
// the classes. Its exported fields are what it fits; they are stored as JSON. Logits have one row of classes values for each sample.
type Method interface {
	// Fit fits the method to the logits of samples whose classes are known. The logits are finite, and at least two classes occur.
	// It returns an error for samples that do not determine the calibration.
	Fit(logits []float32, labels []int, classes int) error
	// Apply changes the logits in place, each row by itself.
	Apply(logits []float32, classes int)
	// Check returns an error for numbers that Fit never produces, and for another number of classes.
	Check(classes int) error
}

// Linear is a [Method] that multiplies each logit by a factor of its class and adds a number of its class.
type Linear interface {
	Method
	// Linear returns the factors and the summands.
	Linear(classes int) (scales, biases []float64)
}

// Registry contains every method by its name.
var Registry = part.New[Method]("calibration")

// Methods lists the names of the methods, with the default first.
func Methods() []string {
	return first(Registry, Temperature)
}

// first lists the names of a registry, with one of them first.
func first[T any](r *part.Registry[T], name string) []string {
	return append([]string{name}, slices.DeleteFunc(r.Names(), func(other string) bool { return other == name })...)
}

// Calibration is a fitted [Method]. In JSON the fields of the method stand beside its own.
type Calibration struct {
	Method  string
	Split   string // split of the samples to which the calibration was fitted
	Samples int
	Fitted  Method // nil if the method is unknown
}

// about contains the fields of a calibration that do not depend on the method.
type about struct {
	Method  string `json:"method"`
	Split   string `json:"split,omitempty"`
	Samples int    `json:"samples"`
}

func (c *Calibration) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(about{c.Method, c.Split, c.Samples})
	if err != nil || c.Fitted == nil {
		return text, err
	}
	fitted, err := json.Marshal(c.Fitted)
	if err != nil || string(fitted) == "{}" {
		return text, err
	}
	return append(append(text[:len(text)-1], ','), fitted[1:]...), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. An unknown method is an error of [Head.Check].
func (c *Calibration) UnmarshalJSON(text []byte) error {
	var a about
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	*c = Calibration{Method: a.Method, Split: a.Split, Samples: a.Samples}
	e, ok := Registry.Lookup(a.Method)
	if !ok {
		return nil
	}
	c.Fitted = e.New()
	return json.Unmarshal(text, c.Fitted)
}

// Fit fits a calibration to the logits of samples whose classes are known. logits has one row for each label. Samples
// with a negative label, which means an unknown class, are left out. Fit returns an error for an unknown method, for
// logits that are not finite, and for samples that do not determine the calibration.
func Fit(method string, logits []float32, labels []int) (*Calibration, error) {
	e, ok := Registry.Lookup(method)
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
	c := &Calibration{Method: method, Samples: len(known), Fitted: e.New()}
	if err := c.Fitted.Fit(rows, known, classes); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return c, c.check(classes)
}

// Apply changes the logits in place. They have one row of classes values for each sample. A nil calibration changes
// nothing.
func (c *Calibration) Apply(logits []float32, classes int) {
	if c != nil {
		c.Fitted.Apply(logits, classes)
	}
}

// Linear returns the factor and the summand for each logit of a sample. ok is false for a method that is not linear in the
// logits.
func (c *Calibration) Linear(classes int) (scales, biases []float32, ok bool) {
	l, ok := c.Fitted.(Linear)
	if !ok {
		return nil, nil, false
	}
	a, b := l.Linear(classes)
	for k := range classes {
		scales, biases = append(scales, float32(a[k])), append(biases, float32(b[k]))
	}
	return scales, biases, true
}

// String describes the calibration, as in "temperature 1.83".
func (c *Calibration) String() string {
	if s, ok := c.Fitted.(fmt.Stringer); ok {
		return s.String()
	}
	return c.Method
}

// check returns an error for values that Fit never produces.
func (c *Calibration) check(classes int) error {
	if c.Fitted == nil {
		return fmt.Errorf("unknown method %q", c.Method)
	}
	return c.Fitted.Check(classes)
}

// applyLinear changes logits as a [Linear] method does.
func applyLinear(l Linear, logits []float32, classes int) {
	scales, biases := l.Linear(classes)
	for i, z := range logits {
		logits[i] = float32(scales[i%classes]*float64(z) + biases[i%classes])
	}
}

func checkFinite(numbers ...float64) error {
	for _, v := range numbers {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("got %g, want a finite number", v)
		}
	}
	return nil
}

// otherClasses is the error for a method that was fitted to n classes.
func otherClasses(method string, n, classes int) error {
	if n == classes {
		return nil
	}
	return fmt.Errorf("%s of %d classes, the head has %d", method, n, classes)
}
