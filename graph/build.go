package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/graph/ops"
	"tessera/internal/panics"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
)

// Names of outputs of a program other than the values of the model ("code", "output", a head).
const (
	// Loss is the objective with its terms, and its gradient with respect to every trainable parameter on which it
	// depends.
	Loss = "loss"
	// Terms are the weighted terms of the objective that can be measured without training ([losses.Reads.Validates]).
	// Each term is a tap "loss.TERM". A scheduled weight has its final value, an adaptive multiplier its initial value.
	Terms = "terms"
	// InputGradient is the gradient of the weighted terms that compare the output with the images, with respect to the
	// encoded images. The program then has the additional input [Target].
	InputGradient = "gradient of input"
)

// TermGradient names the gradient of a weighted loss term with respect to the trainable parameters, which a program with [Loss]
// computes in addition: one tap [GradientName] for each parameter that the term depends on and that its player trains.
func TermGradient(term string) string { return termGradientPrefix + term }

const termGradientPrefix = "gradient of loss."

// GradientName is the name of the tap of a term's gradient with respect to the parameter at a path.
func GradientName(term, path string) string { return TermGradient(term) + " by " + path }

// Names of the inputs for images and labels.
const (
	Images = "input"  // the images that the encoder reads, (batch, shape)
	Target = "target" // the images to reconstruct, if the encoder reads distorted images
	Views  = "views"  // first views of all images, followed by their second views, (2 batch, shape)
	Labels = "labels" // one-hot classes (batch, classes); 0 for images without a label
)

// Request describes a program of a model. The program computes Want from Given and from the data, and nothing else.
type Request struct {
	Batch int
	Want  []string // names of the outputs: values, [Loss], [TermGradient], [Terms], [InputGradient]; nil means all values, and in training also the loss

	// Given lists values that the caller provides as inputs. With Loss, the program then contains only the terms of
	// these values and of parameters. It also computes the gradient with respect to these values.
	Given []string
	// Of is the number of images of the full batch if the program computes the contribution of a micro-batch, otherwise
	// 0. Terms that read only the code are then represented by their upstream gradient; see [UpstreamName].
	Of int

	// Player selects one player, by its index in config.Model.AllPlayers plus 1. With Loss, the program then computes
	// only the terms of this player and the gradient with respect to its parameters. 0 selects all players, each with
	// the gradient of its own terms. Programs of all players have the same inputs.
	Player int

	// Compared adds to [Terms] the terms that compare the samples of a batch, read the views or a teacher. The caller draws the
	// views, and the hook of the teacher lends its parameters ([Model.Lent]).
	Compared bool

	// Step computes one token of a sequence from what the layers keep of the tokens before it; see [layers.Stepping] and [Coder.Step]. It is an error for
	// a model with other layers between the images and the wanted value.
	Step bool

	Training bool         // layers run in training mode; always true with Loss
	Prepared bool         // the caller prepares the images for the first layer: see Input.Preparation
	Dtype    tensor.Dtype // precision; the zero value means tensor.Float32
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
	case slices.ContainsFunc(r.Want, func(name string) bool { return strings.HasPrefix(name, adversaryPrefix) }) && len(r.Want) > 1:
		return fmt.Errorf("want: got %q, the gradient of an attack is computed alone", r.Want)
	case slices.ContainsFunc(r.Want, isGradient) && len(r.Want) > 1:
		return fmt.Errorf("want: got %q, a gradient with respect to a column is computed alone", r.Want)
	case r.Player < 0 || r.Player > 0 && (len(r.Given) > 0 || r.Of > 0):
		return fmt.Errorf("player: got %d, want an index from 1, without given values and micro-batches", r.Player)
	case slices.Contains(r.Want, Terms) && (slices.Contains(r.Want, Loss) || slices.Contains(r.Want, InputGradient)):
		return fmt.Errorf("want: got %q with a gradient, which uses other terms; build two programs", Terms)
	}
	return nil
}

// builder adds a model's expressions to one graph.
type builder struct {
	model   *Model
	request Request
	program *Program
	nodes   map[string]*gorgonia.Node // parameters by path
	streams map[string]*gorgonia.Node // inputs of columns by name
	values  map[value]*gorgonia.Node  // values computed so far
	weights *gorgonia.Node            // input of the decoder layer that contains the atoms: the weights of the atoms; nil without atoms
	place   *gorgonia.Node            // number of the token that is computed alone; nil in a program of whole sequences
	kept    []*gorgonia.Node          // values of this token that are inputs for later ones
}

