package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/graph/ops"
	"tessera/internal/volume"
	"tessera/layers"
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
	if b.options.Part == Adversary || b.options.Training && b.model.Spec.Adversarial != nil {
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

// needsImages reports whether images are attacked, or something is differentiated with respect to them: they are then decomposed
// in the graph, at every step.
func (b *builder) needsImages() bool {
	return b.options.Part == Adversary || b.options.Training && (b.model.Spec.Adversarial != nil ||
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

// dictionary returns the decoder from its atoms on.
func (b *builder) dictionary(images *gorgonia.Node) (*losses.Dictionary, error) {
	if b.weighs == nil {
		return nil, errors.New("the decoder's last layer with weights gives no whole images: there are no atoms")
	}
	rest := b.model.Layout.Decoder[b.model.Layout.Dictionary():]
	path := rest[0].Path + ".weight"
	atoms, err := b.parameter(path)
	if err != nil {
		return nil, err
	}
	return &losses.Dictionary{Images: images, Shape: slices.Clone(b.model.Shape), Code: b.weighs, Atoms: atoms,
		Decode: func(other *gorgonia.Node) (*gorgonia.Node, error) {
			b.nodes[path] = other
			defer func() { b.nodes[path] = atoms }()
			return b.stack(rest, b.weighs)
		},
	}, nil
}

// stack applies the layers to x in order and returns the result as (batch, values).
func (b *builder) stack(list []config.Placed, x *gorgonia.Node) (*gorgonia.Node, error) {
	for _, placed := range list {
		y, err := placed.Layer.Apply(&scope{builder: b, placed: placed}, x)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, err)
		}
		x = y
	}
	return flat(x)
}

// flat returns x as (batch, values).
func flat(x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) == 2 {
		return x, nil
	}
	return ops.Reshape(x, shape[0], volume.Of(shape[1:]))
}

// input adds a leaf that the caller fills.
func (b *builder) input(name string, s layers.Sampler, shape ...int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Inputs = append(b.program.Inputs, Input{Name: name, Node: n, Shape: slices.Clone(shape), Sampler: s})
	return n
}

