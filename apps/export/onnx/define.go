package onnx

import (
	"fmt"
	"reflect"

	"tessera/internal/engine/ir"
)

// Define registers the ONNX form of an op of another module. S is the type of the op's spec: the field Spec of an
// ops.Blockwise, ops.Unitwise or ops.PerImage. The function f adds the nodes for one value and returns the name of the
// last node's output, which must have the shape of the value. Elementwise nodes keep the shape; for other nodes see
// [Nodes.Reshape]. Call Define in an init function, next to the op:
//
//	func init() {
//		onnx.Define(func(n *onnx.Nodes, o softsignOp) string { // x / (scale + |x|)
//			size := n.Add("Abs", n.Arg(0))
//			return n.Add("Div", n.Arg(0), n.Add("Add", size, n.Number(o.Scale)))
//		})
//	}
//
// The form is for opset 17 and float32. Define panics if ops with this spec already have a form.
func Define[S any](f func(n *Nodes, spec S) string) {
	if t := reflect.TypeFor[S](); forms[t] != nil {
		panic(fmt.Sprintf("onnx: the op %v has two forms", t))
	}
	define(func(w *writer, v *ir.Value, spec S) string { return f(&Nodes{w, v}, spec) })
}

// Nodes adds the nodes for one value to a graph. Values of the graph are identified by their names.
type Nodes struct {
	writer *writer
	value  *ir.Value
}

// Arg returns the name of the i-th input of the op.
func (n *Nodes) Arg(i int) string { return n.writer.full(n.value.Args[i]) }

// Axes returns the number of axes of the value. The first axis is usually the batch.
func (n *Nodes) Axes() int { return len(n.value.Shape) }

// Add adds the operator op, such as "MatMul", and returns the name of its output.
func (n *Nodes) Add(op string, inputs ...string) string { return n.writer.node(n.value, op, inputs) }

// AddWith is like [Nodes.Add] with attributes: [IntOf], [IntsOf], [FloatOf].
func (n *Nodes) AddWith(attributes []Attribute, op string, inputs ...string) string {
	return n.writer.node(n.value, op, inputs, attributes...)
}

// Number returns the name of a constant without axes, for elementwise operators.
func (n *Nodes) Number(x float64) string { return n.writer.number(x, 0) }

// Ints returns the name of a constant list of whole numbers, for operators that take shapes or axes as inputs.
func (n *Nodes) Ints(list ...int64) string { return n.writer.ints(list...) }

// Reshape gives x the shape of the value and returns the name of the result.
func (n *Nodes) Reshape(x string) string {
	return n.writer.reshape(n.value, x, n.writer.dims(n.value))
}

// Fail reports that ONNX has no operator for the settings of the op. The export then ends with an error that names the
// layer.
func (n *Nodes) Fail(problem string) string {
	n.writer.fail(n.value, problem)
	return ""
}
