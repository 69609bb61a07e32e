package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/layers"
	"tessera/part/table"
)

// walk is the state of a walk over a model's layers, including the errors. Errors that may only be consequences of others
// are not reported: an unknown shape is nil and stays unknown until a layer with a given number of outputs.
type walk struct {
	model  *Model
	layout *Layout
	found  []table.Diagnostic
	names  []string // paths of parameters with unknown shapes
	open   []string // paths of layers whose parameter names are unknown
	large  bool     // a layer's tensors for a batch are too large

	unsized string // why the number of outputs of the current layers has no default, "" where nothing is known

	all        []ParameterPath // of the layout; see listed
	own, other []string        // their paths, and their aliases
}

// walk places every layer for images of shape input; nil means an unknown shape.
func (m *Model) walk(input []int) *walk {
	w := &walk{model: m, layout: &Layout{Input: slices.Clone(input), index: map[string]int{}}}
	var out []int
	w.layout.Encoder, out = w.list(stack{path: "encoder", part: "encoder"}, m.Encoder, input)
	if len(m.Encoder) == 0 { // its expected value is unknown
		out, w.open = nil, append(w.open, "encoder.0")
	}
	if out != nil {
		w.layout.Code = []int{product(out)}
	}
	w.layout.Decoder, out = w.list(stack{path: "decoder", part: "decoder", open: true, size: product(input)}, m.Decoder, w.layout.Code)
	if len(m.Decoder) > 0 && input != nil && out != nil && product(out) != product(input) {
		i := w.sizing()
		s, _ := m.Decoder[i].Layer.(layers.Sized)
		w.report(fmt.Sprintf("decoder[%d]", i), m.Decoder[i].Kind, sizeKey(s), fmt.Sprintf(
			"the decoder gives %s values, but the images have %s", shapeText(out), shapeText(input)), "")
	}
	w.heads()
	return w
}

// stack is a list of layers.
type stack struct {
	path, part string // "head.class", "head.class.layers"
	open       bool   // the number of outputs of the last such layer is optional
	size       int    // its default; 0 if unknown
}

// opened is the index of the layer whose number of outputs gets the default, -1 if there is none.
func (s stack) opened(list []Layer) int {
	for i, l := range slices.Backward(list) {
		if sized, ok := l.Layer.(layers.Sized); ok && s.open && !isNil(l.Layer) {
			if sized.OutputUnits() == 0 {
				return i
			}
			return -1
		}
	}
	return -1
}

// sizing is the index of the decoder layer that determines the size of the output: the last one with a number of outputs,
// else the last one.
func (w *walk) sizing() int {
	for i, l := range slices.Backward(w.model.Decoder) {
		if _, ok := l.Layer.(layers.Sized); ok {
			return i
		}
	}
	return len(w.model.Decoder) - 1
}

// list places copies of the layers of one stack and returns the shape of the output.
func (w *walk) list(s stack, list []Layer, in []int) ([]Placed, []int) {
	placed, open := make([]Placed, len(list)), s.opened(list)
	for i, l := range list {
		placed[i] = Placed{Path: fmt.Sprintf("%s.%d", s.path, i), Kind: l.Kind, Layer: copyOf(l.Layer), In: in, origin: w.model.origin}
		if i == open && s.size > 0 {
			placed[i].Layer.(layers.Sized).SetOutputUnits(s.size)
		}
		in = w.place(fmt.Sprintf("%s[%d]", s.part, i), &placed[i], i == open)
		placed[i].Out = in
	}
	return placed, in
}

// place determines a layer's parameters and output shape. The number of outputs of an open layer may be missing.
func (w *walk) place(part string, p *Placed, open bool) []int {
	doubtful := w.model.origin.Doubt(part).Any(aboutShape)
	if isNil(p.Layer) {
		if w.open = append(w.open, p.Path); w.model.origin == nil { // a text has said what is wrong
			w.report(part, p.Kind, "", fmt.Sprintf("there is no layer (got %s)", nilText(p.Layer)), "")
		}
		return nil
	}
	for _, b := range borrowers(p.Layer) {
		if !w.lend(part, p, b) {
			w.assume(p)
			return nil
		}
	}
	s, isSized := p.Layer.(layers.Sized)
	if isSized && s.OutputUnits() == 0 && !open && !doubtful {
		if w.unsized != "" { // the cause, not its consequence
			w.report("dataset", "", "", w.unsized, fmt.Sprintf("or give %s.%s", part, sizeKey(s)))
		} else {
			w.report(part, p.Kind, "", fmt.Sprintf("missing key %q", sizeKey(s)), "")
		}
		w.assume(p)
		return nil
	}
	if in := p.In; in != nil && !doubtful && (!isSized || s.OutputUnits() > 0) {
		out, list, err := shaped(p.Layer, in)
		if err == nil {
			p.Parameters, p.Out = list, out
			if !w.bounded(part, p) {
				return nil
			}
			return out
		}
		w.refused(part, p.Kind, p.Layer, err, w.unflattened(p))
	}
	w.assume(p)
	if isSized && s.OutputUnits() > 0 {
		return []int{s.OutputUnits()}
	}
	return nil
}

