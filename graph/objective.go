package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/internal/volume"
	"tessera/losses"
)

// terms returns the indices of the request's terms.
func (b *builder) terms() (list []int) {
	for i, l := range b.model.Spec.Losses {
		r, take := l.Reads(), false
		switch {
		case slices.Contains(b.request.Want, InputGradient):
			take = r.Against == losses.Images && l.On == losses.Output
		case slices.Contains(b.request.Want, Terms) && b.request.Compared:
			take = b.model.Spec.Watches(l)
		case slices.Contains(b.request.Want, Terms), slices.ContainsFunc(b.request.Want, isGradient):
			take = b.model.Spec.Validates(l)
		case !slices.Contains(b.request.Want, Loss):
		case len(b.request.Given) > 0:
			take = readsOnly(l, b.request.Given...)
		case b.request.Of > 0:
			take = !readsOnly(l, losses.Code)
		default:
			take = true
		}
		if take {
			list = append(list, i)
		}
	}
	return list
}

// objective taps the terms and their sum, and adds the gradients.
func (b *builder) objective(terms []int) error {
	factor := 1.0
	if b.request.Of > 0 {
		factor = float64(b.request.Batch) / float64(b.request.Of)
	}
	players := b.model.Spec.AllPlayers()
	if n := b.request.Player; n > len(players) {
		return fmt.Errorf("player: got %d, but the model has %d", n, len(players))
	} else if n > 0 {
		players = players[n-1 : n]
	}
	nodes, loss, err := b.weighted(terms, factor, func(i int) bool {
		return slices.ContainsFunc(players, func(p config.Moving) bool { return slices.Contains(p.Terms, i) })
	})
	if err != nil {
		return err
	}
	if b.request.Of > 0 {
		if loss, err = b.microBatch(loss); err != nil {
			return err
		}
	}
	if loss == nil {
		return errors.New("no loss: declare at least one [[loss]]")
	}
	if err := b.tap(Loss, loss); err != nil {
		return err
	}
	other := func(p config.Moving) bool { return !slices.Equal(p.Terms, players[0].Terms) }
	if !slices.ContainsFunc(terms, b.separated) && !slices.ContainsFunc(players, other) {
		depends, err := b.gradients(loss, gorgonia.Grad, players)
		if err == nil && !depends && len(b.request.Given) == 0 { // with given values all weights may be frozen: only the value is needed
			err = errNoGradient
		}
		return err
	}
	for len(players) > 0 {
		others := slices.DeleteFunc(slices.Clone(players), func(p config.Moving) bool { return !other(p) })
		if err := b.summands(nodes, slices.DeleteFunc(slices.Clone(players), other)); err != nil { // differentiated together
			return ofPlayer(players[0], err)
		}
		players = others
	}
	return nil
}

// errNoGradient is the error for an objective that trains nothing.
var errNoGradient = part.KeyErrorf("loss", "depends on no trainable parameter: add a term that does, or unfreeze what it depends on")

// summands adds the gradients of players with the same terms: that of every term whose gradient is wanted, and that of the sum of the
// other terms. The gradient of the objective is their sum.
func (b *builder) summands(nodes map[int]*gorgonia.Node, players []config.Moving) error {
	terms := players[0].Terms
	if len(terms) == 0 {
		return errors.New("it has no loss term")
	}
	summands := [][]int{slices.DeleteFunc(slices.Clone(terms), b.separated)}
	for _, i := range terms {
		if b.separated(i) {
			summands = append(summands, []int{i})
		}
	}
	depends := false
	for _, of := range summands {
		var loss *gorgonia.Node
		for _, i := range of {
			var err error
			if loss == nil {
				loss = nodes[i]
			} else if loss, err = gorgonia.Add(loss, nodes[i]); err != nil {
				return err
			}
		}
		if loss == nil {
			continue
		}
		does, err := b.gradients(loss, ops.Gradient, players, of...)
		if err != nil {
			return err
		}
		depends = depends || does
	}
	if !depends {
		return errNoGradient
	}
	return nil
}

func (b *builder) separated(term int) bool {
	return slices.Contains(b.request.Want, TermGradient(b.model.Spec.TermName(term)))
}

// ofPlayer locates an error at the player whose objective causes it.
func ofPlayer(p config.Moving, err error) error {
	if of := (part.KeyError{}); errors.As(err, &of) && p.Name != "" {
		return part.KeyErrorf("player."+p.Name, "its %s %s", of.Key, of.Problem)
	}
	return fmt.Errorf("player %q: %w", p.Name, err)
}

