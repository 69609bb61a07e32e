package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	names "tessera/part/table"
)

// Scale is the key scale: "bytes", "minmax", "standardise", "whiten" or a factor. It determines how the values of a data set are scaled
// before a model reads them. The zero value does not scale; values of type byte always become value/255.
//
//	"bytes"        x / 255, when a file is read: for files that store bytes as floats
//	"minmax"       (x - min) / (max - min), clipped to [0,1] for samples that were not fitted
//	"standardise"  (x - mean) / standard deviation (of the population)
//	"whiten"       ZCA (x - mean), which has almost uncorrelated values of almost equal variance
//	a factor f     f x
//
// Minimum, maximum, mean and deviation are computed over the fitted samples, for each value of a vector, or for each channel
// of images over all pixels. If all samples have the same value, the divisor is 1. The matrix ZCA is computed from the
// covariance of all values of the fitted samples.
type Scale struct {
	Method string  // name of the method: "", "bytes", "minmax", "standardise" or "whiten"
	Factor float64 // the factor if not 0; Method is then ""
}

// Values of [Scale.Method].
const (
	scaleBytes       = "bytes"
	scaleMinmax      = "minmax"
	scaleStandardise = "standardise"
	scaleWhiten      = "whiten"
)

// scaleMethods lists the names of all methods.
func scaleMethods() []string { return []string{scaleBytes, scaleMinmax, scaleStandardise, scaleWhiten} }

// fitted reports whether the scaling uses statistics of the fitted samples.
func (s Scale) fitted() bool { return s.Method != "" && s.Method != scaleBytes }

// ScaleIsFitted reports whether a source scales its samples by statistics of the fitted samples. Another [Selection] then
// gives other values for the same samples.
func ScaleIsFitted(source Source) bool {
	s, ok := source.(interface{ fitsScale() bool })
	return ok && s.fitsScale()
}

func (l Layout) fitsScale() bool   { return l.Scale.fitted() }
func (f *Folders) fitsScale() bool { return f.Scale.fitted() }

// FromTOML sets s from a TOML value: the name of a method, or a non-zero number.
func (s *Scale) FromTOML(value any) error {
	var factor float64
	switch x := value.(type) {
	case string:
		if x != "" && !slices.Contains(scaleMethods(), x) {
			if near, ok := names.Nearest(x, scaleMethods()); ok {
				return fmt.Errorf("got %q; did you mean %q?", x, near)
			}
			return fmt.Errorf("got %q, want %q, %q, %q, %q or a factor", x, scaleBytes, scaleMinmax, scaleStandardise, scaleWhiten)
		}
		*s = Scale{Method: x}
		return nil
	case int64:
		factor = float64(x)
	case float64:
		factor = x
	default:
		return fmt.Errorf("got %v, want %q, %q, %q, %q or a factor", value, scaleBytes, scaleMinmax, scaleStandardise, scaleWhiten)
	}
	if f := float32(factor); f == 0 || math.IsInf(float64(f), 0) || f != f || math.IsInf(float64(1/f), 0) {
		return fmt.Errorf("got %s, want a factor that float32 can multiply and divide by", strconv.FormatFloat(factor, 'g', -1, 64))
	}
	*s = Scale{Factor: factor}
	return nil
}

// TOML returns the value that [Scale.FromTOML] reads.
func (s Scale) TOML() any {
	if s.Factor != 0 {
		return s.Factor
	}
	return s.Method
}

// Scaling is the scaling of a model's samples: y = (x - Shift) Factor, value by value, and then Mix y if there is a matrix. It is
// stored with the model.
type Scaling struct {
	Shift, Factor []float32 // one number per value of a sample
	Clip          bool      // y is clipped to [0,1]
	Mix, Unmix    []float32 `json:",omitempty"` // symmetric matrix of a whitening, (values, values), and its inverse; nil for none
}

