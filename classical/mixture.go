package classical

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"tessera/data"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

// mixture is a mixture of K distributions of one exponential family,
//
//	p(x) = sum over k of w_k exp(eta_k . T(x) + c_k)
//
// Its hidden variable is the component of an image. The E step is one product of the features T(x) with the parameters eta,
// in the log domain (log-sum-exp); the M step gets, for each component, the sums of the responsibilities and of the features
// that they weight.
type mixture struct {
	family
	components int
	seed       uint64
	init       string // "kmeans" or "random"

	weights   []float64
	eta       []float64 // natural parameters, components x features
	constants []float64 // log w_k + c_k

	unused sync.Pool // contains *scratch
}

// family is the distribution of the components.
type family interface {
	// begin computes the values that depend on all images.
	begin(m *em) error
	// features returns the length of T.
	features() int
	// expand writes T of n rows.
	expand(dst, rows []float64, n int)
	// natural writes eta and the constants c of all components.
	natural(eta, constants []float64) error
	// maximise sets the parameters of all components from their counts and sums of features. A component with count 0 keeps
	// its parameters.
	maximise(counts, sums []float64)
	// held returns the components that have reached a bound, and the name of the bound; -1 means all components.
	held() (components []int, by string)
	// scores returns the log densities of the components for rows x, (batch, components), up to a constant per component.
	scores(p *ir.Module, x *ir.Value) (scores *ir.Value, constants []float64)
	// values returns the parameters to save, by name.
	values() map[string][]float64
	// means returns the means of the components. absolute reports whether they include the origin.
	means() (values []float64, absolute bool)
	// free returns the number of free parameters without the weights.
	free() int
	// sampler returns a function that draws a row of a component. Several goroutines may call it.
	sampler() func(row []float64, component int, r *rand.Rand)
}

func (m *mixture) parameters() map[string][]float64 {
	values := m.values()
	values["mixing weights"] = m.weights
	return values
}

func (m *mixture) atoms() ([]float64, bool) { return m.means() }

func (m *mixture) sampler() func(row []float64, r *rand.Rand) {
	draw, total := m.family.sampler(), kernel.Float64().Sum(m.weights)
	return func(row []float64, r *rand.Rand) {
		k, left := -1, r.Float64()*total
		for j, w := range m.weights {
			if w > 0 { // rounding may leave something behind the last weight
				k = j
			}
			if left -= w; left < 0 {
				break
			}
		}
		draw(row, k, r)
	}
}

func (m *mixture) freedom() int { return m.components - 1 + m.free() }

// size implements hidden: the count of each component, then its sums.
func (m *mixture) size() int { return m.components * (1 + m.features()) }

// start implements hidden: one M step from hard assignments to the centres of k-means or to randomly drawn images.
func (m *mixture) start(e *em, images Images) error {
	if err := m.begin(e); err != nil {
		return err
	}
	nearest, err := m.assigned(e, images)
	if err != nil {
		return err
	}
	sums := make([]float64, m.size())
	features := m.features()
	counts, rest := sums[:m.components], sums[m.components:]
	var rows []float64
	t := make([]float64, features)
	for i, k := range nearest {
		rows = e.rows(rows, e.x, i, i+1)
		m.expand(t, rows, 1)
		counts[k]++
		kernel.Float64().Add(rest[k*features:(k+1)*features], rest[k*features:(k+1)*features], t)
	}
	m.maximise(sums, e.n)
	return nil
}

// assigned returns the initial component of each image.
func (m *mixture) assigned(e *em, images Images) ([]int, error) {
	start := &KMeans{Components: m.components, Iterations: 100, Tolerance: 1e-4, Restarts: 1}
	fitted, err := start.New(e.shape, m.seed)
	if err != nil {
		return nil, err
	}
	k := fitted.(*kmeans)
	if m.init == "random" {
		for _, i := range random.Stream(m.seed, "init/means", 0).Perm(e.n)[:m.components] {
			k.atoms = append(k.atoms, e.x.Row(i)...)
		}
		err = k.Start(images)
	} else {
		_, err = Fit(context.Background(), k, images, nil)
	}
	if err != nil {
		return nil, err
	}
	nearest := make([]int, e.n)
	for i, c := range k.Nearest {
		nearest[i] = int(c)
	}
	return nearest, nil
}

func (m *mixture) prepare() error {
	if m.eta == nil {
		m.eta, m.constants = make([]float64, m.components*m.features()), make([]float64, m.components)
	}
	if err := m.natural(m.eta, m.constants); err != nil {
		return err
	}
	for k, w := range m.weights {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("weight %d: got %v, want a number in [0,1]", k, w)
		}
		m.constants[k] += math.Log(w)
	}
	return nil
}

func (m *mixture) maximise(sums []float64, n int) {
	counts := sums[:m.components]
	for k, c := range counts {
		m.weights[k] = c / float64(n)
	}
	m.family.maximise(counts, sums[m.components:])
}

func (m *mixture) notes() (notes []string) {
	for k, w := range m.weights {
		if w < fewest {
			notes = append(notes, fmt.Sprintf("component %d has no samples left", k))
		}
	}
	components, by := m.held()
	if len(components) == 1 && components[0] < 0 {
		return append(notes, "the covariance is held "+by)
	}
	if len(components) > 0 {
		share := 0.0
		for _, k := range components {
			share += m.weights[k]
		}
		notes = append(notes, fmt.Sprintf("components %v (%.3g %% of the samples) are held %s", components, 100*share, by))
	}
	return notes
}

// largestFeatures is the maximum number of feature values that are computed at once.
const largestFeatures = 1 << 17

// scratch is memory for the features of rows and their responsibilities.
type scratch struct{ features, responsibilities []float64 }

