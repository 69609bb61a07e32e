package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// contributing is the threshold above which a unit contributes to an image, as a fraction of the image's largest
// contribution.
const contributing = 0.01

// otherWeights explains why codes with this number of units do not contain the weights of the atoms; "" if it does.
func (a *Atoms) otherWeights(units int) string {
	if a.Indirect == "" && a.Count != units {
		return "a deeper decoder weighs its atoms by other values than the codes"
	}
	return a.Indirect
}

// scales returns the lengths |w_j|_2 of the atoms. The contribution of unit j to an image is h_j |w_j|_2. It does not change
// if the unit's code is multiplied and its atom divided by the same factor.
func (a *Atoms) scales() []float64 {
	scales := make([]float64, a.Count)
	for j := range scales {
		sum := 0.0
		for _, v := range a.row(j) {
			sum += float64(v) * float64(v)
		}
		scales[j] = math.Sqrt(sum)
	}
	return scales
}

// Contributing returns the numbers of the units that contribute to images with these codes, n x Count: those that
// dead_units_contribution does not count. These are all units if the values of the codes are not the weights of the atoms, or if
// no unit contributes.
func (a *Atoms) Contributing(codes []float32) (units []int) {
	greatest := make([]float64, a.Count)
	if a.Indirect == "" && len(codes)%max(a.Count, 1) == 0 {
		for i, v := range codes {
			greatest[i%a.Count] = max(greatest[i%a.Count], math.Abs(float64(v)))
		}
		for j, scale := range a.scales() {
			greatest[j] *= scale
		}
	}
	most := 0.0
	for _, v := range greatest {
		most = max(most, v)
	}
	for j, v := range greatest {
		if !(v < contributing*most) {
			units = append(units, j)
		}
	}
	return units
}

// Only returns the atoms with the given numbers, in that order. It does not check the numbers.
func (a *Atoms) Only(numbers []int) *Atoms {
	only := *a
	only.Count, only.Values = len(numbers), nil
	for _, j := range numbers {
		only.Values = append(only.Values, a.row(j)...)
	}
	return &only
}

// Effects returns how much each unit changes the reconstructions of images with these codes, n x Count: sd(h_j) |w_j|_2, the
// standard deviation of the unit's activation times the length of its atom. It is 0 for an empty atom and for a unit that is
// constant, which acts as a bias. It does not change if the codes of a unit are multiplied and its atom divided by the same factor.
// It returns an error if the values of the codes are not the weights of the atoms, if there are no codes, and if one is not
// finite.
func (a *Atoms) Effects(codes []float32) ([]float64, error) {
	if a == nil || a.Count < 1 || len(a.Values) != a.Count*a.Pixels() {
		return nil, errors.New("metrics: effects: got no atoms")
	}
	if a.Indirect != "" {
		return nil, fmt.Errorf("metrics: effects: %s", a.Indirect)
	}
	if len(codes) == 0 || len(codes)%a.Count != 0 {
		return nil, fmt.Errorf("metrics: effects: got %d values, want the codes of at least one sample, of %d values each", len(codes), a.Count)
	}
	n := float64(len(codes) / a.Count)
	means, effects := make([]float64, a.Count), a.scales()
	for i, v := range codes {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("metrics: effects: the code of sample %d is not finite", i/a.Count)
		}
		means[i%a.Count] += float64(v) / n
	}
	squares := make([]float64, a.Count)
	for i, v := range codes {
		d := float64(v) - means[i%a.Count]
		squares[i%a.Count] += d * d / n
	}
	for j := range effects {
		if effects[j] *= math.Sqrt(squares[j]); math.IsNaN(effects[j]) || math.IsInf(effects[j], 0) {
			return nil, fmt.Errorf("metrics: effects: that of unit %d is not finite", j)
		}
	}
	return effects, nil
}

// ofCodes returns a function that starts the meter for the mean over images of a function of the code.
func ofCodes(of func(code []float32) float64) func(*Subject) (Meter, error) {
	return func(s *Subject) (Meter, error) {
		var sum imageSum
		return meter{func(b *Batch) error {
			sum.add(len(b.Codes)/s.Units, 64, func(i int) float64 { return of(b.Codes[i*s.Units : (i+1)*s.Units]) })
			return nil
		}, func() []Value { return []Value{Number(sum.mean(1))} }}, nil
	}
}

// ofContributions returns a function that starts the meter for the mean over images of a function of |h_j| |w_j|. The function
// must not retain its argument.
func ofContributions(of func(contributions []float64) float64) func(*Subject) (Meter, error) {
	return func(s *Subject) (Meter, error) {
		scales := s.Atoms.scales()
		return ofCodes(func(code []float32) float64 { return of(absolute(code, scales)) })(s)
	}
}

// greatestOfUnits returns a meter. For each unit j it computes the maximum of of(h_j) over all codes, or least if there are
// no codes; result computes the measured number from these maxima.
func greatestOfUnits(units int, least float64, of func(h float32) float64, result func(greatest []float64) float64) Meter {
	greatest := slices.Repeat([]float64{least}, units)
	return meter{func(b *Batch) error {
		for i := 0; i < len(b.Codes); i += units {
			for j, v := range b.Codes[i : i+units] {
				greatest[j] = max(greatest[j], of(v))
			}
		}
		return nil
	}, func() []Value { return []Value{Number(result(greatest))} }}
}

func absolute(code []float32, scales []float64) []float64 {
	c := make([]float64, len(code))
	for j, v := range code {
		c[j] = math.Abs(float64(v)) * scales[j]
	}
	return c
}
