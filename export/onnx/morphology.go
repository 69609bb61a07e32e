package onnx

import (
	"math"

	"tessera/data/morph"
	"tessera/engine/ir"
	"tessera/layers"
)

func init() { define(decompose) }

// morphology adds operators of images with channels first, for one value. Maxima and negations are exact, so the results are too.
type morphology struct {
	*writer
	v *ir.Value
}

// decompose is the layers amd and pado; see [morph.Method].
func decompose(w *writer, v *ir.Value, o layers.DecomposeOp) string {
	m := morphology{w, v}
	channels := 1
	if len(o.Shape) == 3 {
		channels = o.Shape[2]
	}
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Shape[0]), int64(o.Shape[1]), int64(channels))
	x = w.channelsFirst(v, x)
	open, closed := []string{x}, []string{x}
	negated := m.node("Neg", x)
	for l := range o.Levels {
		radius := min(o.Start+l*o.Step, o.Shape[0]+o.Shape[1])
		open = append(open, m.openRec(x, negated, radius))
		if o.Method == morph.AMD { // the closing of x is the negated opening of -x, and so is its reconstruction
			closed = append(closed, m.node("Neg", m.openRec(negated, x, radius)))
		}
	}
	var parts []string
	if o.Original {
		parts = append(parts, x)
	}
	for l := 1; l <= o.Levels; l++ {
		r := m.node("Sub", open[l-1], open[l])
		if o.Method == morph.AMD {
			r = m.half(m.node("Sub", r, m.node("Sub", closed[l], closed[l-1])))
		}
		parts = append(parts, r)
	}
	rest := open[o.Levels]
	if o.Method == morph.AMD {
		rest = m.half(m.node("Add", closed[o.Levels], rest))
	}
	joined := w.node(v, "Concat", append(parts, rest), intOf("axis", 1))
	return w.channelsLast(v, joined)
}

// node adds an operator without attributes.
func (m morphology) node(op string, inputs ...string) string { return m.writer.node(m.v, op, inputs) }

func (m morphology) half(x string) string { return m.node("Mul", x, m.number(0.5, 0)) }

// openRec is the reconstruction by dilation, under x, of the opening of x by the disk.
func (m morphology) openRec(x, negated string, radius int) string {
	eroded := m.node("Neg", m.dilate(negated, radius))
	return m.reconstruct(m.node("Min", m.dilate(eroded, radius), x), x)
}

// dilate takes the largest value under the disk: for each distance dy from the centre, that of the rows dy above and below, from
// dx before to dx after, where dx*dx + dy*dy <= radius*radius. A window of two rows that are 2 dy apart has both.
func (m morphology) dilate(x string, radius int) string {
	widest := int64(radius)
	y := m.largest(x, intsOf("kernel_shape", 1, 2*widest+1), intsOf("pads", 0, widest, 0, widest))
	for dy := 1; dy <= radius; dy++ {
		rows, dx := int64(dy), int64(math.Sqrt(float64(radius*radius-dy*dy)))
		padded := m.node("Pad", x, m.ints(0, 0, rows, 0, 0, 0, rows, 0), m.number(math.Inf(-1), 0)) // MaxPool pads less than a window
		y = m.node("Max", y, m.largest(padded, intsOf("kernel_shape", 2, 2*dx+1), intsOf("dilations", 2*rows, 1), intsOf("pads", 0, dx, 0, dx)))
	}
	return y
}

func (m morphology) largest(x string, windows ...Attribute) string {
	return m.writer.node(m.v, "MaxPool", []string{x}, append(windows, intsOf("strides", 1, 1))...)
}

// reconstruct repeats marker <- min(dilation of marker by the 3 x 3 square, mask) until nothing changes.
func (m morphology) reconstruct(marker, mask string) string {
	outer := m.graph
	body := &Graph{Name: m.fresh("reconstruction")}
	iteration, condition, before := m.fresh("iteration"), m.fresh("condition"), m.fresh("marker")
	m.graph = body
	after := m.node("Min", m.largest(before, intsOf("kernel_shape", 3, 3), intsOf("pads", 1, 1, 1, 1)), mask)
	change := m.writer.node(m.v, "ReduceMax", []string{m.node("Sub", after, before)}, intOf("keepdims", 0)) // it only grows
	goesOn := m.writer.node(m.v, "Cast", []string{change}, intOf("to", boolElement))
	m.graph = outer
	of := func(name string, element int64, shape *Shape) Value {
		return Value{Name: name, Type: &Type{&TensorType{element, shape}}}
	}
	body.Inputs = []Value{of(iteration, int64Element, &Shape{}), of(condition, boolElement, &Shape{}), of(before, float32Element, nil)}
	body.Outputs = []Value{of(goesOn, boolElement, &Shape{}), of(after, float32Element, nil)}
	return m.writer.node(m.v, "Loop", []string{"", "", marker}, Attribute{Name: "body", Graph: body, Type: graphAttribute})
}
