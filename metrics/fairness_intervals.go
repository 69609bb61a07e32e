package metrics

import (
	"cmp"
	"context"
	"math"
	"slices"

	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

// span is a value with the ends of its interval, NaN without one.
type span struct{ value, low, high float64 }

func (s span) row(name string, p float64) TableRow {
	return TableRow{name, []float64{s.value, s.low, s.high, p}}
}

// rateGap compares a rate between groups. p is that of the permutation test of equal rates.
type rateGap struct {
	gap, ratio span
	p          float64
}

// infer computes the intervals of the rates, gaps and ratios, and the tests of the gaps.
func (m *fairnessMeter) infer(ctx context.Context, groups []int) {
	drawn := make([][][]float64, m.Resamples) // by group and rate
	team.For(m.Resamples, 10, func(from, to int) {
		for k := from; k < to && ctx.Err() == nil; k++ {
			r := random.Stream(m.Seed, "fairness", uint64(k))
			for _, g := range groups {
				samples := m.of[g]
				drawn[k] = append(drawn[k], ratesOf(samples, func(int) int { return r.IntN(len(samples)) }))
			}
		}
	})
	if ctx.Err() != nil {
		return
	}
	m.spans, m.gaps = make([][]span, len(groups)), nil
	for which := range fairnessRates {
		for i, g := range groups {
			one := span{m.rates[i][which], math.NaN(), math.NaN()}
			if len(m.of[g]) >= m.Least {
				one.low, one.high = interval(drawn, func(rates [][]float64) float64 { return rates[i][which] })
			}
			m.spans[i] = append(m.spans[i], one)
		}
		m.gaps = append(m.gaps, m.gapOf(drawn, which, m.permute(ctx, groups, which)))
	}
}

// interval returns the 2.5 % and 97.5 % quantiles of a value over all bootstrap samples that have it; NaN if none has.
func interval(drawn [][][]float64, of func(rates [][]float64) float64) (low, high float64) {
	var known []float64
	for _, rates := range drawn {
		if v := of(rates); !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(known)
	return vectors.Quantile(known, 0.025), vectors.Quantile(known, 0.975)
}

// gapOf returns the gap and the ratio of a rate with their intervals; p is that of the test of equal rates.
func (m *fairnessMeter) gapOf(drawn [][][]float64, which int, p float64) (g rateGap) {
	g.p = p
	g.gap.value, g.ratio.value = between(m.rates, which)
	difference := func(rates [][]float64) float64 { gap, _ := between(rates, which); return gap }
	ratio := func(rates [][]float64) float64 { _, ratio := between(rates, which); return ratio }
	var known []int // groups with the rate, the smallest first
	for i, rates := range m.rates {
		if !math.IsNaN(rates[which]) {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(m.rates[a][which], m.rates[b][which]) })
	if len(known) == 2 { // signed: negative, or above 1, if a bootstrap sample has the groups in the other order
		difference = func(rates [][]float64) float64 { return rates[known[1]][which] - rates[known[0]][which] }
		ratio = func(rates [][]float64) float64 {
			if rates[known[1]][which] == 0 {
				return math.NaN()
			}
			return rates[known[0]][which] / rates[known[1]][which]
		}
	}
	g.gap.low, g.gap.high = interval(drawn, difference)
	g.ratio.low, g.ratio.high = interval(drawn, ratio)
	if p >= 0.05 {
		g.gap.low, g.ratio.high = min(g.gap.low, 0), max(g.ratio.high, 1)
	}
	return g
}

// permute returns the p-value of the permutation test that all groups have the same rate: the share of the permutations of the groups
// with a gap of at least the measured one, which is one of them. NaN for fewer than two groups with the rate.
func (m *fairnessMeter) permute(ctx context.Context, groups []int, which int) float64 {
	gap, _ := between(m.rates, which)
	if math.IsNaN(gap) {
		return gap
	}
	draw := m.shuffled(groups)
	if rate := fairnessRates[which]; rate.given != nil {
		draw = m.redrawn(groups, rate.given, rate.counts)
	}
	reached := make([]bool, m.Resamples)
	team.For(m.Resamples, 10, func(from, to int) {
		for k := from; k < to && ctx.Err() == nil; k++ {
			r := random.Stream(m.Seed, "fairness permutation "+fairnessRates[which].name, uint64(k))
			other, _ := between(draw(r.IntN), 0)
			reached[k] = other >= gap-1e-12
		}
	})
	n := 1.0
	for _, yes := range reached {
		if yes {
			n++
		}
	}
	return n / float64(m.Resamples+1)
}

// redrawn returns a function that permutes the groups of all samples of a condition and returns the rate of each group. It draws the
// groups of the counted samples without replacement, or those of the others if they are fewer.
func (m *fairnessMeter) redrawn(groups []int, given, counts func(fairSample) bool) func(intN func(int) int) [][]float64 {
	sizes, all, counted := make([]int, len(groups)), 0, 0
	for i, g := range groups {
		for _, s := range m.of[g] {
			if given(s) {
				sizes[i]++
				all++
				if counts(s) {
					counted++
				}
			}
		}
	}
	return func(intN func(int) int) [][]float64 {
		left, rates := slices.Clone(sizes), make([][]float64, len(groups))
		for n := range min(counted, all-counted) {
			at, i := intN(all-n), 0
			for ; at >= left[i]; i++ {
				at -= left[i]
			}
			left[i]--
		}
		for i, size := range sizes {
			of := left[i]
			if counted <= all-counted {
				of = size - left[i]
			}
			rates[i] = []float64{float64(of) / float64(size)}
		}
		return rates
	}
}

// shuffled returns a function that permutes the groups of all samples and returns the calibration error of each group.
func (m *fairnessMeter) shuffled(groups []int) func(intN func(int) int) [][]float64 {
	var all []fairSample
	for _, g := range groups {
		all = append(all, m.of[g]...)
	}
	return func(intN func(int) int) [][]float64 {
		samples, next, rates := slices.Clone(all), 0, make([][]float64, len(groups))
		for i, g := range groups {
			var c calibration
			for range m.of[g] { // Fisher and Yates
				at := next + intN(len(samples)-next)
				samples[next], samples[at] = samples[at], samples[next]
				c.add(samples[next])
				next++
			}
			rates[i] = []float64{c.error()}
		}
		return rates
	}
}
