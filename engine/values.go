package engine

import (
	"slices"
	"strings"

	"tessera/ops"
)

// point returns a pointwise value; scalars among its args are broadcast.
func point(f function, shape []int, args ...*value) *value {
	v := &value{op: pointwise{f}, shape: shape}
	for _, a := range args {
		if !slices.Equal(a.shape, shape) {
			if size(a.shape) == size(shape) {
				a = reshaped(a, shape)
			} else {
				a = broadcasted(a, shape)
			}
		}
		v.args = append(v.args, a)
	}
	return v
}

// reshaped returns a under another shape of the same size.
func reshaped(a *value, shape []int) *value {
	if slices.Equal(a.shape, shape) {
		return a
	}
	return &value{op: reshape{}, args: []*value{a}, shape: shape}
}

// broadcasted returns a repeated to shape; a has as many axes, of the same length or 1, or is a single number.
func broadcasted(a *value, shape []int) *value {
	if len(a.shape) != len(shape) {
		a = reshaped(a, slices.Repeat([]int{1}, len(shape)))
	}
	return &value{op: broadcast{}, args: []*value{a}, shape: shape}
}

// reduce returns a folded along the axes that Gorgonia prints as "[0 1]"; shape is the result's.
func reduce(f reducer, along string, a *value, shape []int) *value {
	axes := axesOf(strings.Trim(along, "[]"))
	if len(axes) == 0 {
		for i := range a.shape {
			axes = append(axes, i)
		}
	}
	slices.Sort(axes)
	axes = slices.Compact(axes)
	var kept []int
	for i, d := range a.shape {
		if !slices.Contains(axes, i) {
			kept = append(kept, d)
		}
	}
	return reshaped(&value{op: reduction{f, axesText(axes)}, args: []*value{a}, shape: kept}, shape)
}

// kernelValue returns the value of an op of ours that computes its output in independent blocks.
func kernelValue(k ops.Kernel, shape []int, args []*value) *value {
	block := k.Block(shape)
	if block == 1 {
		return point(foreign{k}, shape, args...)
	}
	return &value{op: blockwise{k, block}, args: args, shape: shape}
}

// unitwiseValue returns the value of an op of ours that computes its output in units.
func unitwiseValue(p ops.Parallel, shape []int, args []*value) *value {
	if q, prepared := p.Prepared(); q != nil {
		last := len(args) - 1
		args = append(slices.Clone(args[:last]), &value{op: unitwise{q}, args: args[last:], shape: prepared})
	}
	return &value{op: unitwise{p}, args: args, shape: shape}
}
