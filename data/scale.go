package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"tessera/config/part"
	names "tessera/config/part/table"
	"tessera/internal/engine/kernel"
	"tessera/internal/vectors"
)

// Scale is the key scale: "bytes", "uint16", "minmax", "standardise", "whiten" or a factor. It determines how the values of a data set are scaled
// before a model reads them. The zero value does not scale; values of type byte always become value/255.
//
//	"bytes"        x / 255, when a file is read: for files that store bytes as floats or integers
//	"uint16"       x / 65535, when a file is read: for files that store the pixels of 16-bit images
//	"minmax"       (x - min) / (max - min), clipped to [0,1] for samples that were not fitted
//	"standardise"  (x - mean) / standard deviation (of the population)
//	"whiten"       ZCA (x - mean), which has almost uncorrelated values of almost equal variance
//	a factor f     f x
//
// Minimum, maximum, mean and deviation are computed over the fitted samples, for each value of a vector, or for each channel
// of images over all pixels. If all samples have the same value, the divisor is 1. The matrix ZCA is computed from the
// covariance of all values of the fitted samples.
type Scale struct {
	Method string  // name of the method: "", "bytes", "uint16", "minmax", "standardise" or "whiten"
	Factor float64 // the factor if not 0; Method is then ""
}

// Values of [Scale.Method].
const (
	scaleBytes       = "bytes"
	scaleUint16      = "uint16"
	scaleMinmax      = "minmax"
	scaleStandardise = "standardise"
	scaleWhiten      = "whiten"
)

// scaleMethods lists the names of all methods.
func scaleMethods() []string {
	return []string{scaleBytes, scaleUint16, scaleMinmax, scaleStandardise, scaleWhiten}
}

// divisor returns the number by which the numbers of a file are divided when they are read, 0 for none.
func (s Scale) divisor() float32 {
	switch s.Method {
	case scaleBytes:
		return 255
	case scaleUint16:
		return 65535
	}
	return 0
}

// wanted lists what the key may be, for a message.
func wantedScales() string { return `"` + strings.Join(scaleMethods(), `", "`) + `" or a factor` }

// Fitted reports whether the scaling uses statistics of the fitted samples.
func (s Scale) Fitted() bool { return s.Method != "" && s.divisor() == 0 }

// ScaleFitter is implemented by sources whose samples may be scaled by statistics of the fitted samples.
type ScaleFitter interface {
	FitsScale() bool
}

// OfValues returns an error for the methods "bytes" and "uint16", which are for numbers of files, and not for values that are computed.
func (s Scale) OfValues() error {
	if s.divisor() != 0 {
		return part.KeyErrorf("scale", "got %q, which is for numbers of files: want %s, %s, %s or a factor", s.Method, scaleMinmax, scaleStandardise, scaleWhiten)
	}
	return nil
}

// ScaleIsFitted reports whether a source scales its samples by statistics of the fitted samples. Another [Selection] then
// gives other values for the same samples.
func ScaleIsFitted(source Source) bool {
	s, ok := source.(ScaleFitter)
	return ok && s.FitsScale()
}

