package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/ir/fromgraph"
	"tessera/losses"
	"tessera/ops"
)

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

// scaled returns weight * n; a weight of 1 adds no node.
func scaled(n *gorgonia.Node, weight float64) (*gorgonia.Node, error) {
	if weight == 1 {
		return n, nil
	}
	return gorgonia.Mul(ops.Scalar(n, weight), n)
}

// encoding is the encoder as the i-th term sees it; its noise is named after the term.
func (b *builder) encoding(i int, x, code *gorgonia.Node) *losses.Encoding {
	noises := 0
	return &losses.Encoding{Images: x, Code: code, Noise: func(s losses.Sampler, shape ...int) *gorgonia.Node {
		noises++
		n := b.input(noiseName("loss."+b.model.Spec.TermName(i), noises), s, shape...)
		b.program.Inputs[len(b.program.Inputs)-1].Fixed = b.options.Part == Portion
		return n
	}}
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
		stack = append(stack, fromgraph.Children(n)...)
	}
	return seen
}
