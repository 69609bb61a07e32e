package laws_test

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/laws"
	"tessera/losses"
)

// wrongLoss is the mean square of the code with a mistake.
type wrongLoss struct {
	on       string
	penalise func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node
}

func (w wrongLoss) On() string { return w.on }

func (w wrongLoss) Penalise(code *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return w.penalise(&c, code), c.Err()
}

// wrongReconstruction is the root of the mean squared error: a mean over no images.
type wrongReconstruction struct{}

func (wrongReconstruction) On() string { return "output" }

func (wrongReconstruction) Compare(output, target *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sqrt(c.Mean(c.Square(c.Sub(output, target)))), c.Err()
}

func TestWrongLossesBreakTheirLaw(t *testing.T) {
	right := func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node { return c.Mean(c.Square(code)) }
	mistakes := map[string]losses.Loss{
		"is taken on one thing, and by default on that": wrongLoss{"output", right},
		"is a scalar": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return c.Mean(c.Square(code), 0)
		}},
		"is finite at the edges of its domain, gradients included": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return c.Sqrt(c.Mean(c.Square(code)))
		}},
		"does not change when the batch is doubled": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return c.Sum(c.Square(code))
		}},
		"does not depend on the order of the images": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return c.Mean(c.Do("row", func() (*gorgonia.Node, error) { return gorgonia.Slice(code, gorgonia.S(0)) }))
		}},
		"is a mean over images where it sees them": wrongReconstruction{},
	}
	if broken := laws.Broken(laws.Loss, func() losses.Loss { return wrongLoss{"code", right} }); len(broken) > 0 {
		t.Fatalf("the mean square breaks %q", broken)
	}
	for _, law := range laws.Loss {
		l, ok := mistakes[law.Name]
		if !ok {
			t.Errorf("no loss breaks %q", law.Name)
			continue
		}
		if broken := laws.Broken(laws.Loss, func() losses.Loss { return l }); !slices.Contains(broken, law.Name) {
			t.Errorf("a wrong loss obeys %q; it breaks %q", law.Name, broken)
		}
	}
}