func (b *builder) leaf(name string, shape []int) *gorgonia.Node {
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.program.Graph, b.options.Dtype, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.program.Graph, b.options.Dtype, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// tap makes a node readable after a run.
func (b *builder) tap(name string, n *gorgonia.Node) error {
	if n == nil {
		return fmt.Errorf("%s: the expression is empty", name)
	}
	b.program.Taps = append(b.program.Taps, Tap{Name: name, Node: n, Shape: slices.Clone(n.Shape())})
	return nil
}

// parameter returns the node of a parameter, adding it at its first use.
func (b *builder) parameter(path string) (*gorgonia.Node, error) {
	if n, ok := b.nodes[path]; ok {
		return n, nil
	}
	p, err := b.model.Parameter(path)
	if err != nil {
		if of := b.model.transposeOf(path); of != "" {
			return b.transposed(path, of)
		}
		return nil, err
	}
	n := b.leaf(path, p.Shape)
	b.nodes[path] = n
	b.program.Parameters = append(b.program.Parameters, Binding{Parameter: p, Node: n})
	return n, nil
}

// transposed returns the node of a parameter that is the transpose of another.
func (b *builder) transposed(path, of string) (*gorgonia.Node, error) {
	w, err := b.parameter(of)
	if err != nil {
		return nil, err
	}
	n, err := ops.Transpose(w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b.nodes[path] = n
	return n, nil
}

// sum adds the loss terms of a sort, each times its weight and a factor, and returns their sum; nil where there are none.
func (b *builder) sum(sort func(config.Loss) bool, factor float64, x, code, output, target *gorgonia.Node) (loss *gorgonia.Node, err error) {
	for i, declared := range b.model.Spec.Losses {
		if !sort(declared) {
			continue
		}
		term, err := b.term(i, factor, x, code, output, target)
		if err != nil {
			return nil, fmt.Errorf("loss[%d] (%s): %w", i, declared.Kind, err)
		}
		if err := b.tap("loss."+b.model.Spec.TermName(i), term); err != nil {
			return nil, err
		}
		if loss == nil {
			loss = term
		} else if loss, err = gorgonia.Add(loss, term); err != nil {
			return nil, err
		}
	}
	return loss, nil
}

// differentiate taps the loss and adds the gradients.
func (b *builder) differentiate(loss *gorgonia.Node) error {
	if loss == nil {
		return errors.New("no loss: declare at least one [[loss]]")
	}
	if err := b.tap("loss", loss); err != nil {
		return err
	}
	return b.gradients(loss)
}

// term returns the i-th weighted loss term, a scalar.
func (b *builder) term(i int, factor float64, x, code, output, target *gorgonia.Node) (*gorgonia.Node, error) {
	declared := b.model.Spec.Losses[i]
	var value *gorgonia.Node
	var err error
	switch l := declared.Loss.(type) {
	case losses.Reconstruction:
		value, err = l.Compare(output, target)
	case losses.CodePenalty:
		value, err = l.Penalise(code)
	case losses.JacobianPenalty:
		value, err = l.PenaliseJacobian(b.encoding(i, x, code))
	case losses.AtomPenalty:
		value, err = b.onAtoms(l, target)
	case losses.WeightPenalty:
		value, err = b.decay(l, declared.On)
	default:
		err = fmt.Errorf("is neither a reconstruction, nor a penalty of the code, of its Jacobian, of atoms or of weights (%T)", l)
	}
	if err != nil {
		return nil, err
	}
	if !value.IsScalar() {
		return nil, fmt.Errorf("has shape %v, want a scalar", value.Shape())
	}
	return scaled(value, declared.Weight*factor)
}

// onAtoms returns a penalty of the atoms.
func (b *builder) onAtoms(l losses.AtomPenalty, images *gorgonia.Node) (*gorgonia.Node, error) {
	d, err := b.dictionary(images)
	if err != nil {
		return nil, err
	}
	return l.PenaliseAtoms(d)
}

// decay sums a weight penalty over the parameters that the glob matches.
func (b *builder) decay(l losses.WeightPenalty, glob string) (*gorgonia.Node, error) {
	var sum *gorgonia.Node
	for _, path := range b.model.Layout.MatchParameters(glob) {
		w, err := b.parameter(path)
		if err != nil {
			return nil, err
		}
		term, err := l.Decay(w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if sum == nil {
			sum = term
		} else if sum, err = gorgonia.Add(sum, term); err != nil {
			return nil, err
		}
	}
	if sum == nil {
		return nil, fmt.Errorf("on = %q matches no parameter", glob)
	}
	return sum, nil
}

// gradients adds the derivatives of the loss with respect to every trainable parameter that it reaches. A parameter
// that the loss does not reach has gradient nil and stays as it is.
func (b *builder) gradients(loss *gorgonia.Node) error {
	reached := ancestors(loss)
	var wrt gorgonia.Nodes
	var of []int
	for i, p := range b.program.Parameters {
		if p.Trainable && reached[p.Node] {
			wrt, of = append(wrt, p.Node), append(of, i)
		}
	}
	if len(wrt) == 0 {
		if b.options.Part == Penalties { // of frozen weights: a value, and nothing to move
			return nil
		}
		return errors.New("the loss reaches no trainable parameter")
	}
	grads, err := gorgonia.Grad(loss, wrt...)
	if err != nil {
		return fmt.Errorf("differentiating the loss: %w", err)
	}
	for i, g := range grads {
		b.program.Parameters[of[i]].Gradient = g
	}
	return nil
}

// ancestors returns every node that n is computed from.
func ancestors(n *gorgonia.Node) map[*gorgonia.Node]bool {
	seen := map[*gorgonia.Node]bool{}
	stack := []*gorgonia.Node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		stack = append(stack, ops.Children(n)...)
	}
	return seen
}
