package losses

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// DINO predicts, from one view of an image, the distribution over K units that the teacher computes from the other view. Let z_i
// and z'_i be the values of the two views of image i, and t_i and t'_i those of the teacher, from which the layer teacher_centre
// has subtracted the moving average of the teacher's values. With P = softmax(t / teacher_temperature) for the teacher and
// Q = softmax(z / temperature) for the model, the term is the cross entropy, in nats,
//
//	-1/2n sum over i and k of P(t'_i)_k log Q(z_i)_k + P(t_i)_k log Q(z'_i)_k
//
// The low temperature sharpens the teacher's distributions, which prevents equal probabilities of all units; the centre prevents
// that one unit has them all. Both fail if the values shrink: let the last dense layer read normalised values (layer_norm; the
// source has unit vectors), else the term soon stays at log K, with equal probabilities. The value `on` ends in a layer
// teacher_centre, whose published value uncentred is z. The teacher is a moving average of the model, declared by
// [model.NAME.hook.teacher]; it runs in inference mode, and no gradient flows through it. Differences from the source: two views
// instead of several crops, and a constant temperature of the teacher.
//
// Source: Caron et al., Emerging properties in self-supervised vision transformers, 2021.
type DINO struct {
	Temperature        float64 `toml:"temperature" want:"> 0" doc:"divides the values of the model"`
	TeacherTemperature float64 `toml:"teacher_temperature" want:"> 0" doc:"divides the centred values of the teacher; less than temperature"`
}

func init() {
	Registry.Register("dino", "prediction of the teacher's distribution for the other view (DINO)", func() Loss {
		return &DINO{Temperature: 0.1, TeacherTemperature: 0.04}
	})
}

// On implements [Loss]. The default is a head named projection.
func (*DINO) On() string { return "projection" }

func (*DINO) Reads() Reads {
	return Reads{Views: true, Teacher: true, Published: []string{"uncentred"}, PublishedBy: "teacher_centre"}
}

// Check returns an error for a teacher whose distributions are not sharper than those of the model.
func (l *DINO) Check() error {
	if l.TeacherTemperature >= l.Temperature {
		return part.KeyErrorf("teacher_temperature", "got %v, want less than the temperature %v", l.TeacherTemperature, l.Temperature)
	}
	return nil
}

func (l *DINO) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.Published("uncentred")
	t, err2 := v.Teacher()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if a, b := z.Shape()[1], t.Shape()[1]; a != b {
		return nil, fmt.Errorf("got %d values of the model and %d of the teacher, want equal numbers", a, b)
	}
	var c ops.Chain
	q, p := c.LogSoftmax(c.Scale(z, 1/l.Temperature)), c.Softmax(c.Scale(t, 1/l.TeacherTemperature))
	agreement := func(a, b *gorgonia.Node) *gorgonia.Node { return c.Mean(c.Sum(c.Mul(a, b), 1)) }
	q1, q2 := views(&c, q)
	p1, p2 := views(&c, p)
	return c.Scale(c.Add(agreement(p2, q1), agreement(p1, q2)), -0.5), c.Err()
}
