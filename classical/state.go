package classical

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tessera/internal/volume"
)

// Kept saves the state of a model, or restores it: each method does both for one value of a model. A tensor that is nil is not
// saved. Errors of a restore are collected, and the values are then undefined.
type Kept struct {
	Restores bool // whether the state is restored
	state    State
	errs     []error
}

// Fail adds an error of a restore; nil is none.
func (k *Kept) Fail(err error) {
	if err != nil {
		k.errs = append(k.errs, err)
	}
}

func (k *Kept) failed() bool { return len(k.errs) > 0 }

func (k *Kept) has(name string) bool {
	_, ok := k.state.Tensors[name]
	return ok
}

// Number keeps a number, which is finite.
func (k *Kept) Number(name string, v *float64) {
	if k.Restores {
		k.Fail(k.state.numbers(map[string]*float64{name: v}))
	} else {
		k.state.Numbers[name] = *v
	}
}

// Count keeps a whole number.
func (k *Kept) Count(name string, n *int) {
	v := float64(*n)
	k.Number(name, &v)
	*n = int(v)
}

// Tensor keeps values of the given shape, in which -1 stands for any size.
func (k *Kept) Tensor(name string, values *[]float32, shape ...int) {
	if !k.Restores {
		k.put(name, shape, *values)
		return
	}
	t, err := k.state.tensor(name, shape...)
	*values = slices.Clone(t.Values)
	k.Fail(err)
}

// put saves values; a size of -1 is computed.
func (k *Kept) put(name string, shape []int, values []float32) {
	if values == nil {
		return
	}
	shape = slices.Clone(shape)
	if i := slices.Index(shape, -1); i >= 0 {
		shape[i] = 1
		shape[i] = len(values) / max(1, volume.Of(shape))
	}
	k.state.Tensors[name] = Tensor{shape, values}
}

// lowSuffix is the suffix of the second tensor of a pair.
const lowSuffix = ".low"

// pair keeps values in float64 as the sum of two tensors, of which the second has the suffix. A slice of the right length is
// restored in place.
func (k *Kept) pair(name string, values *[]float64, shape ...int) {
	if !k.Restores {
		high, low := make([]float32, len(*values)), make([]float32, len(*values))
		for i, v := range *values {
			high[i] = float32(v)
			low[i] = float32(v - float64(high[i]))
		}
		k.put(name, shape, high)
		k.put(name+lowSuffix, shape, low)
		return
	}
	high, err := k.state.tensor(name, shape...)
	k.Fail(err)
	low, err := k.state.tensor(name+lowSuffix, high.Shape...)
	if k.Fail(err); k.failed() {
		return
	}
	if len(*values) != len(high.Values) {
		*values = make([]float64, len(high.Values))
	}
	for i, v := range high.Values {
		(*values)[i] = float64(v) + float64(low.Values[i])
	}
}

// transposed keeps a matrix (rows x n, with any n) as its transpose.
func (k *Kept) transposed(name string, values *[]float32, rows int) {
	if k.Restores {
		k.Tensor(name, values, -1, rows)
		*values = transpose(*values, len(*values)/rows, rows)
	} else if *values != nil {
		k.put(name, []int{-1, rows}, transpose(*values, rows, len(*values)/rows))
	}
}

// tensor returns the named tensor, or an error if it does not have the given shape; a size of -1 matches any.
func (s State) tensor(name string, shape ...int) (Tensor, error) {
	t, ok := s.Tensors[name]
	if !ok {
		return t, fmt.Errorf("the state holds no tensor %q", name)
	}
	fits := slices.EqualFunc(t.Shape, shape, func(got, want int) bool { return got == want || want < 0 && got >= 0 })
	if !fits || len(t.Values) != volume.Of(t.Shape) {
		return Tensor{}, fmt.Errorf("tensor %q: got shape %v and %d values, want shape %v", name, t.Shape, len(t.Values), shape)
	}
	return t, nil
}

// numbers sets each variable to the saved number with its name.
func (s State) numbers(into map[string]*float64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(into)) {
		v, ok := s.Numbers[name]
		if *into[name] = v; !ok {
			errs = append(errs, fmt.Errorf("the state holds no number %q", name))
		}
	}
	return errors.Join(errs...)
}
