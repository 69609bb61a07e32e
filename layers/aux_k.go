package layers

import (
	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var (
	_ Publisher = (*AuxK)(nil)
	_ Reader    = (*AuxK)(nil)
	_ Passing   = (*AuxK)(nil)
)

// AuxK gives dead units something to do. It is the identity of a code; place it after the layer that selects the active units. A
// unit is dead after `after` samples in a row for which it was 0; the state idle, of shape (units), counts them, up to the last
// batch. The layer publishes under the name spare the `k` largest positive values of dead units among the values `of`, which no
// selection has reached yet; the others are 0. The loss aux_k makes their atoms reconstruct what the other units leave over. If
// no unit is dead, all are 0.
//
// Source: Gao et al., Scaling and evaluating sparse autoencoders, 2024.
type AuxK struct {
	K     int    `toml:"k" want:"> 0" doc:"number of dead units that are used for one sample"`
	After int    `toml:"after" want:"> 0" doc:"number of samples after which an inactive unit is dead"`
	Of    string `toml:"of" required:"true" doc:"name of the values of the units before the selection, such as encoder.0"`

	of []int // shape of the value `of`
}

func init() {
	Registry.Register("aux_k", "identity that offers dead units to the loss aux_k", func() Layer { return &AuxK{K: 512, After: 100_000} })
}

// Passes implements [Passing].
func (*AuxK) Passes() {}

func (l *AuxK) Reads() []Reading { return []Reading{{Key: "of", Name: l.Of, Shape: l.of}} }

func (l *AuxK) Receive(shapes [][]int) { l.of = shapes[0] }

func (l *AuxK) OutputShape(in []int) ([]int, error) {
	n := volume.Of(in)
	if l.of != nil && volume.Of(l.of) != n {
		return nil, part.KeyErrorf("of", "%q has %d values, want one for each of the %d units", l.Of, volume.Of(l.of), n)
	}
	return []int{n}, nil
}

func (*AuxK) Parameters(in []int) []Parameter {
	return []Parameter{{Name: "idle", Shape: []int{volume.Of(in)}, Init: &Zeros{}, FanIn: 1, FanOut: 1, State: true}}
}

func (*AuxK) Publishes(in []int) []Value {
	return []Value{{Name: "spare", Shape: []int{volume.Of(in)}}}
}

func (l *AuxK) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	x = c.Flatten(x)
	idle := s.Parameter("idle")
	dead := c.Lt(c.Neg(idle), 0.5-float64(l.After))
	of := c.MulRow(c.Ramp(c.Flatten(s.Value(l.Of)), 1, 0), dead)
	spare := c.Do("largest", func() (*gorgonia.Node, error) { return ops.TopK(of, l.K) })
	silent := c.Lt(c.Sum(c.Abs(c.Stop(x)), 0), tiniest)
	next := c.Mul(silent, c.Shift(idle, float64(x.Shape()[0])))
	if c.Err() == nil {
		s.Publish("spare", spare)
		s.Update("idle", next)
	}
	return x, c.Err()
}

// tiniest is far below the sum of the activities of a unit that is active.
const tiniest = 1e-30

func (*AuxK) OutputRange(in Interval) Interval { return in }
