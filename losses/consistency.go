package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Consistency draws a value towards that of the teacher for the same images: the mean over images and units of (v - v')², v the
// value that `on` names and v' what the teacher, a moving average of the model, computes in its place. No gradient flows
// through v'. The teacher works as at inference, without noise and with running averages, so that the term makes the model
// give the same whatever noise its own layers add. The model declares the teacher by [model.NAME.hook.teacher].
//
// Source: Tarvainen and Valpola, Mean teachers are better role models, NeurIPS 2017.
type Consistency struct{}

func init() {
	Registry.Register("consistency", "mean squared distance between a value and the teacher's", func() Loss { return &Consistency{} })
}

// On implements [Loss].
func (Consistency) On() string { return Code }

// Reads implements [Loss].
func (Consistency) Reads() Reads { return Reads{On: true, Teacher: true} }

// Build implements [Loss].
func (Consistency) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	own, teacher := c.Do("on", v.On), c.Do("teacher", v.Teacher)
	return c.Mean(c.Square(c.Sub(own, teacher))), c.Err()
}
