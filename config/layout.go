package config

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
)

// Layout contains the layers of a model with their shapes, for one shape of the input.
type Layout struct {
	Input   []int
	Encoder []Placed
	Code    []int // shape of the encoder's flattened output, which the decoder reads
	Decoder []Placed
	Heads   []PlacedHead // in an order in which each head follows the values that it reads

	Columns []data.Column // columns other than images and labels, including drawn ones, if known
	Holed   bool          // images may have missing or hidden entries; see [Model.Holed]

	learned []ParameterPath // of the terms

	sound bool               // the layers accept their inputs, whose shapes are known
	index map[string]int     // maps the name of a head to its index in Heads
	at    map[string]*Placed // maps a path to its layer
}

// isSound reports whether the layers are placed: the shape of the input is known, and all of them accept their inputs.
func (l *Layout) isSound() bool { return l != nil && l.sound }

// PlacedHead is one head of a model.
type PlacedHead struct {
	Name   string
	From   []string // values that the first layer reads
	Layers []Placed
}

// Values returns the names of the values of the model: "code", "output" if there is a decoder, and the heads, each
// after the values that it reads.
func (l *Layout) Values() []string {
	names := []string{losses.Code}
	if len(l.Decoder) > 0 {
		names = append(names, losses.Output)
	}
	for _, h := range l.Heads {
		names = append(names, h.Name)
	}
	return names
}

// Named returns the names of the values that [Layout.Values] omits: the output of every layer by its path, such as
// encoder.1, each followed by the values that the layer publishes, such as encoder.1.mean, and all of them again by the name of a
// layer that has one.
func (l *Layout) Named() (names []string) {
	for p := range l.Stacked() {
		names = append(names, p.Path)
		for _, v := range p.Published {
			names = append(names, p.Path+"."+v.Name)
		}
		if p.Name == "" {
			continue
		}
		names = append(names, p.Name)
		for _, v := range p.Published {
			names = append(names, p.Name+"."+v.Name)
		}
	}
	return names
}

// Stack returns the layers of the encoder (for "code"), of the decoder (for "output") or of a head. ok is false for
// other names.
func (l *Layout) Stack(name string) (list []Placed, ok bool) {
	switch name {
	case losses.Code:
		return l.Encoder, true
	case losses.Output:
		return l.Decoder, len(l.Decoder) > 0
	}
	i, ok := l.index[name]
	if !ok {
		return nil, false
	}
	return l.Heads[i].Layers, true
}

// Of returns the layer that computes a value. If the layer publishes the value, published is the value's name in the
// layer. p is nil if there is no such value.
func (l *Layout) Of(name string) (p *Placed, published string) {
	if list, ok := l.Stack(name); ok {
		if len(list) == 0 {
			return nil, ""
		}
		return &list[len(list)-1], ""
	}
	for path := name; path != ""; {
		if p := l.at[path]; p != nil {
			published = strings.TrimPrefix(name[len(path):], ".")
			if published != "" && p.shapeOf(published) == nil {
				return nil, ""
			}
			return p, published
		}
		path = path[:max(0, strings.LastIndex(path, "."))]
	}
	return nil, ""
}

// Shape returns the shape of a value for one image. Code, output and heads have one axis. It returns nil if there is no
// such value or its shape is unknown.
func (l *Layout) Shape(name string) []int {
	if c, ok := l.Column(name); ok {
		return shapeOfColumn(c)
	}
	p, published := l.Of(name)
	if p == nil {
		return nil
	}
	shape := p.shapeOf(published)
	if _, whole := l.Stack(name); whole && shape != nil {
		return []int{product(shape)}
	}
	return shape
}

// Size returns the number of elements of a value for one image, 0 if there is no such value or its size is unknown.
func (l *Layout) Size(name string) int { return product(l.Shape(name)) }

// Sources returns the columns, images included, from which a value is computed. Values in given count as inputs: the
// columns from which they are computed are not included.
func (l *Layout) Sources(name string, given ...string) (sources []string) {
	for _, v := range l.closure([]string{name}, given) {
		if _, ok := l.Column(v); ok {
			sources = append(sources, v)
		}
	}
	return sources
}

