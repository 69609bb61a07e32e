package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/losses"
)

// What a program can be asked for beside values of the model, which are asked for by name ("code", "output", a head).
const (
	// Loss is the objective with its terms, and its gradient with respect to every trainable parameter that it reaches.
	Loss = "loss"
	// InputGradient is the gradient, with respect to the images, of the terms that compare the output with the images,
	// each times its weight. The program then has the input [Target].
	InputGradient = "gradient of input"
)

// The names of the inputs that hold streams.
const (
	Images = "input"  // the images that are encoded, (batch, shape)
	Target = "target" // the images to reconstruct, where those that are encoded are distorted
	Views  = "views"  // the first views of all images, then the second ones, (2 batch, shape)
	Labels = "labels" // (batch, classes): 1 at the class of an image, 0 elsewhere, and all 0 where it is unknown
)

// Request says which program of a model is wanted. A program is built from what is wanted backwards to what is given.
type Request struct {
	Batch int
	Want  []string // values by name, [Loss], [InputGradient]: what can be read after a run; nil: all values, and with Training the loss

	// Given are values that the caller gives, so that nothing before them is computed. With Loss the terms are those that
	// read nothing but these values and parameters, and the gradient with respect to the values is computed too.
	Given []string
	// Of, where it is not 0, is the number of images of the objective, of which these are some: the loss is what they add to
	// it, less the terms that read the code alone, of which they add the derivative. See portion.go.
	Of int

	Training bool         // layers work as in training; Loss always does
	Prepared bool         // images are prepared for the first layer by the caller: see Input.Preparation
	Dtype    tensor.Dtype // the zero value means tensor.Float32
}

// check refuses a request that no program can meet.
func (r Request) check() error {
	switch {
	case r.Batch < 1:
		return fmt.Errorf("batch: got %d, want > 0", r.Batch)
	case r.Of != 0 && r.Of < r.Batch:
		return fmt.Errorf("of: got %d images, want at least those of the batch, %d", r.Of, r.Batch)
	case slices.Contains(r.Want, Loss) && slices.Contains(r.Want, InputGradient):
		return fmt.Errorf("want: got both %q and %q, which are taken of different terms; ask for two programs", Loss, InputGradient)
	}
	return nil
}

// builder adds a model's expressions to one graph.
type builder struct {
	model   *Model
	request Request
	program *Program
	nodes   map[string]*gorgonia.Node // of parameters, by path
	streams map[string]*gorgonia.Node // inputs that hold streams, by name
	values  map[value]*gorgonia.Node  // what has been computed
	weighs  *gorgonia.Node            // what enters the decoder's layer that holds the atoms; nil where there is none
}

// value is one value of the model for one stream of images, or of its teacher.
type value struct {
	name string
	pass
}

// pass is one way through the model.
type pass struct {
	stream  string // Images or Views
	teacher bool   // with the parameters of the teacher, as at inference
}

// Program builds a program of the model for one batch size. All programs of a model share its parameters.
func (m *Model) Program(r Request) (p *Program, err error) {
	if m == nil || m.Spec == nil || m.Layout == nil {
		return nil, errors.New("graph: no model to make a program of: take one that New returned")
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Spec.Name, err)
	}
	if r.Dtype == (tensor.Dtype{}) {
		r.Dtype = tensor.Float32
	}
	if r.Want == nil {
		if r.Want = m.Layout.Values(); r.Training {
			r.Want = append(r.Want, Loss)
		}
	}
	r.Training = r.Training || slices.Contains(r.Want, Loss)
	// Gorgonia panics on some malformed expressions; a layer or loss of the user's own must not take the program down.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("model %q: building the graph: %v", m.Spec.Name, r)
		}
	}()
	b := &builder{model: m, request: r, nodes: map[string]*gorgonia.Node{}, streams: map[string]*gorgonia.Node{}, values: map[value]*gorgonia.Node{},
		program: &Program{Graph: gorgonia.NewGraph(), Dtype: r.Dtype, Batch: r.Batch}}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Spec.Name, err)
	}
	return b.program, nil
}

// build adds inputs first, then the values in the order in which a model computes them, then the terms of the objective.
// This order is that of the program's inputs, and part of what makes equal programs equal.
func (b *builder) build() error {
	terms := b.terms()
	if err := b.give(terms); err != nil {
		return err
	}
	needed := b.needed(terms)
	b.open(terms, needed)
	for _, v := range needed {
		if _, err := b.value(v); err != nil {
			return err
		}
	}
	if b.reads(terms, func(r losses.Reads) bool { return r.Images || r.Atoms }) {
		if _, err := b.target(); err != nil {
			return err
		}
	}
	return b.deliver(terms)
}

