package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/losses"
	"tessera/ops"
)

// term implements [losses.Values] for one term of the objective.
type term struct {
	*builder
	index    int
	declared config.Loss
	reads    losses.Reads
	noises   int
}

// On implements [losses.Values].
func (t *term) On() (*gorgonia.Node, error) {
	return t.value(value{t.declared.On, passOf(t.reads)})
}

// Value implements [losses.Values].
func (t *term) Value(name string) (*gorgonia.Node, error) {
	return t.value(value{name, passOf(t.reads)})
}

// Teacher implements [losses.Values].
func (t *term) Teacher() (*gorgonia.Node, error) {
	p := passOf(t.reads)
	p.teacher = true
	return t.value(value{t.declared.On, p})
}

// Images implements [losses.Values].
func (t *term) Images() (*gorgonia.Node, error) { return t.target() }

// Shape implements [losses.Values].
func (t *term) Shape() ([]int, error) { return slices.Clone(t.model.Shape), nil }

// Labels implements [losses.Values].
func (t *term) Labels() (*gorgonia.Node, error) { return t.streams[Labels], nil }

// Weights implements [losses.Values].
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

// Encoding implements [losses.Values]. Its noise is named after the term.
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

// Dictionary implements [losses.Values].
func (t *term) Dictionary() (*losses.Dictionary, error) {
	if t.weighs == nil {
		return nil, errors.New("the model has no atoms: the output of the decoder's last layer with weights is not an image")
	}
	images, err := t.target()
	if err != nil {
		return nil, err
	}
	rest := t.model.Layout.Decoder[t.model.Layout.Dictionary():]
	path := rest[0].Path + ".weight"
	atoms, err := t.parameter(path)
	if err != nil {
		return nil, err
	}
	return &losses.Dictionary{Images: images, Shape: slices.Clone(t.model.Shape), Code: t.weighs, Atoms: atoms,
		Decode: func(other *gorgonia.Node) (*gorgonia.Node, error) {
			t.nodes[path] = other
			defer func() { t.nodes[path] = atoms }()
			return t.stack(rest, t.weighs, pass{stream: Images})
		},
	}, nil
}
