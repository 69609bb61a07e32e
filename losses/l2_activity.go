package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// L2Activity is the mean over the batch of sum_j h_j², the squared l2 norm of each image's code. It shrinks every unit in
// proportion to its activation, 2 h_j, where [L1] subtracts the same from all active units: l1 selects units, l2_activity
// makes all of them small. [L2] is another term: the distance of mean activations from a target.
type L2Activity struct{ onCode }

func init() {
	Registry.Register("l2_activity", "mean over samples of the squared l2 norm of the code", func() Loss { return &L2Activity{} })
}

func (*L2Activity) Build(v Values) (*gorgonia.Node, error) {
	code, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	return c.Scale(c.Sum(c.Square(code)), 1/float64(code.Shape()[0])), c.Err()
}
