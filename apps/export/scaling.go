package export

import (
	"fmt"
	"math"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/losses"
)

// read adds to a program how the run reads samples: its missing values and its scaling. Input images, drawn columns of images, and the
// output are then in the scale of the data set; NaN is a missing value, as is what a mask does not observe. A step of another module is an error.
func (r *Run) read(m *ir.Module) error {
	s := r.Scaling
	if s != nil {
		for _, one := range s.Steps {
			if stepOf(m, one, ir.Uniform(1, []int{1, len(s.Shift)})) == nil {
				return fmt.Errorf("no format has the scaling %q: train on samples that are scaled before, or export the weights with --to npz", data.Scalings.NameOf(one))
			}
		}
	}
	var names []string
	inputs, values := map[string]*ir.Value{}, m.Values()
	for _, v := range values {
		if l, ok := v.Op.(ir.Leaf); ok && l.Kind == ir.InputLeaf {
			names, inputs[v.Name] = append(names, v.Name), v
		}
	}
	replaced := map[*ir.Value]*ir.Value{} // maps each replaced leaf to its replacement
	for _, name := range names {
		x := inputs[name]
		y, there := x, (*ir.Value)(nil)
		scaled, mask, lacks := r.kind(name)
		if lacks {
			y, there = r.filled(m, x, inputs[mask], scaled)
			if inputs[mask] != nil {
				replaced[inputs[mask]] = there
			}
		}
		if scaled && s != nil {
			y = applied(m, s, y)
			if lacks { // what no mean replaces is 0 after scaling
				y = gated(there, y)
			}
		}
		if y != x {
			replaced[x] = y
		}
	}
	for _, v := range values {
		for i, a := range v.Args {
			if y, ok := replaced[a]; ok {
				v.Args[i] = y
			}
		}
	}
	for i, t := range m.Taps {
		if t.Name == losses.Output && s != nil && r.OutputIsSample() {
			m.Taps[i].Value = undone(m, s, t.Value)
		}
	}
	return nil
}

// kind says of an input whether it is scaled like the samples, the name of the input with its mask, and whether its values may be missing.
func (r *Run) kind(input string) (scaled bool, mask string, lacks bool) {
	if input == graph.Images {
		return true, graph.ColumnName(data.ObservedColumn), r.Baseline == nil && r.Spec.Holed()
	}
	if r.Baseline == nil {
		for _, c := range r.Layout.Columns {
			if graph.ColumnName(c.Name) == input {
				return c.AsImages, graph.ColumnName(c.Name + data.ObservedSuffix), c.Missing
			}
		}
	}
	return false, "", false
}

// applied returns (x - shift) factor, where the shift may have two parts, clipped to [0,1] if the scaling clips, times the matrix of a whitening.
func applied(m *ir.Module, s *data.Scaling, x *ir.Value) *ir.Value {
	rows := ir.Reshaped(x, []int{x.Shape[0], len(s.Shift)})
	for _, one := range s.Steps {
		rows = stepOf(m, one, rows)
	}
	y := ir.Point(ir.Sub, rows.Shape, rows, row(m, data.ShiftName, s.Shift))
	if s.IsExact() {
		y = ir.Point(ir.Sub, y.Shape, y, row(m, data.RestName, s.Rest))
	}
	y = ir.Point(ir.Mul, y.Shape, y, row(m, data.FactorName, s.Factor))
	if s.Clip {
		y = ir.Point(ir.Minimum, y.Shape, ir.Point(ir.Maximum, y.Shape, y, ir.Uniform(0, y.Shape)), ir.Uniform(1, y.Shape))
	}
	return ir.Reshaped(times(m, data.MixName, y, s.Mix), x.Shape)
}

// times returns y times a parameter, a square matrix; y itself if the matrix is nil.
func times(m *ir.Module, name string, y *ir.Value, matrix []float32) *ir.Value {
	if matrix == nil {
		return y
	}
	shape := []int{y.Shape[1], y.Shape[1]}
	m.Parameters = append(m.Parameters, ir.Parameter{Name: name, Shape: shape, Data: matrix})
	leaf := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: len(m.Parameters) - 1}, Shape: shape, Name: name}
	return &ir.Value{Op: ir.Product{}, Args: []*ir.Value{y, leaf}, Shape: y.Shape}
}

