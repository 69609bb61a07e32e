package export

import (
	"fmt"
	"maps"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/train/checkpoint"
	"tessera/posthoc"
)

// calibrations returns the tensors of the calibrations of heads. A linear calibration, z scale + bias, has the tensors
// calibration/HEAD/scale and calibration/HEAD/bias. An isotonic calibration has calibration/HEAD/K/x and
// calibration/HEAD/K/y, the points of the curve of class K.
func (r *Run) calibrations() (list []checkpoint.Tensor) {
	if r.Trained == nil {
		return nil
	}
	for _, head := range slices.Sorted(maps.Keys(r.PostHoc)) {
		c := r.PostHoc[head].Calibration
		if c == nil {
			continue
		}
		name := "calibration/" + head + "/"
		add := func(of string, values []float32) {
			list = append(list, checkpoint.Tensor{Name: name + of, Shape: []int{len(values)}, Data: values})
		}
		if scales, biases, ok := c.Linear(r.Layout.Size(head)); ok {
			add("scale", scales)
			add("bias", biases)
			continue
		}
		if isotonic, ok := c.Fitted.(*posthoc.IsotonicCurves); ok {
			for k, g := range isotonic.Curves {
				add(fmt.Sprint(k, "/x"), floats(g.X))
				add(fmt.Sprint(k, "/y"), floats(g.Y))
			}
		}
	}
	return list
}

func floats(values []float64) []float32 {
	all := lists.Map(values, func(v float64) float32 { return float32(v) })
	return all
}

// calibrated adds the calibrations of heads to a program. It returns an error for a calibration that is not linear.
func (r *Run) calibrated(m *ir.Module) error {
	for i, t := range m.Taps {
		c := r.PostHoc[t.Name].Calibration
		if c == nil {
			continue
		}
		z := t.Value
		scales, biases, ok := c.Linear(z.Shape[len(z.Shape)-1])
		if !ok {
			return fmt.Errorf("head %q: an %s calibration has no ONNX form; export the run raw, or calibrate it by temperature or platt", t.Name, c.Method)
		}
		row := func(name string, values []float32) *ir.Value {
			name = "calibration/" + t.Name + "/" + name
			m.Parameters = append(m.Parameters, ir.Parameter{Name: name, Shape: []int{len(values)}, Data: values})
			leaf := &ir.Value{Op: ir.Leaf{Kind: ir.ParameterLeaf, Index: len(m.Parameters) - 1}, Shape: []int{len(values)}, Name: name}
			return ir.Reshaped(leaf, []int{1, len(values)})
		}
		m.Taps[i].Value = ir.Point(ir.Add, z.Shape, ir.Point(ir.Mul, z.Shape, z, row("scale", scales)), row("bias", biases))
	}
	return nil
}