// take returns scratch memory for at most n rows, and the number of rows for which it suffices.
func (m *mixture) take(n int) (s *scratch, at int) {
	s, ok := m.unused.Get().(*scratch)
	if !ok {
		s = &scratch{}
	}
	f := m.features()
	at = min(max(1, largestFeatures/f), n)
	s.features = slices.Grow(s.features[:0], at*f)[:at*f]
	s.responsibilities = slices.Grow(s.responsibilities[:0], at*m.components)[:at*m.components]
	return s, at
}

func (m *mixture) expect(sums, rows []float64, n int) (likelihood float64) {
	f, pixels := m.features(), len(rows)/n
	s, at := m.take(n)
	defer m.unused.Put(s)
	t, r := s.features, s.responsibilities
	for from := 0; from < n; from += at {
		count := min(at, n-from)
		likelihood += m.responsibilities(r, t, rows[from*pixels:(from+count)*pixels], count, sums[:m.components], nil)
		kernel.Float64().Gemm(true, false, m.components, f, count, 1, r, m.components, t, f, 1, sums[m.components:], f)
	}
	return likelihood
}

func (m *mixture) infer(codes, densities, rows []float64, n int) {
	pixels := len(rows) / n
	s, at := m.take(n)
	defer m.unused.Put(s)
	t, r := s.features, s.responsibilities
	for from := 0; from < n; from += at {
		count := min(at, n-from)
		var into []float64
		if densities != nil {
			into = densities[from : from+count]
		}
		m.responsibilities(r, t, rows[from*pixels:(from+count)*pixels], count, nil, into)
		if codes != nil {
			copy(codes[from*m.components:], r[:count*m.components])
		}
	}
}

// responsibilities writes the features of n rows to t and the probabilities of their components to r, and adds the latter to counts. It
// returns the sum of the log densities, and writes each to densities. Counts and densities may be nil.
func (m *mixture) responsibilities(r, t, rows []float64, n int, counts, densities []float64) (likelihood float64) {
	k, f := m.components, m.features()
	m.expand(t, rows, n)
	kernel.Float64().Gemm(false, true, n, k, f, 1, t, f, m.eta, f, 0, r, k)
	for i := range n {
		row := r[i*k : (i+1)*k]
		most := math.Inf(-1)
		for j, c := range m.constants[:len(row)] {
			v := row[j] + c
			row[j] = v
			if !(v <= most) { // also NaN
				most = v
			}
		}
		sum := exps(row, most)
		scale := 1 / sum
		if counts == nil {
			kernel.Float64().MulScalar(row, row, scale)
		} else {
			for j, v := range row[:len(counts)] {
				row[j] = v * scale
				counts[j] += row[j]
			}
		}
		density := most + math.Log(sum)
		likelihood += density
		if densities != nil {
			densities[i] = density
		}
	}
	return likelihood
}

// expression implements hidden: the softmax of the scores.
func (m *mixture) expression(p *ir.Module, x *ir.Value) *ir.Value {
	scores, constants := m.scores(p, x)
	for k, w := range m.weights {
		constants[k] += math.Log(max(w, leastVariance)) // a component without weight keeps none, and no infinity is exported
	}
	scores = ir.Point(ir.Add, scores.Shape, scores, row(p, "constants", vectors.Narrow(constants)))
	column := []int{scores.Shape[0], 1}
	most := ir.Broadcasted(ir.Reduce(ir.Max, scores, column, 1), scores.Shape)
	e := ir.Point(ir.Exp, scores.Shape, ir.Point(ir.Sub, scores.Shape, scores, most))
	return ir.Point(ir.Div, e.Shape, e, ir.Broadcasted(ir.Reduce(ir.Sum, e, column, 1), e.Shape))
}

// unitInterval returns an error for values outside [0,1].
func unitInterval(x fit.Rows) (err error) {
	x.Each(0, x.N, func(i int, row []float32) {
		for j, v := range row {
			if err == nil && !(v >= 0 && v <= 1) {
				err = &data.Error{Problem: fmt.Sprintf("sample %d, value %d: got %v, want a number in [0,1]", i, j, v),
					Hint: `write scale = "minmax" in the dataset table`}
			}
		}
	})
	return err
}

// exps replaces values x <= most by e^(x - most), with a relative error of 1e-15, and returns the sum. Results below the
// smallest normal number become 0, where [math.Exp] returns subnormal numbers. It takes a third of the time of [math.Exp]: with
// x - most = n log(2)/64 + r, |r| <= log(2)/128, the result is the product of 2^(n/64), half of which is in a table, and the
// series of e^r up to the fifth power.
func exps(values []float64, most float64) (sum float64) {
	const (
		high = 6.93147180369123816490e-01 / pieces // first 33 bits of log 2, so that n high is exact
		low  = 1.90821492927058770002e-10 / pieces
		bias = 1<<52 + 1<<51 // if added and then subtracted, it rounds to a whole number
	)
	for i, x := range values {
		x -= most
		if !(x > -708) {
			if values[i] = 0; x != x {
				values[i] = x
				sum = x
			}
			continue
		}
		n := (x*(math.Log2E*pieces) + bias) - bias
		r := (x - n*high) - n*low
		r2 := r * r
		rest := r + r2*((1./2+r*(1./6))+r2*(1./24+r*(1./120)))
		whole := int64(n)
		power := math.Float64frombits(powers[whole&(pieces-1)] + uint64(whole>>6)<<52)
		values[i] = power + power*rest
		sum += values[i]
	}
	return sum
}

// pieces is the number of powers of 2 with exponents in [0,1) of which exps has the bits.
const pieces = 64

var powers = func() (bits [pieces]uint64) {
	for i := range bits {
		bits[i] = math.Float64bits(math.Exp2(float64(i) / pieces))
	}
	return bits
}()
