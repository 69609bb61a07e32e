package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/ops"
)

// The objective over all images needs no program of all images. It is
//
//	mean over images of R  +  P(codes of all images)  +  D(weights)
//
// where R are the terms that are means over images, P those that read the code alone, all codes together, and D those of
// weights. With the codes H of all images, from a program (images -> code) a batch at a time, a program (given the code ->
// loss) computes P + D and the derivatives dP/dH and dD/dw; then programs of a few images each (Request.Of) compute R and the
// derivatives of R + sum(dP/dH * H) with respect to the weights, which add up to those of the whole.

// PullName is the name of the input of a program with Request.Of that takes dP/dH, (batch, units).
const PullName = "pull"

// Penalised reports which terms the model has that read nothing but the code and parameters: whether any, and whether some
// read the code.
func (m *Model) Penalised() (some, code bool) {
	for _, l := range m.Spec.Losses {
		if readsOnly(l, losses.Code) {
			some, code = true, code || l.Loss.Reads().On
		}
	}
	return some, code
}

// readsOnly reports whether a term reads nothing but these values and parameters.
func readsOnly(l config.Loss, names ...string) bool {
	return l.Loss.Reads().Alone(l.On, names...)
}

// portion adds to what some images add to the mean the pull on their codes.
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
	pull := c.Sum(c.Mul(b.input(PullName, nil, b.request.Batch, b.model.Units()), code))
	if loss != nil {
		pull = c.Add(loss, pull)
	}
	return pull, c.Err()
}

// repeatable refuses layers whose training is not the same each time, and not that of inference.
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

// given adds a value as a separate parameter.
func (b *builder) given(name string, shape []int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Parameters = append(b.program.Parameters, Binding{Node: n,
		Parameter: &Parameter{Path: name, Shape: shape, Data: make([]float32, volume.Of(shape)), Trainable: true}})
	return n
}