// value identifies a value of the model or of a teacher, computed for images or for views.
type value struct {
	name string
	pass
}

// pass identifies an evaluation of the model by its images and its parameters.
type pass struct {
	stream  string // Images or Views
	teacher string // hook that supplies the parameters, in inference mode; "" for the parameters of the model
}

// building serialises the construction of graphs. Gorgonia's graphs share constants, such as 1, and store the hashes of
// constants without a lock.
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
	// Gorgonia panics on some malformed expressions. A user-defined layer or loss must not end the process.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("model %q: building the graph: %w", m.Spec.Name, panics.Of(r))
		}
	}()
	b := &builder{model: m, request: r, nodes: map[string]*gorgonia.Node{}, streams: map[string]*gorgonia.Node{}, values: map[value]*gorgonia.Node{},
		program: &Program{Graph: gorgonia.NewGraph(), Dtype: r.Dtype, Batch: r.Batch, layers: map[*gorgonia.Node]string{}}}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Spec.Name, err)
	}
	return b.program, nil
}

// build adds inputs, then values in the model's order, then the terms of the objective. The order is fixed: it
// determines the order of the program's inputs, and equal requests give equal programs.
func (b *builder) build() error {
	terms := b.terms()
	if err := b.addGiven(terms); err != nil {
		return err
	}
	needed := b.needed(terms)
	b.addStreams(terms, needed)
	for _, v := range needed {
		if _, err := b.value(v); err != nil {
			return err
		}
	}
	if b.reads(terms, readsImages) {
		if _, err := b.target(); err != nil {
			return err
		}
	}
	if err := b.addTaps(terms); err != nil {
		return err
	}
	for i, n := range b.kept {
		if err := b.tap(fmt.Sprintf("kept.%d", i), n); err != nil {
			return err
		}
	}
	return nil
}

// addGiven adds the values that the caller provides. If the loss is differentiated with respect to them, they are added
// as parameters.
func (b *builder) addGiven(terms []int) error {
	for _, name := range b.request.Given {
		shape := b.model.Layout.Shape(name)
		if shape == nil {
			return fmt.Errorf("given: the model has no value %q", name)
		}
		shape = append([]int{b.request.Batch}, shape...)
		v := value{name, pass{stream: Images}}
		switch {
		case !slices.Contains(b.request.Want, Loss):
			b.values[v] = b.input(name, nil, shape...)
		case b.reads(terms, func(r losses.Reads) bool { return r.On }):
			b.values[v] = b.given(name, shape)
		}
	}
	return nil
}

// needed returns the values to compute, in the order code, output, heads, layers: first for the images, then for the
// views, then for the teachers.
func (b *builder) needed(terms []int) (list []value) {
	wanted := map[value]bool{}
	for _, name := range b.request.Want {
		if head, _ := b.request.adversary(); head != "" {
			name = head
		}
		if name != Loss && name != Terms && name != InputGradient && !isGradient(name) && !strings.HasPrefix(name, termGradientPrefix) {
			wanted[value{name, pass{stream: Images}}] = true
		}
	}
	for _, i := range terms {
		declared := b.model.Spec.Losses[i]
		for _, name := range b.model.Layout.ValuesOf(declared) {
			if !b.isColumn(name) {
				wanted[value{name, passOf(declared.Reads())}] = true
			}
		}
	}
	for _, p := range []pass{{stream: Images}, {stream: Views}} {
		for _, name := range b.model.values() {
			if v := (value{name, p}); wanted[v] && b.values[v] == nil {
				list = append(list, v)
			}
			delete(wanted, value{name, p})
		}
	}
	unknown := slices.Collect(maps.Keys(wanted)) // names that do not exist: computing the first one gives an error
	slices.SortFunc(unknown, func(a, b value) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.stream, b.stream)) })
	return append(list, unknown...)
}

// passOf returns the pass that computes the values for a term.
func passOf(r losses.Reads) pass {
	if r.Views {
		return pass{stream: Views}
	}
	return pass{stream: Images}
}

