package losses

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// BYOL predicts, from one view of an image, the teacher's value for the other view. Let q_i and q'_i be the predictions of the
// two views of image i (the value `on`), and t_i and t'_i the teacher's values of the same views (the value `target`). For n
// images the term is
//
//	1/2n sum over i of (2 - 2 cos(q_i, t'_i)) + (2 - 2 cos(q'_i, t_i))
//
// The teacher is a moving average of the model, declared by [model.NAME.hook.teacher]; it runs in inference mode, and no
// gradient flows through it. The prediction is a head that reads the projection: the teacher does not need this head.
//
// Source: Grill et al., Bootstrap your own latent, 2020.
type BYOL struct {
	Target string `toml:"target" doc:"the teacher's value that is predicted: a head or the output of a layer"`
}

func init() {
	Registry.Register("byol", "prediction of the teacher's value of the other view (BYOL)", func() Loss { return &BYOL{Target: "projection"} })
}

// On implements [Loss]. The default is a head named prediction.
func (*BYOL) On() string { return "prediction" }

func (l *BYOL) Reads() Reads { return Reads{On: true, Views: true, Teacher: true, TeacherOf: l.Target} }

// Check returns an error if no value is named.
func (l *BYOL) Check() error {
	if l.Target == "" {
		return part.KeyErrorf("target", "got \"\", want the name of a value")
	}
	return nil
}

func (l *BYOL) Build(v Values) (*gorgonia.Node, error) {
	q, err := v.On()
	t, err2 := v.Teacher()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if a, b := q.Shape()[1], t.Shape()[1]; a != b {
		return nil, fmt.Errorf("predicts %d units, but the teacher's %q has %d: give the prediction as many", a, l.Target, b)
	}
	var c ops.Chain
	inverse := func(x *gorgonia.Node) *gorgonia.Node {
		return c.InvSqrt(c.Shift(c.Sum(c.Square(x), 1), shortest*shortest))
	}
	cosine := func(a, b *gorgonia.Node) *gorgonia.Node { // the mean over the images
		return c.Mean(c.Mul(c.Sum(c.Mul(a, b), 1), c.Mul(inverse(a), inverse(b))))
	}
	q1, q2 := views(&c, q)
	t1, t2 := views(&c, t)
	return c.From(2, c.Add(cosine(q1, t2), cosine(q2, t1))), c.Err()
}
