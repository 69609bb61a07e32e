package data

import (
	"maps"
	"slices"
)

// Means are means of the fitted samples, by the index of a value, of the values that none of them lacks. A missing value of another sample
// counts as this mean, because the model has not learned what a sample without the value is.
type Means map[int]float64

// Means returns the means of the values that no sample lacks, nil for samples without missing or hidden entries.
func (m *Images) Means() Means {
	if !m.Holed() || m.Sparse() || m.OnDisk() {
		return nil
	}
	all := Means{}
	for k, s := range m.Scaled(nil).statistics(m.pixels) {
		if s.n == float64(m.n) {
			all[k] = s.mean
		}
	}
	return all
}

// WithMeans returns the same samples with the means in place of their missing values.
func (m *Images) WithMeans(means Means) *Images {
	if len(means) == 0 || m == nil || !m.missing || m.floats == nil {
		return m
	}
	other := *m
	other.floats = means.Fill(m.floats, m.pixels)
	if other.wide = slices.Clone(m.wide); other.wide != nil {
		for k, v := range m.floats {
			if mean, ok := means[k%m.pixels]; ok && v != v {
				other.wide[k] = mean
			}
		}
	}
	return &other
}

// WithMeans returns the same set with the means in place of missing values.
func (s *Set) WithMeans(means Means) *Set {
	other := *s
	other.Train, other.Test = s.Train.WithMeans(means), s.Test.WithMeans(means)
	return &other
}

// Fill returns samples with the means in place of NaN. It may return the slice itself.
func (means Means) Fill(samples []float32, width int) []float32 {
	if len(means) == 0 {
		return samples
	}
	filled, copied := samples, false
	for k, v := range samples {
		mean, ok := means[k%width]
		if !ok || v == v {
			continue
		}
		if !copied {
			filled, copied = slices.Clone(samples), true
		}
		filled[k] = float32(mean)
	}
	return filled
}

// Minus returns the means of samples of which the shift of a scaling has been subtracted.
func (means Means) Minus(shift *Scaling) Means {
	other := maps.Clone(means)
	for k := range other {
		other[k] -= shift.ShiftOf(k)
	}
	return other
}