// addStreams adds the inputs for images and labels that terms or values read.
func (b *builder) addStreams(terms []int, needed []value) {
	shape := append([]int{b.request.Batch}, b.model.Shape...)
	if b.request.Step {
		shape[1] = 1
	}
	from := func(stream string) bool {
		return slices.ContainsFunc(needed, func(v value) bool { return v.stream == stream && b.encodes(v) })
	}
	attacked := slices.Contains(b.request.Want, InputGradient) || slices.Contains(b.request.Want, Gradient(losses.Images))
	encoded := attacked || from(Images)
	named := func(i int) bool { return slices.Contains(b.model.Spec.Losses[i].Names(), losses.Images) } // also as a mask
	if encoded || slices.ContainsFunc(terms, named) || b.reads(terms, func(r losses.Reads) bool { return r.Teacher && !r.Views }) {
		b.streams[Images] = b.filled(losses.Images, Images, 0, shape...)
	}
	if b.request.Step {
		b.place = b.input("place", nil, b.request.Batch, 1)
	}
	if attacked || encoded && b.request.Training && b.model.Spec.Distorted() {
		b.streams[Target] = b.filled(losses.Images, Target, 0, shape...)
	}
	if b.reads(terms, func(r losses.Reads) bool { return r.Views }) {
		shape[0] *= 2
		b.streams[Views] = b.input(Views, nil, shape...)
	}
	for _, i := range terms {
		l := b.model.Spec.Losses[i]
		if r := l.Reads(); r.Classes {
			b.classes(r.Against, b.model.Layout.Size(l.On))
		}
	}
}

// reads reports whether selected is true for the inputs of at least one of the terms.
func (b *builder) reads(terms []int, selected func(losses.Reads) bool) bool {
	return slices.ContainsFunc(terms, func(i int) bool { return selected(b.model.Spec.Losses[i].Reads()) })
}

// addTaps taps the outputs in the order values, terms, loss, input gradient.
func (b *builder) addTaps(terms []int) error {
	for _, name := range b.model.values() {
		if !slices.Contains(b.request.Want, name) {
			continue
		}
		n, err := b.flatValue(value{name, pass{stream: Images}})
		if err != nil {
			return err
		}
		if err := b.tap(name, n); err != nil {
			return err
		}
	}
	head, by := b.request.adversary()
	switch {
	case head != "":
		return b.adversary(head, by)
	case slices.Contains(b.request.Want, InputGradient):
		return b.inputGradient(terms)
	case slices.Contains(b.request.Want, Loss):
		return b.objective(terms)
	case slices.ContainsFunc(b.request.Want, isGradient):
		return b.gradientOf(strings.TrimPrefix(b.request.Want[0], gradientPrefix), terms)
	case slices.Contains(b.request.Want, Terms):
		_, _, err := b.weighted(terms, 1, all)
		return err
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

// value returns the node of a value. On first use it adds the value and everything on which the value depends.
func (b *builder) value(v value) (*gorgonia.Node, error) {
	if n := b.values[v]; n != nil {
		return n, nil
	}
	n, err := b.compute(v)
	if err != nil {
		return nil, err
	}
	b.values[v] = n
	return n, nil
}

// compute adds a value: the images, the output of a stack, or the output of a layer together with the values that it
// publishes.
func (b *builder) compute(v value) (*gorgonia.Node, error) {
	if v.name == losses.Images {
		if n := b.streams[v.stream]; n != nil {
			return n, nil
		}
		return nil, fmt.Errorf("the stream %q is not read", v.stream)
	}
	if b.isColumn(v.name) {
		n, err := b.column(v.name)
		if err != nil || v.stream != Views {
			return n, err
		}
		return twice(n) // both views of a sample have the same column
	}
	placed, published := b.model.Layout.Of(v.name)
	if placed == nil {
		return nil, b.model.lacksValue(v.name)
	}
	if placed.Path == v.name {
		return b.output(*placed, v.pass)
	}
	n, err := b.value(value{placed.Path, v.pass})
	switch {
	case err != nil:
		return nil, err
	case v.name == placed.Name:
		return n, nil
	case published == "":
		return flat(n)
	}
	if of := b.values[value{placed.Path + "." + published, v.pass}]; of != nil {
		return of, nil
	}
	return nil, fmt.Errorf("the value %q is missing: %s publishes it, but the output of this layer is given; give %q, too", v.name, placed.Path, v.name)
}

// twice returns the rows of n, followed by the same rows again.
func twice(n *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	shape := slices.Clone(n.Shape())
	row := c.Reshape(n, 1, shape.TotalSize())
	shape[0] *= 2
	return c.Reshape(c.Join(row, row), shape...), c.Err()
}

// flatValue returns a value as (batch, values).
func (b *builder) flatValue(v value) (*gorgonia.Node, error) {
	n, err := b.value(v)
	if err != nil {
		return nil, err
	}
	return flat(n)
}

// output applies a layer to its inputs. If the layer contains the atoms, it stores the input of the layer.
func (b *builder) output(placed config.Placed, p pass) (*gorgonia.Node, error) {
	if y, ok, err := b.prepared(placed, p); ok || err != nil {
		return y, err
	}
	x, err := b.joined(placed.From, p)
	if err != nil {
		return nil, err
	}
	if i := b.model.Layout.Dictionary(); i >= 0 && placed.Path == b.model.Layout.Decoder[i].Path && p == (pass{stream: Images}) {
		if x, err = flat(x); err != nil {
			return nil, err
		}
		b.weights = x
	}
	y, err := b.layer(placed, x, p)
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, err)
	}
	return y, nil
}