// weighted builds all terms, multiplied by their weights and by factor. It returns those terms, by index, for which the
// function read returns true, and their sum, which is nil if there are none. Other terms are built only because they
// add inputs. The returned terms are tapped, unless the request is for the input gradient.
func (b *builder) weighted(terms []int, factor float64, read func(i int) bool) (nodes map[int]*gorgonia.Node, sum *gorgonia.Node, err error) {
	nodes = map[int]*gorgonia.Node{}
	for _, i := range terms {
		declared := b.model.Spec.Losses[i]
		term, err := b.term(i, factor, read(i))
		if err != nil {
			return nil, nil, fmt.Errorf("loss[%d] (%s): %w", i, declared.Kind, err)
		}
		if !read(i) {
			continue
		}
		if !slices.Contains(b.request.Want, InputGradient) {
			if err := b.tap("loss."+b.model.Spec.TermName(i), term); err != nil {
				return nil, nil, err
			}
		}
		nodes[i] = term
		if sum == nil {
			sum = term
		} else if sum, err = gorgonia.Add(sum, term); err != nil {
			return nil, nil, err
		}
	}
	return nodes, sum, nil
}

// all returns true for every term.
func all(int) bool { return true }

// term returns the i-th weighted loss term, a scalar.
func (b *builder) term(i int, factor float64, read bool) (*gorgonia.Node, error) {
	declared := b.model.Spec.Losses[i]
	n, err := losses.Build(declared.Loss, declared.On, &term{builder: b, index: i, declared: declared, reads: declared.Reads()})
	switch {
	case err != nil:
		return nil, err
	case !n.IsScalar():
		return nil, fmt.Errorf("has shape %v, want a scalar", n.Shape())
	}
	if declared.Weight == nil { // the declaration was made in Go without a weight
		return scaled(n, factor)
	}
	if c, ok := declared.Weight.(*losses.Constant); ok {
		return scaled(n, c.Value*factor)
	}
	if !slices.Contains(b.request.Want, Loss) { // outside of training the weight has its final value
		return scaled(n, declared.Weight.At(math.Inf(1))*factor)
	}
	if _, follows := declared.Weight.(losses.Adaptive); follows && read {
		if err := b.tap(UnweightedName(b.model.Spec.TermName(i)), n); err != nil {
			return nil, err
		}
	}
	w := b.input(WeightName(b.model.Spec.TermName(i)), nil)
	b.program.Inputs[len(b.program.Inputs)-1].Weight = declared.Weight
	if n, err = gorgonia.Mul(w, n); err != nil {
		return nil, err
	}
	return scaled(n, factor)
}

// scaled returns weight * n; a weight of 1 adds no node.
func scaled(n *gorgonia.Node, weight float64) (*gorgonia.Node, error) {
	if weight == 1 {
		return n, nil
	}
	return gorgonia.Mul(ops.Scalar(n, weight), n)
}

// gradients adds the derivatives of a loss to the gradients of the trainable parameters of the given players. It skips
// parameters on which the loss does not depend; depends reports whether there are others. If the loss is a single term
// whose gradient is requested separately, the derivatives are also tapped. differentiate is [gorgonia.Grad], which a
// graph allows once, or [ops.Gradient].
func (b *builder) gradients(loss *gorgonia.Node, differentiate func(*gorgonia.Node, ...*gorgonia.Node) (gorgonia.Nodes, error),
	players []config.Moving, terms ...int) (depends bool, err error) {
	moves := func(path string) bool {
		return slices.Contains(b.request.Given, path) || slices.ContainsFunc(players, func(p config.Moving) bool { return p.Moves(path) })
	}
	reached := ancestors(loss)
	var wrt gorgonia.Nodes
	var of []int
	for i, p := range b.program.Parameters {
		if p.Trainable && reached[p.Node] && moves(p.Path) {
			wrt, of = append(wrt, p.Node), append(of, i)
		}
	}
	if len(wrt) == 0 {
		return false, nil
	}
	grads, err := differentiate(loss, wrt...)
	if err != nil {
		return false, b.undifferentiable(err)
	}
	for i, g := range grads {
		p := &b.program.Parameters[of[i]]
		if len(terms) == 1 && b.separated(terms[0]) {
			if err := b.tap(GradientName(b.model.Spec.TermName(terms[0]), p.Path), g); err != nil {
				return false, err
			}
		}
		if p.Gradient != nil {
			if g, err = gorgonia.Add(p.Gradient, g); err != nil {
				return false, err
			}
		}
		p.Gradient = g
	}
	return true, nil
}

