package data

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/vectors"
)

// Scaler is a kind of scaling of samples. Its fields with keys are its settings.
type Scaler interface {
	// Fit returns the scaling of samples, as it is kept with a model. Statistics are those of the samples m, which are the fitted ones. It
	// leaves m and its own settings as they are. A scaling that is no affine map of each value is a [Step]: see [NewSteps].
	Fit(m *Images) (*Scaling, error)
	// Fits reports whether it uses statistics of the samples.
	Fits() bool
}

// Step is a fitted scaling of a sample by itself. Its exported fields are kept with the model, as JSON.
type Step interface {
	Scaler
	// Apply scales one sample in place: the values in these columns of a row of a sparse matrix, whose other values are 0, or, if columns is
	// nil, all values. NaN is a missing value and stays NaN. It takes any number.
	Apply(columns []int32, values []float32)
	// FittedTo reports whether it has been fitted to samples of this number of values.
	FittedTo(values int) bool
}

// Inverse is a [Step] that can be undone, value by value.
type Inverse interface {
	Step
	Undo(values []float32)
}

// Scalings contains every kind of scaling.
var Scalings = part.New[Scaler]("scaling")

// Scale is the key scale: the scalings of a data set, in order; none if it is empty. Values of type byte always become value/255.
//
// Steps come first; the last scaling may be an affine map of every value, such as "standardise". "bytes" and "uint16" are applied when a
// file is read.
type Scale []Scaler

// divider is a scaling that is applied when the numbers of a file are read.
type divider interface{ divisor() float32 }

// divisor returns the number by which the numbers of a file are divided when they are read, 0 for none.
func (s Scale) divisor() float32 {
	if len(s) > 0 {
		if d, ok := s[0].(divider); ok {
			return d.divisor()
		}
	}
	return 0
}

// Fitted reports whether the scaling uses statistics of the fitted samples.
func (s Scale) Fitted() bool { return slices.ContainsFunc(s, Scaler.Fits) }

// subtracts reports whether a mean or minimum is subtracted from the numbers of a file, before they are rounded to float32.
func (s Scale) subtracts() bool { return len(s) == 1 && s[0].Fits() && !isStep(s[0]) }

func isStep(s Scaler) bool {
	_, ok := s.(Step)
	return ok
}

// ScaleFitter is implemented by sources whose samples may be scaled by statistics of the fitted samples.
type ScaleFitter interface {
	FitsScale() bool
}

// check returns an error for scalings in an order that is not possible, and for settings that are not.
func (s Scale) check() error {
	for i, one := range s {
		_, divides := one.(divider)
		switch {
		case divides && i > 0:
			return part.KeyErrorf("scale", "%s divides the numbers of a file when they are read: want it first", Scalings.NameOf(one))
		case !divides && i < len(s)-1 && !isStep(one):
			return part.KeyErrorf("scale", "%s is an affine map of each value, so that nothing follows it: want it last", Scalings.NameOf(one))
		}
		if c, ok := one.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				return part.KeyErrorf("scale", "%s: %v", Scalings.NameOf(one), err)
			}
		}
	}
	return nil
}

// OfValues returns an error for scalings that are not possible, and for "bytes" and "uint16", which are for numbers of files, and not for
// values that are computed.
func (s Scale) OfValues() error {
	if s.divisor() != 0 {
		return part.KeyErrorf("scale", "got %q, which is for numbers of files: want another scaling, or a factor", Scalings.NameOf(s[0]))
	}
	return s.check()
}

// ScaleIsFitted reports whether a source scales its samples by statistics of the fitted samples. Another [Selection] then
// gives other values for the same samples.
func ScaleIsFitted(source Source) bool {
	s, ok := source.(ScaleFitter)
	return ok && s.FitsScale()
}

// kept is a scaling in JSON.
type kept struct {
	Kind string          `json:"kind"`
	Part json.RawMessage `json:"part"`
}