// give adds the values that the caller gives: parameters, where the loss is differentiated with respect to them.
func (b *builder) give(terms []int) error {
	for _, name := range b.request.Given {
		size := b.model.Layout.Size(name)
		if size == 0 {
			return fmt.Errorf("there is no value %q to be given", name)
		}
		v := value{name, pass{stream: Images}}
		switch {
		case !slices.Contains(b.request.Want, Loss):
			b.values[v] = b.input(name, nil, b.request.Batch, size)
		case b.reads(terms, func(r losses.Reads) bool { return r.On }):
			b.values[v] = b.given(name, []int{b.request.Batch, size})
		}
	}
	return nil
}

// needed lists the values that are to be computed, in the order of the model: code, output, heads; of the images first, then
// of the views, then of the teacher.
func (b *builder) needed(terms []int) (list []value) {
	wanted := map[value]bool{}
	for _, name := range b.request.Want {
		if name != Loss && name != InputGradient {
			wanted[value{name, pass{stream: Images}}] = true
		}
	}
	for _, i := range terms {
		declared := b.model.Spec.Losses[i]
		r := declared.Loss.Reads()
		p := passOf(r)
		if r.On {
			wanted[value{declared.On, p}] = true
		}
		if r.Atoms {
			wanted[value{losses.Output, p}] = true
		}
		for _, name := range r.Values {
			wanted[value{name, p}] = true
		}
	}
	for _, p := range []pass{{stream: Images}, {stream: Views}} {
		for _, name := range b.model.Layout.Values() {
			if v := (value{name, p}); wanted[v] && b.values[v] == nil {
				list = append(list, v)
			}
			delete(wanted, value{name, p})
		}
	}
	unknown := slices.Collect(maps.Keys(wanted)) // of names that the model does not have: computing the first says so
	slices.SortFunc(unknown, func(a, b value) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.stream, b.stream)) })
	return append(list, unknown...)
}

// passOf is the way through the model of the values that a term reads.
func passOf(r losses.Reads) pass {
	if r.Views {
		return pass{stream: Views}
	}
	return pass{stream: Images}
}

// open adds the inputs of the streams that are read.
func (b *builder) open(terms []int, needed []value) {
	shape := append([]int{b.request.Batch}, b.model.Shape...)
	from := func(stream string) bool {
		return slices.ContainsFunc(needed, func(v value) bool { return v.stream == stream && b.encodes(v) })
	}
	attacked := slices.Contains(b.request.Want, InputGradient)
	encoded := attacked || from(Images)
	if encoded || b.reads(terms, func(r losses.Reads) bool { return r.Images || r.Teacher && !r.Views }) {
		b.streams[Images] = b.input(Images, nil, shape...)
	}
	if attacked || encoded && b.request.Training && b.model.Spec.Distorted() {
		b.streams[Target] = b.input(Target, nil, shape...)
	}
	if b.reads(terms, func(r losses.Reads) bool { return r.Views }) {
		shape[0] *= 2
		b.streams[Views] = b.input(Views, nil, shape...)
	}
	if b.reads(terms, func(r losses.Reads) bool { return r.Labels }) {
		b.streams[Labels] = b.input(Labels, nil, b.request.Batch, b.model.Classes())
	}
}

// reads reports whether one of the terms reads something of a sort.
func (b *builder) reads(terms []int, sort func(losses.Reads) bool) bool {
	return slices.ContainsFunc(terms, func(i int) bool { return sort(b.model.Spec.Losses[i].Loss.Reads()) })
}

// deliver taps what is wanted, in this order: values, the terms, the loss, the gradient of the images.
func (b *builder) deliver(terms []int) error {
	for _, name := range b.model.Layout.Values() {
		if !slices.Contains(b.request.Want, name) {
			continue
		}
		n, err := b.value(value{name, pass{stream: Images}})
		if err != nil {
			return err
		}
		if err := b.tap(name, n); err != nil {
			return err
		}
	}
	switch {
	case slices.Contains(b.request.Want, InputGradient):
		return b.inputGradient(terms)
	case slices.Contains(b.request.Want, Loss):
		return b.objective(terms)
	}
	return nil
}

// target returns the images to compare with, (batch, pixels).
func (b *builder) target() (*gorgonia.Node, error) {
	clean := b.streams[Target]
	if clean == nil {
		clean = b.streams[Images]
	}
	if clean == nil {
		return nil, errors.New("the images are not read")
	}
	v := value{name: Target}
	if b.values[v] == nil {
		n, err := flat(clean)
		if err != nil {
			return nil, err
		}
		b.values[v] = n
	}
	return b.values[v], nil
}