// joined returns several values, concatenated along their last axis. If one of them is a vector, all are flattened.
// [config.Model.Layout] has checked their shapes.
func (b *builder) joined(names []string, p pass) (*gorgonia.Node, error) {
	list := make([]*gorgonia.Node, len(names))
	var shape []int // shape of the value with the most axes
	vector := false
	for i, name := range names {
		var err error
		if list[i], err = b.value(value{name, p}); err != nil {
			return nil, err
		}
		s := list[i].Shape()
		if vector = vector || len(s) == 2; len(s) > len(shape) {
			shape = slices.Clone(s)
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	if vector {
		shape = []int{shape[0], 0}
	}
	var c ops.Chain
	last := len(shape) - 1
	places := volume.Of(shape[:last])
	rows := func(n *gorgonia.Node) *gorgonia.Node { return c.Reshape(n, places, n.Shape().TotalSize()/places) }
	all := rows(list[0])
	for _, n := range list[1:] {
		left, right := all, rows(n)
		all = c.Do("join", func() (*gorgonia.Node, error) { return ops.Join(left, right) })
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	shape[last] = all.Shape()[1]
	return c.Reshape(all, shape...), c.Err()
}

// encodes reports whether a value is computed from images, rather than from given values only.
func (b *builder) encodes(v value) bool {
	return slices.Contains(b.model.Layout.Sources(v.name, b.request.Given...), losses.Images)
}

// lacksValue returns the error for the name of a value that does not exist.
func (m *Model) lacksValue(name string) error {
	if name == losses.Output {
		return m.Layout.Decodes()
	}
	return fmt.Errorf("the model has no value %q: it has %q", name, m.Layout.Values())
}

// prepared adds the encoder's first layer for images that the caller prepares. ok is false if the caller does not
// prepare them.
func (b *builder) prepared(placed config.Placed, p pass) (y *gorgonia.Node, ok bool, err error) {
	first, ok := placed.Layer.(layers.Preparing)
	if !ok || placed.Path != b.model.Layout.Encoder[0].Path || !b.request.Prepared || p != (pass{stream: Images}) || b.needsImages() {
		return nil, false, nil
	}
	prepared := b.input(placed.Path+".prepared", nil, append([]int{b.request.Batch}, placed.Out...)...)
	b.program.Inputs[len(b.program.Inputs)-1].Preparation = first.Preparation()
	if y, err = first.Rest(&scope{builder: b, placed: placed, pass: p}, prepared); err != nil {
		return nil, false, fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, err)
	}
	return y, true, nil
}

// needsImages reports whether the program distorts the images or differentiates with respect to them. It then prepares
// the images itself at every step.
func (b *builder) needsImages() bool {
	wants := func(name string) bool { return slices.Contains(b.request.Want, name) }
	head, _ := b.request.adversary()
	return head != "" || wants(InputGradient) || wants(Gradient(losses.Images)) || b.request.Training && b.model.Spec.Distorted() || (b.request.Training || wants(Terms)) &&
		slices.ContainsFunc(b.model.Spec.Losses, func(l config.Loss) bool { return l.Reads().Jacobian })
}

// layer applies one layer and checks that the result matches the layer's declaration.
func (b *builder) layer(placed config.Placed, x *gorgonia.Node, p pass) (*gorgonia.Node, error) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, panics.Of(r)))
		}
	}()
	if in := placed.In; b.request.Step && !(layers.Steps(placed.Layer, in) && in[0] == b.model.Shape[0] && slices.Equal(x.Shape()[1:], append([]int{1}, in[1:]...))) {
		return nil, errors.New("its output for a token is not computed from the tokens up to it")
	}
	known := len(b.program.Graph.AllNodes())
	s := &scope{builder: b, placed: placed, pass: p, shortened: !slices.Equal([]int(x.Shape()[1:]), placed.In)}
	y, err := placed.Layer.Apply(s, x)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("%s (%s)", placed.Path, placed.Kind)
	for _, n := range b.program.Graph.AllNodes()[known:] {
		b.program.layers[n] = at
	}
	if y == nil {
		return nil, errors.New("its Apply returns no node")
	}
	for _, v := range placed.Published {
		if n := b.values[value{placed.Path + "." + v.Name, p}]; n == nil {
			return nil, fmt.Errorf("its Apply does not publish %q, which it declares", v.Name)
		}
	}
	out, err := s.shape(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	if want := append([]int{x.Shape()[0]}, out...); !slices.Equal(want, []int(y.Shape())) {
		return nil, fmt.Errorf("its Apply gives %v, but its OutputShape says %v", []int(y.Shape()), want)
	}
	return y, nil
}

