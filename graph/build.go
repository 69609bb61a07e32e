package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/losses"
)

// Part is what of a model a program runs.
type Part int

const (
	Autoencoder Part = iota // images to codes and outputs
	Encoder                 // images to codes
	Decoder                 // codes to outputs
	Portion                 // what a few of all images add to the objective over all
	Penalties               // what does not see images adds to it
	Adversary               // images, and those that should be given back for them, to the gradient with respect to the former
)

// Options say which program of a model is wanted.
type Options struct {
	Batch    int          // images; of Penalties all
	Of       int          // of a Portion: all images
	Part     Part         // training programs are of the whole auto-encoder, of a Portion or of Penalties
	Training bool         // noise active, losses and gradients built; a Portion and Penalties always have them
	Prepared bool         // images are decomposed by the caller: see Input.Decomposition
	Output   bool         // tap "output" in training too, which costs a pass over memory; inference always does
	Dtype    tensor.Dtype // the zero value means tensor.Float32
}

// builder adds a model's expressions to one graph.
type builder struct {
	model   *Model
	options Options
	program *Program
	nodes   map[string]*gorgonia.Node // of parameters, by path
	weighs  *gorgonia.Node            // what enters the decoder's layer that holds the atoms; nil where there is none
}

// Program builds the model's graph for one batch size. All programs of a model share its parameters.
func (m *Model) Program(o Options) (p *Program, err error) {
	if m == nil || m.Spec == nil || m.Layout == nil {
		return nil, errors.New("graph: no model to make a program of: take one that New returned")
	}
	if o.Batch < 1 {
		return nil, fmt.Errorf("model %q: batch: got %d, want > 0", m.Spec.Name, o.Batch)
	}
	if o.Dtype == (tensor.Dtype{}) {
		o.Dtype = tensor.Float32
	}
	o.Training = o.Training || o.Part == Portion
	// Gorgonia panics on some malformed expressions; a layer or loss of the user's own must not take the program down.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("model %q: building the graph: %v", m.Spec.Name, r)
		}
	}()
	b := &builder{model: m, options: o, nodes: map[string]*gorgonia.Node{},
		program: &Program{Graph: gorgonia.NewGraph(), Dtype: o.Dtype, Batch: o.Batch}}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Spec.Name, err)
	}
	return b.program, nil
}

func (b *builder) build() error {
	switch b.options.Part {
	case Penalties:
		return b.penalties()
	case Decoder:
		code := b.input("code", nil, b.options.Batch, b.model.Units())
		output, err := b.stack(b.model.Layout.Decoder, code)
		if err != nil {
			return err
		}
		return b.tap("output", output)
	}
	shape := append([]int{b.options.Batch}, b.model.Shape...)
	x := b.input("input", nil, shape...)
	clean := x
	if b.options.Part == Adversary || b.options.Training && b.model.Spec.Distorted() {
		clean = b.input(Target, nil, shape...)
	}
	code, err := b.encode(x)
	if err != nil {
		return err
	}
	if b.options.Part != Adversary {
		if err := b.tap("code", code); err != nil || b.options.Part == Encoder {
			return err
		}
	}
	output, err := b.decode(code)
	if err != nil {
		return err
	}
	target, err := flat(clean)
	if err != nil {
		return err
	}
	if b.options.Part == Adversary {
		return b.adversary(x, output, target)
	}
	if b.options.Output || !b.options.Training {
		if err := b.tap("output", output); err != nil || !b.options.Training {
			return err
		}
	}
	if b.options.Part == Portion {
		return b.portion(x, code, output, target)
	}
	loss, err := b.sum(func(config.Loss) bool { return true }, 1, x, code, output, target)
	if err != nil {
		return err
	}
	return b.differentiate(loss)
}

// encode applies the encoder. The caller may have decomposed the images for its first layer.
func (b *builder) encode(x *gorgonia.Node) (*gorgonia.Node, error) {
	list := b.model.Layout.Encoder
	first, ok := b.model.Decomposing()
	if !ok || !b.options.Prepared || b.needsImages() {
		return b.stack(list, x)
	}
	of := first.Decompose()
	name := list[0].Path + ".channels"
	channels := b.input(name, nil, append([]int{b.options.Batch}, list[0].Out...)...)
	b.program.Inputs[len(b.program.Inputs)-1].Decomposition = &of
	y, err := first.Rescale(&scope{builder: b, placed: list[0]}, channels)
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %w", list[0].Path, list[0].Kind, err)
	}
	return b.stack(list[1:], y)
}

// needsImages reports whether the images are distorted, or something is differentiated with respect to them: they are then decomposed
// in the graph, at every step.
func (b *builder) needsImages() bool {
	return b.options.Part == Adversary || b.options.Training && (b.model.Spec.Distorted() ||
		slices.ContainsFunc(b.model.Spec.Losses, func(l config.Loss) bool { _, ok := l.Loss.(losses.JacobianPenalty); return ok }))
}

// decode applies the decoder, and keeps what enters its layer that holds the atoms.
func (b *builder) decode(code *gorgonia.Node) (*gorgonia.Node, error) {
	list, i := b.model.Layout.Decoder, b.model.Layout.Dictionary()
	if i < 0 {
		return b.stack(list, code)
	}
	weighs, err := b.stack(list[:i], code)
	if err != nil {
		return nil, err
	}
	b.weighs = weighs
	return b.stack(list[i:], weighs)
}

// stack applies the layers to x in order and returns the result as (batch, values).
func (b *builder) stack(list []config.Placed, x *gorgonia.Node) (*gorgonia.Node, error) {
	for _, placed := range list {
		y, err := b.layer(placed, x)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, err)
		}
		x = y
	}
	return flat(x)
}

// layer applies one layer, and reports one that does not do what it declares before the next one fails for it.
func (b *builder) layer(placed config.Placed, x *gorgonia.Node) (*gorgonia.Node, error) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%s (%s): %v", placed.Path, placed.Kind, r))
		}
	}()
	y, err := placed.Layer.Apply(&scope{builder: b, placed: placed}, x)
	if err != nil {
		return nil, err
	}
	if y == nil {
		return nil, errors.New("its Apply gives no node")
	}
	if want := append([]int{x.Shape()[0]}, placed.Out...); !slices.Equal(want, []int(y.Shape())) {
		return nil, fmt.Errorf("its Apply gives %v, but its OutputShape says %v", []int(y.Shape()), want)
	}
	return y, nil
}
