package laws_test

import (
	"runtime/metrics"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/laws"
	"tessera/losses"
)

// wrongLoss is the mean square of a value, with one fault.
type wrongLoss struct {
	on       string
	penalise func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node
}

func (w wrongLoss) On() string { return w.on }

func (w wrongLoss) Reads() losses.Reads { return losses.Reads{On: true} }

func (w wrongLoss) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return w.penalise(&c, c.Do("on", v.On)), c.Err()
}

// wrongReconstruction is the root of the mean squared error, which is not a mean over images.
type wrongReconstruction struct{}

func (wrongReconstruction) On() string { return "output" }

func (wrongReconstruction) Reads() losses.Reads {
	return losses.Reads{On: true, Against: losses.Images}
}

func (wrongReconstruction) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sqrt(c.Mean(c.Square(c.Sub(c.Do("on", v.On), c.Do("images", v.Against))))), c.Err()
}

func TestWrongLossesBreakTheirLaw(t *testing.T) {
	right := func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node { return c.Mean(c.Square(code)) }
	faulty := map[string]losses.Loss{
		"is applied by default to a value that it reads": wrongLoss{"atoms", right},
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
		"is a mean over images if it says so": wrongReconstruction{},
		"has the right gradients": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return right(c, wrongly(c, code, meddling{name: "steep", slope: doubled}))
		}},
		"has no memory of earlier runs": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return right(c, wrongly(c, code, meddling{name: "hoarding", do: afterOneRun(add)}))
		}},
		"gives on two processes what it gives on one": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return right(c, lengthwise(c, code))
		}},
		"gives the same on both back ends": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return right(c, wrongKernel(c, code))
		}},
		"gives in float32 what it gives in float64, rounded": wrongLoss{"code", func(c *ops.Chain, code *gorgonia.Node) *gorgonia.Node {
			return right(c, onlyIn(tensor.Float32, code, c.Shift(code, 0.01)))
		}},
	}
	if broken := laws.Broken(laws.Loss, func() losses.Loss { return wrongLoss{"code", right} }); len(broken) > 0 {
		t.Fatalf("the mean square breaks %q", broken)
	}
	parts := map[string]func() losses.Loss{}
	for law, l := range faulty {
		parts[law] = func() losses.Loss { return l }
	}
	mustBreak(t, laws.Loss, parts)
}

// gcPercent returns the setting of the garbage collector without changing it.
func gcPercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// If a test changed this setting, tests that run in parallel would restore the wrong value.
func TestAKitLeavesTheGarbageCollectorAlone(t *testing.T) {
	before, tested := gcPercent(), 0
	laws.Loss.Test(func() losses.Loss {
		if tested++; gcPercent() != before {
			t.Errorf("GOGC is %d while parts are tested, want %d", gcPercent(), before)
		}
		return &losses.MSE{}
	})
	if tested == 0 {
		t.Error("nothing was tested")
	}
}

// counted compares the first four of eight values with whole numbers, and reads two values that a layer publishes, of which one
// has two numbers.
type counted struct{ published bool }

func (c counted) On() string { return "code" }

func (c counted) Reads() losses.Reads {
	if c.published {
		return losses.Reads{Published: []string{"mean", "pair"}}
	}
	return losses.Reads{On: true, Against: losses.Images}
}

func (counted) CheckAgainst(int, int) error { return nil }

func (o counted) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	if o.published {
		pair := c.Do("pair", func() (*gorgonia.Node, error) { return v.Published("pair") })
		return c.Mean(c.Square(pair)), c.Err()
	}
	x := c.Do("on", v.On)
	difference := c.Sub(c.Columns(x, 0, 4), c.Do("against", v.Against))
	return c.Add(c.Mean(c.Square(difference)), c.Mean(c.Square(c.Columns(x, 4, 4)))), c.Err()
}

func TestTheLawsTakeLossesOfWholeNumbersAndOfOtherSizes(t *testing.T) {
	laws.Check(t, laws.LossOf(laws.Inputs{On: []int{8}, Against: 4, Whole: 3}), func() losses.Loss { return counted{} })
	laws.Check(t, laws.LossOf(laws.Inputs{On: []int{8}, Published: map[string][]int{"pair": {2}}}), func() losses.Loss { return counted{published: true} })
	if len(laws.Broken(laws.Loss, func() losses.Loss { return counted{} })) == 0 {
		t.Error("eight values of six obey the laws")
	}
}
