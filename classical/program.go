package classical

import (
	"errors"
	"fmt"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
)

// expressed is implemented by models whose codes are a closed expression of the images. Other models compute codes by an
// iterative method.
type expressed interface {
	// expression returns the codes (batch, units) of images x (batch, pixels).
	expression(m *ir.Module, x *ir.Value) *ir.Value
}

// Program returns the computation of a fitted model for a batch of the given number of rows, from given ("input" or "code")
// to wanted ("code", "output"). It returns an error for a value that the model cannot compute from the given one, in
// particular for the codes of a model with an iterative encoder.
func Program(m Model, batch int, given string, wanted ...string) (*ir.Module, error) {
	if m == nil || m.Atoms() == nil || m.Atoms().Values == nil {
		return nil, errUnfitted
	}
	m = coderOf(m)
	module := &ir.Module{Dtype: ir.Float32, Batch: batch}
	pixels, units := volume.Of(m.Shape()), m.Units()
	var code *ir.Value
	switch given {
	case imagesName:
		e, ok := m.(expressed)
		if !ok {
			return nil, errors.New("the encoder is not a closed expression: it fits the code of every sample by iterations")
		}
		x := input(module, imagesName, append([]int{batch}, m.Shape()...))
		code = e.expression(module, ir.Reshaped(x, []int{batch, pixels}))
	case losses.Code:
		code = input(module, losses.Code, []int{batch, units})
	default:
		return nil, fmt.Errorf("got the value %q, want %q or %q", given, imagesName, losses.Code)
	}
	for _, name := range wanted {
		v := code
		if name == losses.Output {
			v = decoded(module, m.Atoms(), code)
		} else if name != losses.Code {
			return nil, fmt.Errorf("a baseline has no value %q, want %q or %q", name, losses.Code, losses.Output)
		}
		module.Taps = append(module.Taps, ir.Tap{Name: name, Value: v})
	}
	return module, nil
}

// imagesName is the name of the input for images, as in programs of auto-encoders.
const imagesName = "input"

func input(m *ir.Module, name string, shape []int) *ir.Value {
	m.Inputs = append(m.Inputs, ir.Input{Name: name, Shape: shape})
	return &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: len(m.Inputs) - 1}, Shape: shape, Name: name}
}

// parameter returns the value of a tensor. It adds the tensor on first use.
func parameter(m *ir.Module, name string, shape []int, values []float32) *ir.Value {
	i := slices.IndexFunc(m.Parameters, func(p ir.Parameter) bool { return p.Name == name })
	if i < 0 {
		i = len(m.Parameters)
		m.Parameters = append(m.Parameters, ir.Parameter{Name: name, Shape: shape, Data: values})
	}
	return &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: i}, Shape: shape, Name: name}
}

// row returns a vector parameter as (1, n), for broadcasting.
func row(m *ir.Module, name string, values []float32) *ir.Value {
	n := len(values)
	return ir.Reshaped(parameter(m, name, []int{n}, values), []int{1, n})
}

// decoded returns codes times atoms, plus the bias.
func decoded(m *ir.Module, a *metrics.Atoms, code *ir.Value) *ir.Value {
	batch, pixels := code.Shape[0], volume.Of(a.Shape)
	atoms := parameter(m, atomsName, []int{a.Count, pixels}, a.Values)
	y := &ir.Value{Op: ir.Product{}, Args: []*ir.Value{code, atoms}, Shape: []int{batch, pixels}}
	if a.Bias == nil {
		return y
	}
	return ir.Point(ir.Add, y.Shape, y, row(m, biasName, a.Bias))
}

// projected returns x times the transposed atoms.
func (b *Base) projected(m *ir.Module, x *ir.Value) *ir.Value {
	atoms := parameter(m, atomsName, []int{b.units, b.pixels}, b.atoms)
	return &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{x, atoms}, Shape: []int{x.Shape[0], b.units}}
}