// shape returns the shape of the layer's output for inputs of the shape in. In training, the shapes of a layer that
// leaves tokens out, and of all layers after it, differ from the declared ones.
func (s *scope) shape(in []int) ([]int, error) {
	if l, ok := s.placed.Layer.(layers.Shortening); ok && (s.Training() || s.shortened) {
		return l.TrainingShape(in), nil
	}
	if !s.shortened {
		return s.placed.Out, nil
	}
	return s.placed.Layer.OutputShape(in)
}

// readsImages reports whether a term reads the images themselves.
func readsImages(r losses.Reads) bool { return r.Against == losses.Images || r.Atoms }

// filled adds an input that the caller fills with a column. If the column has classes, the input is one-hot.
func (b *builder) filled(column, name string, classes int, shape ...int) *gorgonia.Node {
	n := b.input(name, nil, shape...)
	in := &b.program.Inputs[len(b.program.Inputs)-1]
	in.Column, in.Classes = column, classes
	return n
}

// input adds an input that the caller fills.
func (b *builder) input(name string, s ops.Sampler, shape ...int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Inputs = append(b.program.Inputs, Input{Name: name, Node: n, Shape: slices.Clone(shape), Sampler: s})
	return n
}

func (b *builder) leaf(name string, shape []int) *gorgonia.Node {
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.program.Graph, b.request.Dtype, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.program.Graph, b.request.Dtype, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// tap makes a node readable after a run.
func (b *builder) tap(name string, n *gorgonia.Node) error {
	if n == nil {
		return fmt.Errorf("%s: the expression is empty", name)
	}
	b.program.Taps = append(b.program.Taps, Tap{Name: name, Node: n})
	return nil
}

// parameter returns the node of a parameter. It adds the node on first use.
func (b *builder) parameter(path string) (*gorgonia.Node, error) {
	if n, ok := b.nodes[path]; ok {
		return n, nil
	}
	p, err := b.model.Parameter(path)
	if err != nil {
		switch of, transposed := b.model.alias(path); {
		case of == "":
			return nil, err
		case transposed:
			return b.transposed(path, of)
		default:
			return b.parameter(of)
		}
	}
	n := b.leaf(path, p.Shape)
	b.nodes[path] = n
	b.program.Parameters = append(b.program.Parameters, Binding{Parameter: p, Node: n})
	return n, nil
}

// transposed returns the node of a parameter that is the transpose of another parameter.
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

// flat returns x as (batch, values).
func flat(x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) == 2 {
		return x, nil
	}
	return ops.Reshape(x, shape[0], volume.Of(shape[1:]))
}

// scope implements [layers.Scope] for one layer of the model.
type scope struct {
	*builder
	placed config.Placed
	pass   pass
	noises int

	shortened bool // the input, or a value that the layer reads by name, has a different shape than declared; see [layers.Shortening]
}

func (s *scope) Parameter(name string) *gorgonia.Node {
	path := s.path() + "." + name
	if slices.ContainsFunc(s.placed.Parameters, func(p layers.Parameter) bool { return p.Name == name && p.Unaveraged }) {
		path = s.owned(name)
	}
	n, err := s.parameter(path)
	if err != nil {
		panic(err) // the layer did not declare the parameter; Program turns the panic into an error
	}
	return n
}

// path returns the path of the layer that has the parameters: this layer, or the layer whose parameters it shares.
func (s *scope) path() string {
	if s.pass.teacher != "" {
		return s.pass.teacher + "." + s.placed.Path
	}
	return s.placed.Path
}

