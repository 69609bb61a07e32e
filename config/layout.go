package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/part/table"
)

// Layout contains the layers of a model with their shapes, for one shape of the input.
type Layout struct {
	Input   []int
	Encoder []Placed
	Code    []int // the encoder's flattened output, the decoder's input
	Decoder []Placed
	Heads   []PlacedHead // each after what it reads

	Columns []data.Column // besides images and labels, as far as they are known

	index map[string]int // of each head in Heads
}

// PlacedHead is one head of a model.
type PlacedHead struct {
	Name, From string
	Layers     []Placed
}

// Values lists the values of the model: "code", "output" where it has a decoder, and its heads, each after the value that
// it reads.
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

// Stack returns the layers that compute a value other than the code, and the value that they read; ok is false if there is
// no such value.
func (l *Layout) Stack(name string) (from string, list []Placed, ok bool) {
	if name == losses.Output {
		return losses.Code, l.Decoder, len(l.Decoder) > 0
	}
	i, ok := l.index[name]
	if !ok {
		return "", nil, false
	}
	return l.Heads[i].From, l.Heads[i].Layers, true
}

// Size is the length of a value for one image, 0 if there is no such value or its length is unknown.
func (l *Layout) Size(name string) int {
	if name == losses.Code {
		return product(l.Code)
	}
	_, list, ok := l.Stack(name)
	if !ok || len(list) == 0 {
		return 0
	}
	return product(list[len(list)-1].Out)
}

// sizeOf is the length of a value or a column for one sample, 0 if it is unknown.
func (l *Layout) sizeOf(name string) int {
	if n := l.Size(name); n > 0 {
		return n
	}
	return l.columnSize(name)
}

// Stacked lists the layers of the encoder, the decoder and the heads.
func (l *Layout) Stacked() []Placed {
	all := slices.Concat(l.Encoder, l.Decoder)
	for _, h := range l.Heads {
		all = append(all, h.Layers...)
	}
	return all
}

// Placed is one layer of a model with its path and its shapes (without the batch).
type Placed struct {
	Path       string // "encoder.0"
	Kind       string
	Layer      layers.Layer
	In, Out    []int
	Parameters []layers.Parameter // their paths are Path + "." + Name

	origin *table.Origin // of the model
}

// ParameterPath names one parameter of a layout.
type ParameterPath struct {
	Path string // "encoder.0.weight"
	layers.Parameter
}

// Layout computes the shapes of an auto-encoder for images of shape input. Its layers are copies with default numbers of
// outputs: the size of the input for the last sized layer of the decoder, the number of classes for a head that is compared
// with labels. Layout does not change the declaration and is safe for concurrent use. The error is [*Diagnostics] if a
// layer does not accept its input or the decoder's output does not have the input's size.
func (m *Model) Layout(input []int) (*Layout, error) {
	w := m.walk(input)
	if len(w.found) > 0 {
		return nil, table.Report(w.found)
	}
	return w.layout, nil
}

// Parameters lists all parameters of the encoder, the decoder and the heads in the order of the layers, including
// transposes of other parameters.
func (l *Layout) Parameters() []ParameterPath {
	var all []ParameterPath
	for _, placed := range l.Stacked() {
		for _, p := range placed.Parameters {
			all = append(all, ParameterPath{Path: placed.Path + "." + p.Name, Parameter: p})
		}
	}
	return all
}

// Dictionary is the index in Decoder of the layer whose weight has the atoms as rows: the last layer with a weight, if its
// rows have the input's size; -1 without atoms.
func (l *Layout) Dictionary() int {
	p, i := l.LastWeight()
	if p.Name == "weight" && len(p.Shape) == 2 && p.Shape[1] == product(l.Input) {
		return i
	}
	return -1
}

// LastWeight is the weight of the decoder's last layer with weights, and the index in Decoder of that layer or of its
// block; -1 if there is none.
func (l *Layout) LastWeight() (p ParameterPath, layer int) {
	for i, placed := range slices.Backward(l.Decoder) {
		for _, p := range slices.Backward(placed.Parameters) {
			if p.Name == "weight" || strings.HasSuffix(p.Name, ".weight") { // the latter in an inner layer
				return ParameterPath{Path: placed.Path + "." + p.Name, Parameter: p}, i
			}
		}
	}
	return ParameterPath{}, -1
}

// Layers lists every layer, encoder first. A block is followed by its inner layers, which then have its parameters.
func (l *Layout) Layers() []Placed {
	var all []Placed
	for _, placed := range l.Stacked() {
		all = append(all, placed.opened()...)
	}
	return all
}

// Largest is the number of values of the largest tensor of any layer for one image.
func (l *Layout) Largest() int {
	n := product(l.Input)
	for _, placed := range l.Layers() {
		n = max(n, product(placed.Out))
		if e, ok := placed.Layer.(layers.Expanding); ok {
			n = max(n, e.Largest(placed.In))
		}
	}
	return n
}

// opened returns a layer and, if it is a block, its inner layers.
func (p Placed) opened() []Placed {
	b, ok := p.Layer.(layers.Block)
	if !ok {
		return []Placed{p}
	}
	p.Parameters = nil
	list := []Placed{p}
	in := p.In
	for i, l := range b.Inner() {
		inner := Placed{Path: fmt.Sprintf("%s.%d", p.Path, i), Layer: l, In: in, origin: p.origin}
		inner.Kind = language.NameOf(p.origin, placeOf(inner.Path), l)
		if l == nil {
			return list
		}
		if in != nil { // otherwise shapes and parameters are unknown
			var err error
			if inner.Out, inner.Parameters, err = shaped(l, in); err != nil {
				return list // the walk has reported the error
			}
		}
		list = append(list, inner.opened()...)
		in = inner.Out
	}
	return list
}

// MatchParameters lists the paths of the parameters that match a glob, in order; see [MatchPath]. If several names of the
// same parameter match, only the first is listed.
func (l *Layout) MatchParameters(glob string) []string {
	var paths []string
	taken := map[string]bool{}
	for _, own := range []bool{true, false} {
		for _, p := range l.Parameters() {
			of := cmp.Or(p.TransposeOf, p.Path)
			if own == (p.TransposeOf == "") && !taken[of] && MatchPath(glob, p.Path) {
				paths, taken[of] = append(paths, p.Path), true
			}
		}
	}
	return paths
}

// MatchPath reports whether a glob matches a parameter path: * matches any number of characters, dots included, ? matches
// one, [abc] one of these; a backslash escapes the next character. A malformed glob matches nothing.
func MatchPath(glob, parameter string) bool {
	ok, err := path.Match(glob, parameter)
	return err == nil && ok
}
