package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// L1 is the mean over the batch of sum_j |h_j|, the l1 norm of each image's code. The derivative at 0 is 0.
type L1 struct{ onCode }

func init() {
	Registry.Register("l1", "mean over samples of the l1 norm of the code", func() Loss { return &L1{} })
}

func (*L1) Build(v Values) (*gorgonia.Node, error) {
	code, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	return c.Scale(c.Sum(c.Abs(code)), 1/float64(code.Shape()[0])), c.Err()
}