func (s *scope) Update(name string, value *gorgonia.Node) {
	path := s.placed.Path + "." + name
	if s.owned(name) != path {
		return // the layer that has the state updates it
	}
	p, err := s.model.Parameter(path)
	if err == nil && p.Trainable {
		err = fmt.Errorf("parameter %q is updated by the optimizer; declare it with State", path)
	}
	if err == nil && !slices.Equal(value.Shape(), p.Shape) {
		err = fmt.Errorf("update of %q: got shape %v, want %v", path, value.Shape(), p.Shape)
	}
	if err != nil {
		panic(err) // the layer is invalid; Program turns the panic into an error
	}
	assigned := slices.ContainsFunc(s.program.Updates, func(u Update) bool { return u.Parameter == p })
	s.Parameter(name)                                 // so that the program lists every parameter that it updates
	if s.request.Training && !assigned && !p.Frozen { // a layer that is applied again, with other atoms, updates its state only once
		s.program.Updates = append(s.program.Updates, Update{Parameter: p, Node: value})
	}
}

func (s *scope) Publish(name string, n *gorgonia.Node) {
	path := s.placed.Path + "." + name
	i := slices.IndexFunc(s.placed.Published, func(v layers.Value) bool { return v.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("publishes %q, which it does not declare: return it from Publishes", name)) // Program turns the panic into an error
	}
	if want := append([]int{s.request.Batch}, s.placed.Published[i].Shape...); s.pass.stream == Images && !s.shortened && !slices.Equal(n.Shape(), want) {
		panic(fmt.Sprintf("publishes %q of shape %v, but its Publishes says %v", name, n.Shape(), want))
	}
	s.values[value{path, s.pass}] = n
}

func (s *scope) Value(name string) *gorgonia.Node {
	if !slices.Contains(s.placed.Reads, name) {
		panic(fmt.Sprintf("reads the value %q, which it does not list: return it from Reads", name)) // Program turns the panic into an error
	}
	n, err := s.value(value{name, s.pass})
	if err != nil {
		panic(err)
	}
	s.shortened = s.shortened || !slices.Equal([]int(n.Shape()[1:]), s.model.Layout.Shape(name))
	return n
}

func (s *scope) Noise(sampler ops.Sampler, shape ...int) *gorgonia.Node {
	s.noises++
	of := s.placed.Path
	if s.pass.stream != Images {
		of = s.pass.stream + "." + of
	}
	name := noiseName(of, s.noises)
	for _, in := range s.program.Inputs { // a layer that is applied again, with other atoms, uses the same noise
		if in.Name == name {
			return in.Node
		}
	}
	return s.input(name, sampler, shape...)
}

// noiseName returns the name of the n-th noise input of a layer or a term, from 1. The name also identifies the random
// stream.
func noiseName(of string, n int) string {
	if n == 1 {
		return of + ".noise"
	}
	return fmt.Sprintf("%s.noise.%d", of, n)
}

// Training implements [layers.Scope]. A layer whose parameters are all frozen runs in inference mode during training:
// for example, a frozen normalisation layer does not change its running averages. In a block, this is decided for every
// inner layer separately.
func (s *scope) Training() bool {
	_, block := s.placed.Layer.(layers.Block)
	return s.request.Training && s.pass.teacher == "" && (block || !s.Frozen(layers.Names(s.placed.Parameters)...))
}

func (s *scope) Teacher() bool { return s.request.Training && s.pass.teacher != "" }

// Frozen implements [layers.Scope]. A shared parameter is frozen if it is frozen in its own layer.
func (s *scope) Frozen(names ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return !s.model.Spec.Frozen(s.owned(name))
	})
}

func (s *scope) Place() *gorgonia.Node { return s.place }

func (s *scope) Past(features int) (past *gorgonia.Node, keep func(*gorgonia.Node)) {
	i := len(s.kept)
	s.kept = append(s.kept, nil)
	past = s.input(fmt.Sprintf("past.%d", i), nil, s.request.Batch, s.model.Shape[0]-1, features)
	return past, func(x *gorgonia.Node) { s.kept[i] = x }
}

// owned returns the path of a parameter in the layer to which it belongs. This is another layer if the parameter is
// shared.
func (s *scope) owned(name string) string {
	for _, p := range s.placed.Parameters {
		if p.Name == name && p.Of != "" && !p.Transposed {
			return p.Of
		}
	}
	return s.placed.Path + "." + name
}
