package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// TeacherCentre subtracts the moving average c of what a teacher computes here, y = x - c, with one value of c for each value of
// the input, whose shape does not change. In every training step the teacher's inputs x' of this layer, for the n images or views
// of the batch, move the average after it was subtracted:
//
//	c <- momentum c + (1-momentum) 1/n sum over i of x'_i
//
// The layer publishes uncentred, its input x. The loss dino compares the model's uncentred values with the teacher's centred ones:
// no unit can then be the teacher's answer for all images. In a model that no loss compares with a teacher, c remains 0. Terms that
// compare this layer with different teachers, or one of them views and another the images, would move c twice: check refuses them.
//
// State: centre, of the shape of the input, initially 0. It is part of the run, and a teacher reads the model's centre, not an
// average of it. Source: Caron et al., Emerging properties in self-supervised vision transformers, 2021.
type TeacherCentre struct {
	Momentum float64 `toml:"momentum" want:"in [0,1)" doc:"decay of the moving average"`
}

func init() {
	Registry.Register("teacher_centre", "subtracts the moving average of the teacher's values, for the loss dino", func() Layer {
		return &TeacherCentre{Momentum: 0.9}
	})
}

// Uncentred is the name of the value that [TeacherCentre] publishes.
const Uncentred = "uncentred"

func (*TeacherCentre) OutputShape(in []int) ([]int, error) { return in, nil }

func (*TeacherCentre) Parameters(in []int) []Parameter {
	return []Parameter{{Name: "centre", Shape: slices.Clone(in), Init: &Zeros{}, FanIn: 1, FanOut: 1, State: true, Unaveraged: true}}
}

func (*TeacherCentre) Publishes(in []int) []Value {
	return []Value{{Name: Uncentred, Shape: slices.Clone(in)}}
}

func (t *TeacherCentre) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	rows, shape := c.Flatten(x), x.Shape()[1:]
	centre := c.Reshape(s.Parameter("centre"), volume.Of(shape))
	y := c.Reshape(c.SubRow(rows, centre), x.Shape()...)
	if s.Teacher() {
		moved := c.Add(c.Scale(centre, t.Momentum), c.Scale(c.Mean(rows, 0), 1-t.Momentum))
		if moved = c.Reshape(moved, shape...); c.Err() == nil {
			s.Update("centre", moved)
		}
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	s.Publish(Uncentred, x)
	return y, nil
}