// DependsOn reports whether a value is computed from another value, or is the same value.
func (l *Layout) DependsOn(name, other string) bool {
	return slices.Contains(l.closure([]string{name}, nil), other)
}

// Undecodable says why the output of a model cannot be computed from its code alone.
type Undecodable string

// Error implements error.
func (e Undecodable) Error() string { return string(e) }

// noDecoder is the reason of a model without a decoder.
const noDecoder Undecodable = "the model has no decoder: there is no output"

// Decodes returns an error, [Undecodable], if the output cannot be computed from the code alone. This is so if there is no decoder, or
// if one of its layers reads a column or a value of the encoder.
func (l *Layout) Decodes() error {
	if len(l.Decoder) == 0 {
		return noDecoder
	}
	all := l.closure([]string{losses.Output}, []string{losses.Code})
	for _, name := range all {
		p, _ := l.Of(name)
		if p == nil || p.Path != name || strings.HasPrefix(name, "encoder.") {
			continue
		}
		for _, from := range p.Inputs() {
			if _, column := l.Column(from); column || strings.HasPrefix(from, "encoder.") {
				return Undecodable(fmt.Sprintf("the output cannot be computed from the code alone: %s (%s) reads %s", p.Path, p.Kind, from))
			}
		}
	}
	return nil
}

// closure returns the named values and all values from which they are computed. It does not follow the inputs of the
// values in given.
func (l *Layout) closure(names, given []string) (all []string) {
	seen := map[string]bool{}
	for _, name := range given {
		seen[name] = true
	}
	for open := slices.Clone(names); len(open) > 0; {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		all = append(all, name)
		if p, _ := l.Of(name); p != nil {
			if p.Path != name {
				open = append(open, p.Path)
			} else {
				open = append(open, p.Inputs()...)
			}
		}
	}
	return all
}

// ValuesOf returns the names of the columns and values that a term reads.
func (l *Layout) ValuesOf(t Loss) (names []string) {
	r := t.Reads()
	if names = t.Names(); r.Atoms {
		names = append(names, losses.Output)
	}
	for _, name := range r.Published {
		names = append(names, l.PublishedBy(t.On, name))
	}
	return names
}

// PublishedBy returns the full name of a value that a layer publishes. on is the name of the layer's output:
// "encoder.2" gives "encoder.2.mean". If this layer is the last one of the encoder, "code" gives the same name. A layer
// that passes its input on is passed over.
func (l *Layout) PublishedBy(on, name string) string {
	if p := l.publisher(on, name); p != nil {
		return p.Path + "." + name
	}
	return on + "." + name
}

// publisher returns the layer that computes the value on, or the layer before those that pass their input on.
func (l *Layout) publisher(on, name string) *Placed {
	p, _ := l.Of(on)
	for p != nil && p.shapeOf(name) == nil {
		if _, passes := p.Layer.(layers.Passing); !passes || len(p.From) != 1 || l.at[p.From[0]] == nil {
			break
		}
		p = l.at[p.From[0]]
	}
	return p
}

// readBy returns the set of values that the terms read, together with the direct and indirect inputs of these values
// and of the heads.
func (l *Layout) readBy(terms []Loss) map[string]bool {
	read := map[string]bool{}
	var names []string
	for _, t := range terms {
		names = append(names, append(l.ValuesOf(t), t.On)...)
	}
	for _, h := range l.Heads {
		names = append(names, h.From...)
	}
	for _, name := range l.closure(names, nil) {
		read[name] = true
	}
	return read
}

