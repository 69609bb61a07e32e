package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/losses"
)

// The names of what a program can compute besides the model's values ("code", "output", a head).
const (
	// Loss is the objective with its terms, and its gradient with respect to every trainable parameter that it depends on.
	Loss = "loss"
	// InputGradient is the gradient, with respect to the images, of the weighted terms that compare the output with the
	// images. The program then has the input [Target].
	InputGradient = "gradient of input"
)

// The names of the image and label inputs.
const (
	Images = "input"  // the images that are encoded, (batch, shape)
	Target = "target" // the images to reconstruct, if the encoder gets distorted images
	Views  = "views"  // the first views of all images, then the second views, (2 batch, shape)
	Labels = "labels" // (batch, classes): one-hot, 0 for images without a label
)

// Request describes a program of a model. The program contains only what Want depends on, back to Given.
type Request struct {
	Batch int
	Want  []string // the outputs: values by name, [Loss], [InputGradient]; nil: all values, and with Training the loss

	// Given are values that the caller provides as inputs. With Loss the program contains only the terms of these values
	// and of parameters, and also computes the gradient with respect to these values.
	Given []string
	// Of is the number of images of the full batch if the program computes the contribution of a micro-batch, else 0. Terms
	// that read only the code enter through their upstream gradient. See portion.go.
	Of int

	Training bool         // layers run in training mode; always true with Loss
	Prepared bool         // the caller prepares the images for the first layer: see Input.Preparation
	Dtype    tensor.Dtype // the zero value means tensor.Float32
}

// check returns an error for a request that no program can satisfy.
func (r Request) check() error {
	switch {
	case r.Batch < 1:
		return fmt.Errorf("batch: got %d, want > 0", r.Batch)
	case r.Of != 0 && r.Of < r.Batch:
		return fmt.Errorf("of: got %d, want >= %d, the size of the batch", r.Of, r.Batch)
	case slices.Contains(r.Want, Loss) && slices.Contains(r.Want, InputGradient):
		return fmt.Errorf("want: got both %q and %q, which use different terms; build two programs", Loss, InputGradient)
	}
	return nil
}

// builder adds a model's expressions to one graph.
type builder struct {
	model   *Model
	request Request
	program *Program
	nodes   map[string]*gorgonia.Node // of parameters, by path
	streams map[string]*gorgonia.Node // inputs of images and labels, by name
	values  map[value]*gorgonia.Node  // computed so far
	weighs  *gorgonia.Node            // input of the decoder's layer that contains the atoms; nil without atoms
}

// value is one value of the model or of its teacher, for images or views.
type value struct {
	name string
	pass
}

// pass is one evaluation of the model.
type pass struct {
	stream  string // Images or Views
	teacher bool   // with the teacher's parameters, in inference mode
}

// building is held while a graph is built: Gorgonia's graphs share constants, such as 1, whose hashes it keeps without a lock.
var building sync.Mutex

// Program builds a program for one batch size. All programs of a model share its parameters.
func (m *Model) Program(r Request) (p *Program, err error) {
	if m == nil || m.Spec == nil || m.Layout == nil {
		return nil, errors.New("graph: the model is nil; make one with New")
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
	building.Lock()
	defer building.Unlock()
	// Gorgonia panics on some malformed expressions; a user-defined layer or loss must not crash the program.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("model %q: building the graph: %v", m.Spec.Name, r)
		}
	}()
	b := &builder{model: m, request: r, nodes: map[string]*gorgonia.Node{}, streams: map[string]*gorgonia.Node{}, values: map[value]*gorgonia.Node{},
		program: &Program{Graph: gorgonia.NewGraph(), Dtype: r.Dtype, Batch: r.Batch, layers: map[*gorgonia.Node]string{}}}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Spec.Name, err)
	}
	return b.program, nil
}

// build adds inputs, then values in the model's order, then the terms of the objective. The order is fixed: it determines
// the order of the program's inputs, and equal requests give equal programs.
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

// give adds the values that the caller provides. If the loss is differentiated with respect to them, they are parameters.
func (b *builder) give(terms []int) error {
	for _, name := range b.request.Given {
		size := b.model.Layout.Size(name)
		if size == 0 {
			return fmt.Errorf("given: the model has no value %q", name)
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

// needed lists the values to compute in the order code, output, heads: first for the images, then for the views, then for
// the teacher.
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
	unknown := slices.Collect(maps.Keys(wanted)) // names that the model does not have: computing the first returns the error
	slices.SortFunc(unknown, func(a, b value) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.stream, b.stream)) })
	return append(list, unknown...)
}

// passOf is the pass that computes the values of a term.
func passOf(r losses.Reads) pass {
	if r.Views {
		return pass{stream: Views}
	}
	return pass{stream: Images}
}

// open adds the image and label inputs that are read.
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

// reads reports whether a term of the request reads what f selects.
func (b *builder) reads(terms []int, sort func(losses.Reads) bool) bool {
	return slices.ContainsFunc(terms, func(i int) bool { return sort(b.model.Spec.Losses[i].Loss.Reads()) })
}

// deliver taps the outputs in this order: values, terms, loss, input gradient.
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

// target returns the target images, (batch, pixels).
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
