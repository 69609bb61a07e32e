package export

import (
	"slices"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/losses"
)

// scaled adds the scaling of a run's samples to a program, so that its input images, drawn columns of images, and its output are in
// the scale of the data set. If s is nil, it does nothing.
func scaled(m *ir.Module, s *data.Scaling, columns []data.Column) {
	if s == nil {
		return
	}
	inputs := []string{graph.Images}
	for _, c := range columns {
		if c.AsImages {
			inputs = append(inputs, graph.ColumnName(c.Name))
		}
	}
	images := map[*ir.Value]*ir.Value{} // maps each replaced leaf to its replacement
	for _, v := range m.Values() {
		if l, ok := v.Op.(ir.Leaf); ok && l.Kind == ir.InputLeaf && slices.Contains(inputs, v.Name) {
			images[v] = applied(m, s, v)
		}
		for i, a := range v.Args {
			if y, ok := images[a]; ok {
				v.Args[i] = y
			}
		}
	}
	for i, t := range m.Taps {
		if t.Name == losses.Output {
			m.Taps[i].Value = undone(m, s, t.Value)
		}
	}
}

// applied returns (x - shift) factor, where the shift may have two parts, clipped to [0,1] if the scaling clips, times the matrix of a whitening.
func applied(m *ir.Module, s *data.Scaling, x *ir.Value) *ir.Value {
	rows := ir.Reshaped(x, []int{x.Shape[0], len(s.Shift)})
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
	return ir.Point(ir.Add, y.Shape, y, row(m, data.ShiftName, s.Shift))
}

// row adds values to the parameters, and returns them with shape (1, values).
func row(m *ir.Module, name string, values []float32) *ir.Value {
	shape := []int{len(values)}
	m.Parameters = append(m.Parameters, ir.Parameter{Name: name, Shape: shape, Data: values})
	leaf := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: len(m.Parameters) - 1}, Shape: shape, Name: name}
	return ir.Reshaped(leaf, []int{1, len(values)})
}
