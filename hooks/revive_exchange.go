// This file finds a living unit that is to be replaced: the key `exchange` of [Revive].

package hooks

import (
	"cmp"
	"math"
	"slices"

	"tessera/internal/vectors"
)

// exchangeable is the number of units of which exchange may replace one, exchangeSample that of the images on which it compares
// them: every unit costs a pass over these images.
const (
	exchangeable   = 8
	exchangeSample = 1000
)

// exchange counts a unit as dead if a new one would save more than Exchange times the error that the unit saves.
func (h *reviving) exchange(dead []bool) error {
	saturated := slices.Max(h.pixels(min(h.sample, exchangeSample)))
	var errors [][]float32
	direction, size := []float32(nil), 0.0
	now, err := h.error(saturated, func(e []float32) {
		errors = append(errors, slices.Clone(e))
		r := positive(e)
		if s := squares(r, 0, 1, len(r)); s > size {
			direction, size = r, s
		}
	})
	if err != nil || direction == nil {
		return err
	}
	gain := 0.0
	for _, e := range errors {
		along := max(0, vectors.Dot(direction, e))
		gain += along * along / size
	}
	unit, cost := 0, math.Inf(1)
	for _, candidate := range h.leastEffects() {
		without, err := h.errorWithout(candidate, saturated)
		if err != nil {
			return err
		}
		if without-now < cost {
			unit, cost = candidate, without-now
		}
	}
	dead[unit] = gain > h.Exchange*cost
	return nil
}

// error returns the sum of the squared errors x - y of the images on which exchange compares, and calls use for the errors of each
// image; use must not keep them. An output above a pixel of at least saturated is no error.
func (h *reviving) error(saturated float32, use func(e []float32)) (sum float64, err error) {
	var e []float32
	err = h.run(Output, h.decode, min(h.sample, exchangeSample), func(x, y []float32) {
		e = append(e[:0], x...)
		for i, v := range x {
			if e[i] = v - y[i]; v >= saturated {
				e[i] = max(0, e[i])
			}
		}
		sum += squares(e, 0, 1, len(e))
		use(e)
	})
	return sum, err
}

func positive(e []float32) []float32 {
	r := make([]float32, len(e))
	for i, v := range e {
		r[i] = max(0, v)
	}
	return r
}

// errorWithout returns what error does if the weights of a unit are 0.
func (h *reviving) errorWithout(unit int, saturated float32) (sum float64, err error) {
	for _, p := range []*Parameter{h.encoder, h.decoder} {
		if p == nil {
			continue
		}
		first, stride, n := h.values(p, unit)
		kept := make([]float32, n)
		for i := range n {
			kept[i], p.Data[first+i*stride] = p.Data[first+i*stride], 0
		}
		defer func() {
			for i, v := range kept {
				p.Data[first+i*stride] = v
			}
		}()
	}
	return h.error(saturated, func([]float32) {})
}

// leastEffects lists the units with the least sum of squared contributions to the images of the last search.
func (h *reviving) leastEffects() []int {
	weight := h.atoms()
	units, effects := make([]int, h.units), make([]float64, h.units)
	for u := range units {
		first, stride, n := h.values(weight, u)
		units[u], effects[u] = u, h.squares[u]*squares(weight.Data, first, stride, n)
	}
	slices.SortStableFunc(units, func(a, b int) int { return cmp.Compare(effects[a], effects[b]) })
	return units[:min(exchangeable, h.units)]
}