// Fit returns the scaling of samples by s, nil if s does not scale. It returns an error for a non-finite factor.
func (s Scale) Fit(m *Images) (*Scaling, error) {
	if s == (Scale{}) || s.Method == scaleBytes {
		return nil, nil
	}
	if s.Method == scaleWhiten {
		return whitening(m)
	}
	scaling := &Scaling{Shift: make([]float32, m.pixels), Factor: make([]float32, m.pixels), Clip: s.Method == scaleMinmax}
	groups, of := 1, s.fixed
	if s.fitted() {
		if groups = m.pixels; len(m.Shape) > 1 {
			groups = 1
			if len(m.Shape) == 3 {
				groups = m.Shape[2]
			}
		}
		if err := m.NoneObserved(); err != nil {
			return nil, err
		}
		stats := m.statistics(groups)
		of = func(g int) (shift, factor float64) { return stats[g].scaling(s.Method) }
	}
	for i := range m.pixels {
		shift, factor := of(i % groups)
		scaling.Shift[i], scaling.Factor[i] = float32(shift), float32(factor)
		if f := float64(scaling.Factor[i]); f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("scale: value %d of the fitted samples would be multiplied by %g; scale it before it is saved", i, factor)
		}
	}
	return scaling, nil
}

// fixed returns shift and factor for a method without statistics.
func (s Scale) fixed(int) (shift, factor float64) { return 0, s.Factor }

// statistic contains statistics of one value, or of one channel, over all samples.
type statistic struct{ n, min, max, mean, squares float64 }

// scaling returns shift and factor for a method.
func (s statistic) scaling(method string) (shift, factor float64) {
	shift, divisor := s.mean, math.Sqrt(s.squares/s.n)
	if method == scaleMinmax {
		shift, divisor = s.min, s.max-s.min
	}
	if s.min == s.max {
		divisor = 1
	}
	return shift, 1 / divisor
}

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
	if m.entries != nil && m.scaling == nil {
		m.eachEntry(func(k int, v float32) { do(k, float64(v)) })
		return
	}
	row := make([]float32, m.pixels)
	for i := range m.n {
		m.copyRow(row, i)
		at := m.row(i) * m.pixels
		for j, v := range row {
			if !m.Holed() || m.observed(at+j) {
				do(j, float64(v))
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
	for rest := samples; len(rest) >= n; rest = rest[n:] {
		for i := range n {
			rest[i] = (rest[i] - s.Shift[i]) * s.Factor[i]
			if s.Clip {
				rest[i] = min(max(rest[i], 0), 1)
			}
		}
	}
	mixed(samples, s.Mix, n)
}

// Pull multiplies derivatives with respect to scaled samples by the derivative of the scaling, in place. Clipping is ignored.
func (s *Scaling) Pull(derivatives []float32) {
	mixed(derivatives, s.Mix, len(s.Shift))
	for i := range derivatives {
		derivatives[i] *= s.Factor[i%len(s.Factor)]
	}
}

// Undo restores samples that [Scaling.Apply] has scaled, up to rounding and clipping.
func (s *Scaling) Undo(samples []float32) {
	if s == nil {
		return
	}
	n := len(s.Shift)
	mixed(samples, s.Unmix, n)
	for ; len(samples) >= n; samples = samples[n:] {
		for i := range n {
			samples[i] = samples[i]/s.Factor[i] + s.Shift[i]
		}
	}
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
	if other.vacant = nil; s == nil && m.Holed() { // what the scaling makes 0
		other.vacant = m.scaling.Shift
	}
	return &other
}

// Scaling returns the current scaling, nil for none.
func (m *Images) Scaling() *Scaling { return m.scaling }

// Scaled returns the same set with all samples scaled by the scaling of a model, instead of the scaling that the keys declare.
// A nil scaling means that the samples are not scaled.
func (s *Set) Scaled(scaling *Scaling) *Set {
	other := *s
	other.Scale = Scale{}
	other.Train, other.Test = s.Train.Scaled(scaling), s.Test.Scaled(scaling)
	return &other
}
