package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Reader = (*Dot)(nil)

// Dot is the inner product of every token of its input with a vector of the model,
//
//	y_i = sum_j x_ij v_j + sum over the values in plus of p_i
//
// Tokens lie along the input's last axis; a vector is one token. v is the value that `with` names, with as many values as a token. Values of `plus`,
// such as biases, have a number for each token. There are no parameters.
type Dot struct {
	With string   `toml:"with" required:"true" doc:"name of the value with which every token is multiplied"`
	Plus []string `toml:"plus" optional:"true" doc:"names of values that are added, with one number for each token"`

	shapes [][]int // of the values with and plus
}

func init() {
	Registry.Register("dot", "inner product of every token with another value, y_i = x_i · v", func() Layer { return &Dot{} })
}

func (l *Dot) Reads() []Reading {
	list := []Reading{{Key: "with", Name: l.With}}
	for _, name := range l.Plus {
		list = append(list, Reading{Key: "plus", Name: name})
	}
	for i := range l.shapes {
		list[i].Shape = l.shapes[i]
	}
	return list
}

func (l *Dot) Receive(shapes [][]int) { l.shapes = shapes }

func (l *Dot) OutputShape(in []int) ([]int, error) {
	tokens, features := tokensOf(in)
	for i, r := range l.Reads() {
		if want := []int{features, tokens}[min(i, 1)]; r.Shape == nil || volume.Of(r.Shape) != want {
			return nil, part.KeyErrorf(r.Key, "%q has the shape %v, want %d values for %d tokens of %d values", r.Name, r.Shape, want, tokens, features)
		}
	}
	return []int{tokens}, nil
}

func (*Dot) Parameters([]int) []Parameter { return nil }

func (l *Dot) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	batch := x.Shape()[0]
	tokens, features := tokensOf(x.Shape()[1:])
	v := s.Value(l.With)
	if n := v.Shape().TotalSize(); n != batch*features {
		return nil, fmt.Errorf("dot: with: %q has the shape %v, want %d values for each of %d inputs", l.With, v.Shape(), features, batch)
	}
	var c ops.Chain
	g := ops.Attention{Tokens: 1, Features: features, Heads: 1, Others: tokens}
	y := c.Do("inner products", func() (*gorgonia.Node, error) {
		return g.Scores(c.Reshape(v, batch, 1, features), c.Reshape(x, batch, tokens, features))
	})
	y = c.Reshape(y, batch, tokens)
	for _, name := range l.Plus {
		y = c.Add(y, c.Reshape(s.Value(name), batch, tokens))
	}
	return y, c.Err()
}