// undifferentiable replaces Gorgonia's error for nodes without a gradient by an error that names the parameters.
func (b *builder) undifferentiable(err error) error {
	var names []string
	if of, ok := errors.AsType[gorgonia.SymDiffError](err); ok {
		for _, p := range b.program.Parameters {
			if slices.Contains(of.Nodes(), p.Node) {
				names = append(names, p.Path)
			}
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("differentiating the loss: %w", err)
	}
	return part.KeyErrorf("loss", "has no gradient with respect to %s: freeze what the loss does not train, or add a term that depends on it",
		strings.Join(names, ", "))
}

// inputGradient adds the gradient of the terms with respect to the images.
func (b *builder) inputGradient(terms []int) error {
	images := b.streams[Images]
	_, loss, err := b.weighted(terms, 1, all)
	if err != nil {
		return err
	}
	if loss == nil || !ancestors(loss)[images] {
		return errors.New("no loss compares the output with the images: there is no error to maximise")
	}
	grads, err := gorgonia.Grad(loss, images)
	if err != nil {
		return fmt.Errorf("differentiating the loss: %w", err)
	}
	return b.tap(InputGradient, grads[0])
}

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
		stack = append(stack, fromgraph.Children(n)...)
	}
	return seen
}

// term implements [losses.Values] for one term of the objective.
type term struct {
	*builder
	index    int
	declared config.Loss
	reads    losses.Reads
	noises   int
}

func (t *term) On() (*gorgonia.Node, error) {
	return t.flatValue(value{t.declared.On, passOf(t.reads)})
}

func (t *term) Value(name string) (*gorgonia.Node, error) {
	n, err := t.flatValue(value{name, passOf(t.reads)})
	if err != nil || !slices.Contains(t.reads.Held, name) {
		return n, err
	}
	return ops.Stop(n)
}

func (t *term) Published(name string) (*gorgonia.Node, error) {
	return t.Value(t.model.Layout.PublishedBy(t.declared.On, name))
}

func (t *term) Teacher() (*gorgonia.Node, error) {
	p := passOf(t.reads)
	p.teacher = t.declared.TeacherName()
	return t.flatValue(value{cmp.Or(t.reads.TeacherOf, t.declared.On), p})
}

func (t *term) Clean() (*gorgonia.Node, error) {
	p := passOf(t.reads)
	if t.streams[Target] != nil && !t.reads.Views {
		p.stream = Target
	}
	return t.flatValue(value{t.declared.On, p})
}

func (t *term) Shape() ([]int, error) {
	switch name := t.reads.Against; {
	case t.reads.Atoms || name == losses.Images:
		return slices.Clone(t.model.Shape), nil
	case t.isColumn(name):
		c, _ := t.model.Layout.Column(name)
		return slices.Clone(c.Shape), nil
	}
	return []int{t.model.Layout.Size(t.reads.Against)}, nil
}

func (t *term) Weights() (list []*gorgonia.Node, err error) {
	for _, path := range t.model.Layout.MatchParameters(t.declared.On) {
		w, err := t.parameter(path)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("on = %q matches no parameter", t.declared.On)
	}
	return list, nil
}

func (t *term) Learned(name string) (*gorgonia.Node, error) {
	return t.parameter(config.LearnedPath(t.model.Spec.TermName(t.index), name))
}

// Encoding implements [losses.Values]. The name of the term is the name of its noise.
func (t *term) Encoding() (*losses.Encoding, error) {
	code, err := t.On()
	if err != nil {
		return nil, err
	}
	return &losses.Encoding{Images: t.streams[passOf(t.reads).stream], Code: code, Noise: func(s ops.Sampler, shape ...int) *gorgonia.Node {
		t.noises++
		n := t.input(noiseName("loss."+t.model.Spec.TermName(t.index), t.noises), s, shape...)
		t.program.Inputs[len(t.program.Inputs)-1].Fixed = t.request.Of > 0
		return n
	}}, nil
}