// Stacked iterates over the layers of the encoder, the decoder and the heads.
func (l *Layout) Stacked() iter.Seq[*Placed] {
	return func(yield func(*Placed) bool) {
		stacks := [][]Placed{l.Encoder, l.Decoder}
		for _, h := range l.Heads {
			stacks = append(stacks, h.Layers)
		}
		for _, list := range stacks {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Placed is one layer of a model with its path and its shapes, which exclude the batch axis.
type Placed struct {
	Path       string // "encoder.0"
	Name       string // declared name, by which the layer's values can be named, too; "" for none
	Kind       string
	Layer      layers.Layer
	From       []string // values that the layer reads as its input, concatenated along the last axis
	Reads      []string // further values that the layer reads by name
	In, Out    []int
	Parameters []layers.Parameter // parameters; the path of each is Path + "." + Name
	Published  []layers.Value     // published values; the path of each is Path + "." + Name

	assumed bool          // the parameters and published values are unknown, because the shape of an input is
	origin  *table.Origin // origin of the model's table
}

// Inputs lists all values that the layer reads.
func (p *Placed) Inputs() []string { return slices.Concat(p.From, p.Reads) }

// shapeOf returns the shape of the output, or of a value that the layer publishes. It returns nil if the shape is
// unknown.
func (p *Placed) shapeOf(published string) []int {
	if published == "" {
		return p.Out
	}
	for _, v := range p.Published {
		if v.Name == published {
			return v.Shape
		}
	}
	return nil
}

// joinedShape returns the shape of several values, concatenated along their last axis. It returns nil if one shape is
// unknown. If one value is a vector, all values are flattened. A value with one axis less than the others, such as an
// image without channels, gets a last axis of length 1.
func joinedShape(names []string, shape func(name string) []int) (joined []int, err error) {
	axes, vector := 0, false
	for _, name := range names {
		s := shape(name)
		if s == nil {
			return nil, nil
		}
		axes, vector = max(axes, len(s)), vector || len(s) == 1
	}
	if len(names) == 1 {
		return shape(names[0]), nil
	}
	for i, name := range names {
		s := slices.Clone(shape(name))
		if vector {
			s, axes = []int{product(s)}, 1
		} else if len(s) == axes-1 {
			s = append(s, 1)
		}
		last := axes - 1
		switch {
		case i == 0:
			joined = s
		case len(s) != axes || len(joined) != axes || !slices.Equal(s[:last], joined[:last]):
			return nil, fmt.Errorf("%s has shape %s, but %s has %s: want the same but for the last axis", name, shapeText(shape(name)), names[0], shapeText(shape(names[0])))
		default:
			joined[last] += s[last]
		}
	}
	return joined, nil
}

// ParameterPath is one parameter of a layout with its path.
type ParameterPath struct {
	Path string // "encoder.0.weight"
	layers.Parameter
}

// Layout computes the shapes of an auto-encoder for images of the shape input. The layers of the layout are copies with
// default numbers of outputs: the size of the input for the last sized layer of the decoder, the number of classes for
// a head that is compared with labels. Layout does not change the declaration and is safe for concurrent use. It
// returns an error, [*table.Diagnostics], if a layer does not accept its input or the size of the decoder's output
// differs from that of the input. The layers of a checked model are placed already, if the shape was known or [Model.Resolved] got it.
func (m *Model) Layout(input []int) (*Layout, error) {
	if m.layout.isSound() && slices.Equal(input, m.layout.Input) {
		return m.layout, nil
	}
	w := m.walk(input)
	if len(w.found) > 0 {
		return nil, table.Report(w.found)
	}
	return w.layout, nil
}

// Parameters lists all parameters of the encoder, the decoder and the heads in the order of the layers, including
// transposes of other parameters, and then those of the terms.
func (l *Layout) Parameters() []ParameterPath {
	n := len(l.learned)
	for placed := range l.Stacked() {
		n += len(placed.Parameters)
	}
	all := make([]ParameterPath, 0, n)
	for placed := range l.Stacked() {
		for _, p := range placed.Parameters {
			all = append(all, ParameterPath{Path: placed.Path + "." + p.Name, Parameter: p})
		}
	}
	return append(all, l.learned...)
}

// LearnedPath returns the path of a parameter of a term.
func LearnedPath(term, name string) string { return "loss." + term + "." + name }

// Dictionary returns the index in Decoder of the layer whose weight has the atoms as rows. It is the last layer with a
// weight, if the rows have the size of the input. It returns -1 if the model has no atoms.
func (l *Layout) Dictionary() int {
	p, i := l.LastWeight()
	if p.Name == "weight" && len(p.Shape) == 2 && p.Shape[1] == product(l.Input) {
		return i
	}
	return -1
}

// DenseDecoder returns the dense layer of the decoder at path, such as decoder.0, or nil if there is none.
func (l *Layout) DenseDecoder(path string) *Placed {
	for i, placed := range l.Decoder {
		if _, dense := placed.Layer.(*layers.Dense); dense && placed.Path == path {
			return &l.Decoder[i]
		}
	}
	return nil
}

// LastWeight returns the weight of the last layer of the decoder with a weight, and the index in Decoder of this layer
// or of the block that contains it. The index is -1 if there is none.
func (l *Layout) LastWeight() (p ParameterPath, layer int) {
	for i, placed := range slices.Backward(l.Decoder) {
		for _, p := range slices.Backward(placed.Parameters) {
			if p.Name == "weight" || strings.HasSuffix(p.Name, ".weight") { // the second condition finds weights of inner layers
				return ParameterPath{Path: placed.Path + "." + p.Name, Parameter: p}, i
			}
		}
	}
	return ParameterPath{}, -1
}

// Layers iterates over every layer, those of the encoder first. Each block is followed by its inner layers, to which the
// parameters then belong.
func (l *Layout) Layers() iter.Seq[*Placed] {
	return func(yield func(*Placed) bool) {
		for p := range l.Stacked() {
			if !p.visit(yield) {
				return
			}
		}
	}
}

// Largest returns the number of elements, for one image, of the largest tensor of any layer.
func (l *Layout) Largest() int {
	n := product(l.Input)
	for placed := range l.Layers() {
		n = max(n, product(placed.Out))
		if e, ok := placed.Layer.(layers.Expanding); ok {
			n = max(n, e.Largest(placed.In))
		}
	}
	return n
}

// opened iterates over a layer and, if it is a block, its inner layers.
func (p *Placed) opened(yield func(*Placed) bool) { p.visit(yield) }

// visit is opened with a result: false if yield has returned false. Each inner layer reads the one before it, and the first one
// reads what the block reads.
func (p *Placed) visit(yield func(*Placed) bool) bool {
	b, ok := p.Layer.(layers.Block)
	if !ok {
		return yield(p)
	}
	block := *p
	block.Parameters = nil
	if !yield(&block) {
		return false
	}
	in, from := p.In, p.From
	if _, scales := p.Layer.(*layers.Relative); scales { // what its first layer reads has no name
		from = nil
	}
	for i, l := range b.Inner() {
		inner := &Placed{Path: fmt.Sprintf("%s.%d", p.Path, i), Layer: l, From: from, In: in, origin: p.origin}
		inner.Kind = language.NameOf(p.origin, placeOf(inner.Path), l)
		if l == nil {
			return true
		}
		if in != nil { // without an input, shapes and parameters are unknown
			var err error
			if inner.Out, inner.Parameters, err = shaped(l, in); err != nil {
				return true // the walk over the layers has reported the error
			}
		}
		if !inner.visit(yield) {
			return false
		}
		in, from = inner.Out, []string{inner.Path}
	}
	return true
}

// MatchParameters returns the paths of the parameters that match a glob, in order; see [MatchPath]. If a parameter has
// several names that match, it returns only the first.
func (l *Layout) MatchParameters(glob string) []string {
	var paths []string
	taken := map[string]bool{}
	for _, own := range []bool{true, false} {
		for _, p := range l.Parameters() {
			of := cmp.Or(p.Of, p.Path)
			if own == (p.Of == "") && !taken[of] && MatchPath(glob, p.Path) {
				paths, taken[of] = append(paths, p.Path), true
			}
		}
	}
	return paths
}

// MatchPath reports whether a glob matches a parameter path: * matches any number of characters, including dots, ?
// matches one character, [abc] matches a, b or c, and a backslash escapes the next character. A malformed glob matches
// nothing.
func MatchPath(glob, parameter string) bool {
	ok, err := path.Match(glob, parameter)
	return err == nil && ok
}
