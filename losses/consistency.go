package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Consistency penalises the distance of a value from the teacher's value for the same images. It is the mean over images and
// units of (v - v')², where v is the value `on`, and v' is the teacher's value for the same images. The teacher is a moving
// average of the model. No gradient flows through v'. The teacher runs in inference mode, without noise and with running
// averages. The term thus makes the model's value robust to the noise of its layers. [model.NAME.hook.teacher] declares the
// teacher.
//
// Source: Tarvainen and Valpola, Mean teachers are better role models, NeurIPS 2017.
type Consistency struct{}

func init() {
	Registry.Register("consistency", "mean squared distance between a value and the teacher's", func() Loss { return &Consistency{} })
}

func (Consistency) On() string   { return Code }
func (Consistency) Reads() Reads { return Reads{On: true, Teacher: true} }

func (Consistency) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	own, teacher := c.Do("on", v.On), c.Do("teacher", v.Teacher)
	return c.Mean(c.Square(c.Sub(own, teacher))), c.Err()
}