func (t *term) Dictionary() (*losses.Dictionary, error) {
	if t.reads.AtomsOf != "" {
		return t.layerAtoms(t.reads.AtomsOf)
	}
	if t.weights == nil {
		return nil, errors.New("the model has no atoms: the output of the decoder's last layer with weights is not an image")
	}
	images, err := t.named(t.model.Spec.Target(), pass{stream: Images})
	if err != nil {
		return nil, err
	}
	path := t.model.Layout.Decoder[t.model.Layout.Dictionary()].Path + ".weight"
	atoms, err := t.parameter(path)
	if err != nil {
		return nil, err
	}
	given := atoms
	if slices.Contains(t.reads.Held, losses.Atoms) {
		if given, err = ops.Stop(atoms); err != nil {
			return nil, err
		}
	}
	return &losses.Dictionary{Images: images, Shape: slices.Clone(t.model.Shape), Code: t.weights, Atoms: given,
		Decode: func(other *gorgonia.Node) (*gorgonia.Node, error) {
			values := t.values
			t.nodes[path], t.values = other, t.without(t.model.Layout.Decoder[t.model.Layout.Dictionary()].Path)
			defer func() { t.nodes[path], t.values = atoms, values }()
			return t.value(value{losses.Output, pass{stream: Images}})
		},
	}, nil
}

// layerAtoms returns the input and the weight of the dense decoder layer at path.
func (t *term) layerAtoms(path string) (*losses.Dictionary, error) {
	placed := t.model.Layout.DenseDecoder(path)
	if placed == nil {
		return nil, fmt.Errorf("the decoder has no dense layer %q", path)
	}
	images, err := t.target()
	if err != nil {
		return nil, err
	}
	code, err := t.joined(placed.From, pass{stream: Images})
	if err != nil {
		return nil, err
	}
	if code, err = flat(code); err != nil {
		return nil, err
	}
	weight, err := t.parameter(path + ".weight")
	return &losses.Dictionary{Images: images, Shape: slices.Clone(placed.Out), Code: code, Atoms: weight}, err
}

// without returns the computed values that do not depend on the output of the layer at path.
func (b *builder) without(path string) map[value]*gorgonia.Node {
	kept := maps.Clone(b.values)
	for v := range kept {
		if b.model.Layout.DependsOn(v.name, path) {
			delete(kept, v)
		}
	}
	return kept
}

// The full-batch objective is computed in micro-batches. It is
//
//	mean over images of R  +  P(codes of all images)  +  D(weights)
//
// where R are the terms that are means over images, P the terms of the code and D the terms of the weights. A program
// (images -> code) computes the codes H of all images batch by batch. A program (given code -> loss) computes P + D and the
// derivatives dP/dH and dD/dw. Then programs with Request.Of compute, for each micro-batch, its contribution to R and the
// derivatives of R + sum(dP/dH * H) with respect to the weights. Their sum plus dD/dw is the gradient of the objective.

// UpstreamName is the name of the input for the upstream gradient dP/dH, (batch, units), of a program with Request.Of.
const UpstreamName = "upstream"

// Penalised reports whether the model has terms that read only the code or parameters (some), and whether one of these
// reads the code (code).
func (m *Model) Penalised() (some, code bool) {
	for _, l := range m.Spec.Losses {
		if readsOnly(l, losses.Code) {
			some, code = true, code || l.Reads().On
		}
	}
	return some, code
}

// readsOnly reports whether a term reads only parameters and the values in names.
func readsOnly(l config.Loss, names ...string) bool {
	return len(l.Counted()) == 0 && l.Reads().Alone(l.On, names...)
}

// microBatch adds sum(dP/dH * H) to the contribution of the micro-batch to the mean.
func (b *builder) microBatch(loss *gorgonia.Node) (*gorgonia.Node, error) {
	if err := b.repeatable(); err != nil {
		return nil, err
	}
	if _, ok := b.model.Penalised(); !ok {
		return loss, nil
	}
	code, err := b.value(value{losses.Code, pass{stream: Images}})
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	upstream := c.Sum(c.Mul(b.input(UpstreamName, nil, b.request.Batch, b.model.Units()), code))
	if loss != nil {
		upstream = c.Add(loss, upstream)
	}
	return upstream, c.Err()
}

// repeatable returns an error if the program draws noise or updates state, because two evaluations would then give
// different results.
func (b *builder) repeatable() error {
	for _, in := range b.program.Inputs {
		if in.Sampler != nil && !in.Fixed {
			return fmt.Errorf("%s is noise: the objective over all images must be the same function at every evaluation", in.Name)
		}
	}
	if len(b.program.Updates) > 0 {
		return fmt.Errorf("%s is updated from the images of each mini-batch, but the objective takes the full batch", b.program.Updates[0].Parameter.Path)
	}
	return nil
}

// given adds an input of the caller as a parameter, so that the loss can be differentiated with respect to it.
func (b *builder) given(name string, shape []int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Parameters = append(b.program.Parameters, Binding{Node: n,
		Parameter: &Parameter{Path: name, Shape: shape, Data: make([]float32, volume.Of(shape)), Trainable: true}})
	return n
}
