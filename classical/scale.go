package classical

import (
	"math"
	"slices"

	"tessera/internal/engine/kernel"
)

// unit is the unit in which a factorisation computes. Its rules have absolute constants, such as [tiny], and float32
// holds the squares only of values of ordinary size. The size of the fitted samples is their largest magnitude, or, if their
// mean magnitude is less than 1/64 of it, twice the mean. The samples are multiplied during the fit by 2^s, where s is the
// whole number nearest to -log2 of the size: images of [0,1] are not changed.
//
// A product with 2^s is exact. A fit of samples times a power of two therefore has the same bits, and a fit of samples times
// another number differs by rounding. The first atoms and codes, which some methods compute from the mean, are those of
// samples of size 1.
type unit struct {
	size  float64 // 0 if the samples are not scaled
	fixed bool    // the settings have weights in the units of the samples, which are therefore not scaled
	// carried reports whether the atoms have the unit of the samples, and the codes none; else the codes have it.
	carried bool
	degree  float64 // the objective has the unit of the samples to the power of 2 + degree
}

const (
	leastMean = 1.0 / 64
	sizeName  = "size" // number that is saved if it is not 0
)

// measure sets the unit to that for samples x, in which missing entries are NaN.
func (u *unit) measure(x []float32) {
	sum, most, count := 0.0, 0.0, 0
	for _, v := range x {
		if v == v {
			sum += math.Abs(float64(v))
			most = max(most, math.Abs(float64(v)))
			count++
		}
	}
	u.set(sum/float64(max(count, 1)), most)
}

// set sets the unit to that for samples with this mean magnitude and this largest one.
func (u *unit) set(mean, most float64) {
	u.size = most
	if mean < leastMean*most {
		u.size = 2 * mean
	}
	if u.fixed || u.size == 1 || !(u.size > 0) || !finite(u.size) {
		u.size = 0
	}
}

func (u *unit) scaled() bool { return u.size != 0 }

// power returns 2^s.
func (u *unit) power() float32 {
	if !u.scaled() {
		return 1
	}
	const most = 120 // 2^s and its inverse are float32
	s := math.Round(-math.Log2(u.size))
	return float32(math.Exp2(min(max(s, -most), most)))
}

// rest returns the factor, near 1, between scaled samples and samples of size 1.
func (u *unit) rest() float64 {
	if !u.scaled() {
		return 1
	}
	return 1 / (u.size * float64(u.power()))
}

// keep keeps the size if samples are scaled.
func (u *unit) keep(k *Kept) {
	if k.Restores {
		u.size = k.state.Numbers[sizeName]
	} else if u.scaled() {
		k.Number(sizeName, &u.size)
	}
}

// named returns the name of a tensor, which differs if samples are scaled: a state without the size is then refused.
func (u *unit) named(tensor string) string {
	if u.scaled() {
		return tensor + " of scaled samples"
	}
	return tensor
}

// multiplied returns values times a factor. They are changed in place if own is true, or else copied unless the factor is 1.
func multiplied(values []float32, by float32, own bool) []float32 {
	if by == 1 {
		return values
	}
	if !own {
		values = slices.Clone(values)
	}
	kernel.Float32().MulScalar(values, values, by)
	return values
}

// carry multiplies by a factor whichever of atoms and codes has the unit of the samples.
func (f *factors) carry(by float32) {
	if f.carried {
		multiplied(f.atoms, by, true)
	} else {
		multiplied(f.codes, by, true)
	}
}

// inside calls compute with atoms and codes for scaled samples, and returns its objective for the samples themselves.
func (f *factors) inside(compute func() (objective float64)) float64 {
	if !f.scaled() {
		return compute()
	}
	power := f.power()
	f.carry(power)
	objective := compute()
	f.carry(1 / power)
	return objective / math.Pow(float64(power), 2+f.degree)
}

// begin computes the first atoms and codes.
func (m *factorisation) begin() error {
	if !m.scaled() {
		return m.first()
	}
	x, rest := m.x, m.rest()
	if m.sparse != nil {
		m.sparse.by *= float32(rest)
		m.sparse.rest = float32(rest)
	}
	m.x = multiplied(x, float32(rest), false)
	err := m.first()
	m.x = x
	if m.sparse != nil {
		m.sparse.by, m.sparse.rest = m.power(), 1
	}
	if err != nil {
		return err
	}
	m.carry(float32(1 / rest / float64(m.power())))
	if g, ok := m.rule.(*gradientRule); ok { // the gradient of the codes is smaller by the square
		g.codesStep *= rest * rest
	}
	return nil
}

// encode returns the codes of images that were not fitted.
func (m *factorisation) encode(images []float32) []float32 {
	power := m.power()
	images = multiplied(images, power, false)
	if m.carried {
		defer m.carry(1 / power)
		m.carry(power)
		return m.rule.encode(images)
	}
	return multiplied(m.rule.encode(images), 1/power, true)
}