func (s Scale) MarshalJSON() ([]byte, error) {
	list := make([]kept, len(s))
	for i, one := range s {
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		list[i] = kept{Scalings.NameOf(one), text}
	}
	return json.Marshal(list)
}

func (s *Scale) UnmarshalJSON(text []byte) error {
	var list []kept
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*s = nil
	for _, one := range list {
		e, ok := Scalings.Lookup(one.Kind)
		if !ok {
			return fmt.Errorf("the scaling %q is not registered: open it with a program that has it", one.Kind)
		}
		made := e.New()
		if err := json.Unmarshal(one.Part, made); err != nil {
			return err
		}
		*s = append(*s, made)
	}
	return nil
}

// Scaling is the scaling of a model's samples: first its steps, then y = (x - Shift) Factor, value by value, and then Mix y if there is a
// matrix. It is stored with the model.
type Scaling struct {
	Steps         Scale     `json:",omitempty"` // each is a [Step]
	Shift, Factor []float32 // one number per value of a sample
	Rest          []float32 `json:",omitempty"` // what is also subtracted, in float64; nil for 0. See [Scaling.IsExact].
	Clip          bool      // y is clipped to [0,1]
	Mix, Unmix    []float32 `json:",omitempty"` // symmetric matrix of a whitening, (values, values), and its inverse; nil for none
}

// NewSteps returns the scaling by steps alone, of samples with a number of values.
func NewSteps(values int, steps ...Step) *Scaling {
	s := &Scaling{Shift: make([]float32, values), Factor: slices.Repeat([]float32{1}, values)}
	for _, one := range steps {
		s.Steps = append(s.Steps, one)
	}
	return s
}

// Fit returns the scaling of samples by s, nil if s does not scale. It returns an error for a non-finite factor.
func (s Scale) Fit(m *Images) (all *Scaling, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	for _, one := range s {
		if _, divides := one.(divider); divides && !m.Sparse() {
			continue
		} else if divides {
			return nil, fmt.Errorf("scale: %s is for arrays and tables, not for entries of a sparse matrix: want a factor", Scalings.NameOf(one))
		}
		next, err := one.Fit(m.Scaled(all))
		if err != nil {
			return nil, fmt.Errorf("scale: %s: %w", Scalings.NameOf(one), err)
		}
		if all != nil {
			next.Steps = slices.Concat(all.Steps, next.Steps)
		}
		all = next
	}
	if all != nil && m.Zeros() && !all.keepsZeros() {
		return nil, fmt.Errorf("scale: %s makes other values of the zeros, which are not stored: want a scaling that keeps them, such as { kind = \"standardise\", centre = false }, or a file with all values",
			Scalings.NameOf(s[len(s)-1]))
	}
	return all, nil
}

// Valid returns an error for a scaling, read from a file, that is none of samples with a number of values.
func (s *Scaling) Valid(values int) error {
	for _, one := range s.Steps {
		if step, ok := one.(Step); !ok || !step.FittedTo(values) {
			return fmt.Errorf("the scaling %s is not fitted to samples of %d values", Scalings.NameOf(one), values)
		}
	}
	if len(s.Shift) != values || len(s.Factor) != values || s.Rest != nil && len(s.Rest) != values || len(s.Mix) != len(s.Unmix) || s.Mix != nil && len(s.Mix) != values*values {
		return fmt.Errorf("the scaling is not one of samples of %d values", values)
	}
	return nil
}

// keepsZeros reports whether a sample of zeros remains one.
func (s *Scaling) keepsZeros() bool {
	if s.Mix != nil || s.IsExact() {
		return false
	}
	zero := make([]float32, len(s.Shift))
	s.Apply(zero)
	return !slices.ContainsFunc(zero, func(v float32) bool { return v != 0 })
}

// applyEntries scales the entries of a row whose other values are 0 before and after, in place.
func (s *Scaling) applyEntries(columns []int32, values []float32) {
	for _, one := range s.Steps {
		one.(Step).Apply(columns, values)
	}
	for e, j := range columns {
		values[e] = (values[e] - s.Shift[j]) * s.Factor[j]
		if s.Clip {
			values[e] = min(max(values[e], 0), 1)
		}
	}
}

