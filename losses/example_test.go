package losses_test

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// Energy is a user-defined loss: the mean over images of sum_j h_j² / 2. It consists of one struct, whose tagged fields are
// the settings, one expression and one registration. Its gradient, its checks and its line in `tessera list` need no
// further code.
type Energy struct {
	Scale float64 `toml:"scale" want:"> 0" doc:"unit of the activations"`
}

func init() {
	losses.Registry.Register("energy", "mean over images of sum h²/2", func() losses.Loss { return &Energy{Scale: 1} })
}

func (*Energy) On() string { return "code" }

func (*Energy) Reads() losses.Reads { return losses.Reads{On: true} }

func (e *Energy) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	perImage := c.Sum(c.Square(c.Scale(c.Do("on", v.On), 1/e.Scale)), 1)
	return c.Scale(c.Mean(perImage), 0.5), c.Err()
}

func Example_ownLoss() {
	l, _ := losses.Registry.Lookup("energy")
	code := []float64{1, 2, 0, 3} // two images, two units
	value, _, err := gradcheck.Evaluate(gradcheck.Loss(l.New(), code, nil, 2, 2))
	fmt.Println(value, err)
	// Output: [3.5] <nil>
}
