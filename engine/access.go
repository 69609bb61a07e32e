package engine

import (
	"slices"

	"tessera/engine/ir"
)

// axis is one factor of an iteration space with its stride in a buffer; stride 0 repeats.
type axis struct{ length, step int }

// access describes how a chain walks over a buffer: axes from the slowest to the fastest.
type access struct {
	base *ir.Value // what holds the numbers: never a reshape or a broadcast
	axes []axis
}

// accessOf resolves reshapes and one broadcast. ok is false where a broadcast of a reshaped broadcast would be needed;
// materializeViews prevents that.
func accessOf(v *ir.Value) (a access, ok bool) {
	v = skipReshapes(v)
	if _, ok := v.Op.(ir.Broadcast); !ok {
		return access{base: v, axes: contiguous(v.Shape)}, true
	}
	from := v.Args[0]
	base := skipReshapes(from)
	if _, nested := base.Op.(ir.Broadcast); nested {
		return access{}, false
	}
	axes := make([]axis, len(v.Shape))
	step := 1
	for i := len(v.Shape) - 1; i >= 0; i-- {
		axes[i] = axis{v.Shape[i], 0}
		if from.Shape[i] == v.Shape[i] && from.Shape[i] > 1 {
			axes[i].step = step
		}
		step *= from.Shape[i]
	}
	return access{base: base, axes: axes}, true
}

func skipReshapes(v *ir.Value) *ir.Value {
	for {
		if _, ok := v.Op.(ir.Reshape); !ok {
			return v
		}
		v = v.Args[0]
	}
}

// contiguous are the axes of a row-major tensor.
func contiguous(shape []int) []axis {
	axes := make([]axis, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		axes[i] = axis{shape[i], step}
		step *= shape[i]
	}
	return axes
}

// boundaries are the products of the last 1, 2, ... axes: the places where an iteration space is divided. Axes of
// length 1 add none.
func boundaries(shape []int) []int {
	b := []int{1}
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			n *= shape[i]
			b = append(b, n)
		}
	}
	return b
}

// refine unites two sets of boundaries of spaces of equal size. ok is false if there is no common factorisation.
func refine(a, b []int) (united []int, ok bool) {
	united = slices.Concat(a, b)
	slices.Sort(united)
	united = slices.Compact(united)
	for i := 1; i < len(united); i++ {
		if united[i]%united[i-1] != 0 {
			return nil, false
		}
	}
	return united, true
}

// split expresses axes on the finer space that the boundaries describe, slowest axis first.
func split(axes []axis, bounds []int) []axis {
	var out []axis
	inner := 1 // product of the axes handled so far, from the fastest
	k := 1
	for i := len(axes) - 1; i >= 0; i-- {
		rest, step := axes[i].length, axes[i].step
		for rest > 1 {
			length := bounds[k] / inner
			out = append(out, axis{length, step})
			step *= length
			rest /= length
			inner = bounds[k]
			k++
		}
	}
	slices.Reverse(out)
	return out
}

// collapse joins neighbouring axes that every access walks as one, except that the slowest axis stays apart unless
// all of them may join and do. All lists have equal lengths of axes.
func collapse(all [][]axis, flat bool) (joined [][]axis) {
	if len(all) == 0 || len(all[0]) == 0 {
		return all
	}
	joinable := func(i int) bool { // axis i with axis i+1
		for _, axes := range all {
			if axes[i].step != axes[i+1].step*axes[i+1].length {
				return false
			}
		}
		return true
	}
	n := len(all[0])
	for i := 0; i+1 < n; i++ {
		flat = flat && joinable(i)
	}
	joined = make([][]axis, len(all))
	for i := 0; i < n; i++ {
		join := i > 0 && joinable(i-1) && (flat || i > 1)
		for j, axes := range all {
			if join {
				last := &joined[j][len(joined[j])-1]
				*last = axis{last.length * axes[i].length, axes[i].step}
			} else {
				joined[j] = append(joined[j], axes[i])
			}
		}
	}
	return joined
}