// affine fits shifts and factors of the values of samples by their statistics: of each value of a vector, or of each channel of images over
// all pixels.
func (m *Images) affine(of func(s statistic) (shift, divisor float64)) (*Scaling, error) {
	groups := m.pixels
	if len(m.Shape) > 1 {
		groups = 1
		if len(m.Shape) == 3 {
			groups = m.Shape[2]
		}
	}
	if err := m.NoneObserved(); err != nil {
		return nil, err
	}
	stats := m.statistics(groups)
	exact := m.isWide() && slices.ContainsFunc(stats, statistic.close)
	s := NewSteps(m.pixels)
	for i := range m.pixels {
		shift, divisor := of(stats[i%groups])
		if stats[i%groups].min == stats[i%groups].max {
			divisor = 1
		}
		s.setShift(i, shift, exact)
		if err := s.setFactor(i, 1/divisor); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Scaling) setFactor(i int, factor float64) error {
	s.Factor[i] = float32(factor)
	if f := float64(s.Factor[i]); f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return fmt.Errorf("value %d of the fitted samples would be multiplied by %g; scale it before it is saved", i, factor)
	}
	return nil
}

type statistic struct{ n, min, max, mean, squares float64 }

// statistics returns one statistic for each of the groups; value i belongs to group i mod groups. It makes two passes in
// float64: the first for minimum, maximum and mean, the second for the sum of squared differences from the mean.
func (m *Images) statistics(groups int) []statistic {
	stats := make([]statistic, groups)
	for g := range stats {
		stats[g].min, stats[g].max = math.Inf(1), math.Inf(-1)
	}
	m.eachValue(func(i int, v float64) {
		s := &stats[i%groups]
		s.n, s.mean, s.min, s.max = s.n+1, s.mean+v, min(s.min, v), max(s.max, v)
	})
	for g := range stats {
		stats[g].mean /= stats[g].n
	}
	m.eachValue(func(i int, v float64) {
		s := &stats[i%groups]
		s.squares += (v - s.mean) * (v - s.mean)
	})
	return stats
}

// eachValue calls do for every observed value of every sample.
func (m *Images) eachValue(do func(i int, v float64)) {
	if m.entries != nil && !m.entries.zeros && m.scaling == nil {
		m.eachEntry(func(k int, v float32) { do(k, float64(v)) })
		return
	}
	row, wide := make([]float32, m.pixels), make([]float64, m.pixels)
	for i := range m.n {
		m.wideRow(wide, row, i)
		at := m.row(i) * m.pixels
		for j, v := range wide {
			if !m.Holed() || m.observed(at+j) {
				do(j, v)
			}
		}
	}
}

// Apply scales samples in place. A nil scaling changes nothing.
func (s *Scaling) Apply(samples []float32) {
	if s == nil {
		return
	}
	n := len(s.Shift)
	for row := range slices.Chunk(samples, n) {
		for _, one := range s.Steps {
			one.(Step).Apply(nil, row)
		}
	}
	if s.IsExact() {
		s.Centre(samples, vectors.Wide(samples))
	} else {
		for row := range slices.Chunk(samples, n) {
			for i := range row {
				row[i] -= s.Shift[i]
			}
		}
	}
	s.ApplyCentred(samples)
}

// Pull multiplies derivatives with respect to scaled samples by the derivative of the scaling, in place. Clipping is ignored.
func (s *Scaling) Pull(derivatives []float32) {
	mixed(derivatives, s.Mix, len(s.Shift))
	for i := range derivatives {
		derivatives[i] *= s.Factor[i%len(s.Factor)]
	}
}