// FromTOML sets s from a TOML value: the name of a method, or a non-zero number.
func (s *Scale) FromTOML(value any) error {
	var factor float64
	switch x := value.(type) {
	case string:
		if x != "" && !slices.Contains(scaleMethods(), x) {
			if near, ok := names.Nearest(x, scaleMethods()); ok {
				return fmt.Errorf("got %q; did you mean %q?", x, near)
			}
			return fmt.Errorf("got %q, want %s", x, wantedScales())
		}
		*s = Scale{Method: x}
		return nil
	case int64:
		factor = float64(x)
	case float64:
		factor = x
	default:
		return fmt.Errorf("got %s, want %s", valueText(value), wantedScales())
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
	Rest          []float32 `json:",omitempty"` // what is also subtracted, in float64; nil for 0. See [Scaling.IsExact].
	Clip          bool      // y is clipped to [0,1]
	Mix, Unmix    []float32 `json:",omitempty"` // symmetric matrix of a whitening, (values, values), and its inverse; nil for none
}

// Fit returns the scaling of samples by s, nil if s does not scale. It returns an error for a non-finite factor.
func (s Scale) Fit(m *Images) (*Scaling, error) {
	if s == (Scale{}) || s.divisor() != 0 {
		return nil, nil
	}
	if s.Method == scaleWhiten {
		return whitening(m)
	}
	scaling := &Scaling{Shift: make([]float32, m.pixels), Factor: make([]float32, m.pixels), Clip: s.Method == scaleMinmax}
	groups, of, exact := 1, s.fixed, false
	if s.Fitted() {
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
		exact = m.wide != nil && slices.ContainsFunc(stats, statistic.close)
	}
	for i := range m.pixels {
		shift, factor := of(i % groups)
		scaling.setShift(i, shift, exact)
		scaling.Factor[i] = float32(factor)
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
	if s.IsExact() {
		s.Centre(samples, vectors.Wide(samples))
		s.ApplyCentred(samples)
		return
	}
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
			if samples[i] /= s.Factor[i]; s.IsExact() {
				samples[i] = float32(float64(samples[i]) + s.ShiftOf(i))
			} else {
				samples[i] += s.Shift[i]
			}
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
	if s != nil && !s.IsExact() {
		other.wide = nil // it is not needed
	}
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

const (
	// whitenFloor is the share of the mean variance that is added to every variance before the division, so that directions in
	// which the samples hardly vary are not amplified to noise.
	whitenFloor = 0.01
	// whitenMost is the largest number of values of a sample that can be whitened: the matrix has its square.
	whitenMost = 4096
)

// whitening returns the scaling by zero-phase component analysis (ZCA). With the mean m and the covariance C = U diag(v) Uᵀ of
// the fitted samples, and e = 0.01 mean(v),
//
//	y = U diag(1 / √(v + e)) Uᵀ (x - m)
//
// so that the values of y are almost uncorrelated and have almost equal variances, and y resembles x as closely as possible.
// It returns an error for missing entries, fewer than two samples, and samples of more than 4,096 values.
//
// Source: A. J. Bell, T. J. Sejnowski, The "independent components" of natural scenes are edge filters, Vision Research 37(23),
// 1997.
func whitening(m *Images) (*Scaling, error) {
	n := m.pixels
	switch {
	case m.Holed():
		return nil, fmt.Errorf("scale: whiten needs all entries of the samples; take scale = %q", scaleStandardise)
	case n > whitenMost:
		return nil, fmt.Errorf("scale: whiten: got samples of %d values, want at most %d; take smaller images, or patches of them", n, whitenMost)
	case m.n < 2:
		return nil, fmt.Errorf("scale: whiten: got %d fitted samples, want at least 2", m.n)
	}
	mean, covariance := m.moments()
	exact := m.wide != nil && slices.ContainsFunc(m.statistics(n), statistic.close)
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, covariance), true) {
		return nil, fmt.Errorf("scale: whiten: the eigenvalues of the covariance do not converge; take scale = %q", scaleStandardise)
	}
	var u mat.Dense
	eigen.VectorsTo(&u)
	variances, total := eigen.Values(nil), 0.0
	for i := range n {
		total += covariance[i*n+i]
	}
	if !(total > 0) {
		return nil, fmt.Errorf("scale: whiten: all fitted samples are equal")
	}
	roots := make([]float64, n)
	for i, v := range variances {
		roots[i] = math.Sqrt(max(v, 0) + whitenFloor*total/float64(n))
	}
	s := &Scaling{Shift: make([]float32, n), Factor: make([]float32, n), Unmix: product3(&u, roots)}
	for i := range n {
		s.setShift(i, mean[i], exact)
		s.Factor[i], roots[i] = 1, 1/roots[i]
	}
	s.Mix = product3(&u, roots)
	return s, nil
}

// product3 returns u diag(d) uᵀ.
func product3(u *mat.Dense, d []float64) []float32 {
	var left, all mat.Dense
	left.Mul(u, mat.NewDiagDense(len(d), d))
	all.Mul(&left, u.T())
	out := make([]float32, len(d)*len(d))
	for i, v := range all.RawMatrix().Data {
		out[i] = float32(v)
	}
	return out
}

// moments returns the mean and the covariance (of the population) of all samples, in two passes in float64.
func (m *Images) moments() (mean, covariance []float64) {
	n := m.pixels
	mean, covariance = make([]float64, n), make([]float64, n*n)
	m.eachValue(func(i int, v float64) { mean[i] += v / float64(m.n) })
	const block = 256
	rows, row, wide := make([]float64, 0, block*n), make([]float32, n), make([]float64, n)
	for i := range m.n {
		m.wideRow(wide, row, i)
		for j, v := range wide {
			rows = append(rows, v-mean[j])
		}
		if len(rows) == cap(rows) || i == m.n-1 {
			kernel.Float64().Gemm(true, false, n, n, len(rows)/n, 1/float64(m.n), rows, n, rows, n, 1, covariance, n)
			rows = rows[:0]
		}
	}
	return mean, covariance
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