// undone returns y, times the inverse of the matrix of a whitening, / factor + shift.
func undone(m *ir.Module, s *data.Scaling, y *ir.Value) *ir.Value {
	y = times(m, data.UnmixName, y, s.Unmix)
	y = ir.Point(ir.Div, y.Shape, y, row(m, data.FactorName, s.Factor))
	if s.IsExact() {
		y = ir.Point(ir.Add, y.Shape, y, row(m, data.RestName, s.Rest))
	}
	y = ir.Point(ir.Add, y.Shape, y, row(m, data.ShiftName, s.Shift))
	for i := len(s.Steps) - 1; i >= 0; i-- {
		if _, ok := s.Steps[i].(*data.Log1p); !ok { // it has no inverse
			break
		}
		y = ir.Point(ir.Sub, y.Shape, ir.Point(ir.Exp, y.Shape, y), ir.Uniform(1, y.Shape))
	}
	return y
}

// stepOf returns rows x after a step, nil for one that is not known. Values below the range of a step are those at its end.
func stepOf(m *ir.Module, step data.Scaler, x *ir.Value) *ir.Value {
	point := func(f ir.Function, args ...*ir.Value) *ir.Value { return ir.Point(f, x.Shape, args...) }
	number := func(c float64) *ir.Value { return ir.Uniform(c, x.Shape) }
	// divided returns rows times to / norm; rows whose norm is 0 do not change.
	divided := func(y *ir.Value, norm string, to float64) *ir.Value {
		one, size := []int{x.Shape[0], 1}, point(ir.Abs, y)
		var n *ir.Value
		switch norm {
		case "l1":
			n = ir.Reduce(ir.Sum, size, one, 1)
		case "l2":
			n = ir.Point(ir.Sqrt, one, ir.Reduce(ir.Sum, point(ir.Mul, y, y), one, 1))
		case "max":
			n = ir.Reduce(ir.Max, size, one, 1)
		default:
			return y
		}
		n = ir.Point(ir.Add, one, n, ir.Point(ir.Mul, one, ir.Point(ir.Eq, one, n, ir.Uniform(0, one)), ir.Uniform(to, one)))
		return point(ir.Mul, point(ir.Div, y, ir.Broadcasted(n, x.Shape)), number(to))
	}
	positive := point(ir.Maximum, x, number(0))
	switch s := step.(type) {
	case *data.Log1p:
		return point(ir.Log, point(ir.Add, point(ir.Maximum, x, number(-1+1.0/(1<<24))), number(1)))
	case *data.RowNorm:
		return divided(x, s.Norm, s.Target)
	case *data.TFIDF:
		if s.Sublinear { // log(max(x, tiny)) + 1 for x > 0
			log := point(ir.Add, point(ir.Log, point(ir.Maximum, x, number(math.SmallestNonzeroFloat32*(1<<24)))), number(1))
			positive = point(ir.Mul, log, point(ir.Gt, x, number(0)))
		}
		return divided(point(ir.Mul, positive, row(m, "data/idf", s.IDF)), s.Norm, 1)
	case *data.PPMI:
		share := point(ir.Maximum, divided(positive, "l1", 1), number(math.SmallestNonzeroFloat32*(1<<24)))
		return point(ir.Maximum, point(ir.Sub, point(ir.Log, share), row(m, "data/columns", s.Columns)), number(0))
	}
	return nil
}

// row adds values to the parameters, and returns them with shape (1, values).
func row(m *ir.Module, name string, values []float32) *ir.Value {
	shape := []int{len(values)}
	m.Parameters = append(m.Parameters, ir.Parameter{Name: name, Shape: shape, Data: values})
	leaf := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: len(m.Parameters) - 1}, Shape: shape, Name: name}
	return ir.Reshaped(leaf, []int{1, len(values)})
}