// shaped returns the shape of a layer's output and its parameters for inputs of shape in. The layer may be user-defined: a
// panic is an error.
func shaped(l layers.Layer, in []int) (out []int, list []layers.Parameter, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, list, err = nil, nil, fmt.Errorf("its OutputShape or Parameters panics for an input of shape %v: %v", in, cause)
		}
	}()
	if out, err = l.OutputShape(in); err != nil {
		return nil, nil, err
	}
	if len(out) == 0 || slices.Min(out) < 1 {
		return nil, nil, fmt.Errorf("its OutputShape gives %v for an input of shape %v, want axes > 0", out, in)
	}
	list = l.Parameters(in)
	for i, p := range list {
		switch {
		case p.Name == "":
			err = fmt.Errorf("its parameter %d has no name", i)
		case len(p.Shape) > 0 && slices.Min(p.Shape) < 1:
			err = fmt.Errorf("its parameter %q has the shape %v, want axes > 0", p.Name, p.Shape)
		case isNil(p.Init) && p.TransposeOf == "":
			err = fmt.Errorf("its parameter %q has no Init", p.Name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out, list, nil
}

// refused reports the error of a layer, at the inner layer that returned it.
func (w *walk) refused(part, kind string, l layers.Layer, err error, hint string) {
	if b, ok := l.(layers.Block); ok {
		if inner, ok := err.(layers.InnerError); ok {
			part, l := fmt.Sprintf("%s.layers[%d]", part, inner.Index), b.Inner()[inner.Index]
			w.refused(part, language.NameOf(w.model.origin, part, l), l, inner.Err, hint)
			return
		}
	}
	if s, ok := l.(layers.Sized); ok && s.OutputUnits() == 0 {
		w.report(part, kind, "", fmt.Sprintf("missing key %q", sizeKey(s)), "")
		return
	}
	w.report(part, kind, table.KeyOf(err), err.Error(), hint)
}

// unflattened is the advice for a layer that refuses a code, which is a vector, but accepts the shape of the encoder's output.
func (w *walk) unflattened(p *Placed) string {
	n := len(w.layout.Encoder)
	if n == 0 || len(p.In) != 1 {
		return ""
	}
	shape := w.layout.Encoder[n-1].Out
	if len(shape) < 2 || product(shape) != p.In[0] {
		return ""
	}
	if _, _, err := shaped(p.Layer, shape); err != nil {
		return ""
	}
	return fmt.Sprintf("put { kind = \"reshape\", shape = %s } before it, the shape of the encoder's output", strings.ReplaceAll(fmt.Sprint(shape), " ", ", "))
}

// borrowers lists those of a layer and its inner layers that borrow a parameter.
func borrowers(l layers.Layer) (list []layers.Borrower) {
	if b, ok := l.(layers.Borrower); ok {
		list = append(list, b)
	}
	if b, ok := l.(layers.Block); ok {
		for _, inner := range b.Inner() {
			list = append(list, borrowers(inner)...)
		}
	}
	return list
}

// lend gives a layer the shape of the encoder's parameter that it borrows. It returns false if the shape is unknown, and
// reports an error if there is no such parameter.
func (w *walk) lend(part string, p *Placed, b layers.Borrower) bool {
	path := b.Borrows()
	b.Lend(nil)
	var valid []string
	for _, q := range w.layout.Parameters() {
		if q.Path == path && q.TransposeOf == "" {
			b.Lend(q.Shape)
			return true
		}
		if len(q.Shape) == 2 && q.TransposeOf == "" {
			valid = append(valid, q.Path)
		}
	}
	if slices.Contains(w.names, path) || slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(path, layer) }) {
		return false
	}
	hint := "want a layer of the decoder, and a dense one in the encoder"
	if len(valid) > 0 {
		hint = table.Suggest(path, valid)
	}
	_, _, err := shaped(b, p.In)
	w.report(part, p.Kind, table.KeyOf(err), err.Error(), hint)
	return false
}

// assume determines the parameter names of a layer with unknown input: names do not depend on the input.
func (w *walk) assume(p *Placed) {
	if s, ok := p.Layer.(layers.Sized); ok && s.OutputUnits() == 0 {
		s.SetOutputUnits(1)
		defer s.SetOutputUnits(0)
	}
	for _, in := range [][]int{{32, 32}, {32, 32, 1}, {1024}} {
		_, list, err := shaped(p.Layer, in)
		if err != nil {
			continue
		}
		for _, q := range list {
			w.names = append(w.names, p.Path+"."+q.Name)
		}
		return
	}
	w.open = append(w.open, p.Path)
}

func (w *walk) report(part, kind, key, problem, hint string) {
	w.found = append(w.found, w.model.finding(part, kind, key, problem, hint))
}

// finding locates an error at a key of a table, else at its kind, else at the model's name.
func (m *Model) finding(part, kind, key, problem, hint string) table.Diagnostic {
	return m.origin.Find(table.Diagnostic{Subject: subject(m.Name), Part: part, Kind: kind, Problem: problem, Suggestion: hint}, key)
}

// InDataset locates a problem of the files of a model's data set at the table that names them.
func (m *Model) InDataset(problem string) table.Diagnostic {
	return m.finding("dataset", "", "", problem, "")
}

// sizeKey is the key of a layer's number of outputs, "" if it has none.
func sizeKey(s layers.Sized) string {
	if s == nil {
		return ""
	}
	return layers.SizeKey
}
