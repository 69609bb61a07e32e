package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/ops"
)

// The full-batch objective is computed in micro-batches. It is
//
//	mean over images of R  +  P(codes of all images)  +  D(weights)
//
// where R are the terms that are means over images, P the terms of the code and D the terms of the weights. A program
// (images -> code) computes the codes H of all images batch by batch. A program (given code -> loss) computes P + D and the
// derivatives dP/dH and dD/dw. Then programs with Request.Of compute, for each micro-batch, its contribution to R and the
// derivatives of R + sum(dP/dH * H) with respect to the weights. Their sum plus dD/dw is the gradient of the objective.

// PullName is the name of the input for the upstream gradient dP/dH, (batch, units), of a program with Request.Of.
const PullName = "pull"

// Penalised reports whether the model has terms that read only the code and parameters (any), and whether one of them reads
// the code.
func (m *Model) Penalised() (some, code bool) {
	for _, l := range m.Spec.Losses {
		if readsOnly(l, losses.Code) {
			some, code = true, code || l.Loss.Reads().On
		}
	}
	return some, code
}

// readsOnly reports whether a term reads only these values and parameters.
func readsOnly(l config.Loss, names ...string) bool {
	return l.Loss.Reads().Alone(l.On, names...)
}

// portion adds the micro-batch term sum(dP/dH * H) to the contribution of the images to the mean.
func (b *builder) portion(loss *gorgonia.Node) (*gorgonia.Node, error) {
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
	upstream := c.Sum(c.Mul(b.input(PullName, nil, b.request.Batch, b.model.Units()), code))
	if loss != nil {
		upstream = c.Add(loss, upstream)
	}
	return upstream, c.Err()
}

// repeatable returns an error for layers that compute something else in training than at inference.
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

// given adds a given value as a parameter.
func (b *builder) given(name string, shape []int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Parameters = append(b.program.Parameters, Binding{Node: n,
		Parameter: &Parameter{Path: name, Shape: shape, Data: make([]float32, volume.Of(shape)), Trainable: true}})
	return n
}