// Undo restores samples that [Scaling.Apply] has scaled, up to rounding and clipping; as they were after the last step that has no inverse,
// if there is one: see [Scaling.Lossy].
func (s *Scaling) Undo(samples []float32) {
	if s == nil {
		return
	}
	n := len(s.Shift)
	mixed(samples, s.Unmix, n)
	for rest := samples; len(rest) >= n; rest = rest[n:] {
		for i := range n {
			if rest[i] /= s.Factor[i]; s.IsExact() {
				rest[i] = float32(float64(rest[i]) + s.ShiftOf(i))
			} else {
				rest[i] += s.Shift[i]
			}
		}
	}
	for _, one := range slices.Backward(s.Steps) {
		step, ok := one.(Inverse)
		if !ok {
			return
		}
		step.Undo(samples)
	}
}

// Redone scales samples again that [Scaling.Undo] has returned: by the steps that it could undo, and by the map, without clipping.
func (s *Scaling) Redone(samples []float32) []float32 {
	free, lossy := *s, 0
	for i, one := range s.Steps {
		if _, ok := one.(Inverse); !ok {
			lossy = i + 1
		}
	}
	free.Steps, free.Clip = s.Steps[lossy:], false
	return free.Applied(samples)
}

// Lossy returns the name of the last step that [Scaling.Undo] cannot undo, "" if there is none.
func (s *Scaling) Lossy() string {
	for i := range s.steps() {
		one := s.Steps[len(s.Steps)-1-i]
		if _, ok := one.(Inverse); !ok {
			return Scalings.NameOf(one)
		}
	}
	return ""
}

func (s *Scaling) steps() int {
	if s == nil {
		return 0
	}
	return len(s.Steps)
}

// Linear returns an error for a scaling with steps, which is no affine map of each value.
func (s *Scaling) Linear() error {
	if s.steps() == 0 {
		return nil
	}
	return fmt.Errorf("the samples are scaled by %s, which is no affine map: this needs scale = a factor, \"minmax\", \"standardise\" or \"whiten\"", Scalings.NameOf(s.Steps[0]))
}

// Applied returns a scaled copy of samples; a nil scaling returns samples itself.
func (s *Scaling) Applied(samples []float32) []float32 {
	if s == nil {
		return samples
	}
	scaled := slices.Clone(samples)
	s.Apply(scaled)
	return scaled
}

// Unclipped returns a scaled copy of samples that is not clipped.
func (s *Scaling) Unclipped(samples []float32) []float32 {
	free := *s
	free.Clip = false
	return free.Applied(samples)
}

// Scaled returns the same samples with another scaling in place of the current one; a nil scaling removes it. Values are scaled
// when they are read. Missing and hidden entries are 0 after scaling; without a scaling they have the value that the previous
// scaling maps to 0.
func (m *Images) Scaled(s *Scaling) *Images {
	if m == nil || m.scaling == s {
		return m
	}
	other := *m
	other.scaling = s
	if s != nil && !s.IsExact() {
		other.wide = nil // it is not needed
	}
	if other.vacant = nil; s == nil && m.Holed() { // what the scaling makes 0
		other.vacant = make([]float32, m.pixels)
		m.scaling.Undo(other.vacant)
	}
	other.zeros = m.entries != nil && m.entries.zeros && (s == nil || s.keepsZeros())
	return &other
}

// Scaling returns the current scaling, nil for none.
func (m *Images) Scaling() *Scaling { return m.scaling }

// Scaled returns the same set with all samples scaled by the scaling of a model, instead of the scaling that the keys declare.
// A nil scaling means that the samples are not scaled.
func (s *Set) Scaled(scaling *Scaling) *Set {
	other := *s
	other.Scale = nil
	other.Train, other.Test = s.Train.Scaled(scaling), s.Test.Scaled(scaling)
	return &other
}

// mixed multiplies each sample by a symmetric matrix, in place. A nil matrix changes nothing.
func mixed(samples, matrix []float32, n int) {
	if matrix == nil {
		return
	}
	row := make([]float32, n)
	for ; len(samples) >= n; samples = samples[n:] {
		copy(row, samples[:n])
		kernel.Float32().Gemm(false, false, 1, n, n, 1, row, n, matrix, n, 0, samples[:n], n)
	}
}
