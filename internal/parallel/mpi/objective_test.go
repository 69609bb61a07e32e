package mpi_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/expect"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/mpi"
	"tessera/internal/random"
	"tessera/internal/volume"

	"gorgonia.org/tensor"
)

func init() { ranks["objective"] = objective }

// objectives lists the models whose losses are compared, with mini-batch sizes that not every number of processes
// divides.
var objectives = []struct {
	model string
	batch int
}{{"shallow-nonneg-kl", 30}, {"simclr", 10}, {"asym-nonneg-kl", 6}}

// objective trains each model in float64 for 20 steps twice, by this process alone and by all processes together, and
// compares the losses.
func objective(g *mpi.Group) error {
	for _, o := range objectives {
		worst, err := twentySteps(g, o.model, o.batch)
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Printf("%s, batch %d, %d processes: 20 losses differ by at most %.1e of their value\n", o.model, o.batch, g.Size(), worst)
		}
		if !(worst <= 1e-12) {
			return errors.New("more than 1e-12")
		}
	}
	return nil
}

func twentySteps(g *mpi.Group, model string, batch int) (worst float64, err error) {
	p, err := programOf(model, batch)
	if err != nil {
		return 0, err
	}
	alone, err := compiled(p, nil)
	if err != nil {
		return 0, err
	}
	together, err := compiled(p, g)
	if err != nil {
		return 0, err
	}
	loss := slices.IndexFunc(p.Taps, func(t graph.Tap) bool { return t.Name == graph.Loss })
	for step := range 20 {
		if err := bind(p, alone, together, g, step); err != nil {
			return 0, err
		}
		if err := errors.Join(alone.Run(), together.Run()); err != nil {
			return 0, err
		}
		a, b := alone.Tap(loss)[0], together.Tap(loss)[0]
		worst = max(worst, math.Abs(a-b)/math.Abs(a))
		descend(p, alone)
		descend(p, together)
	}
	return worst, nil
}

func programOf(name string, batch int) (*graph.Program, error) {
	spec, err := tessera.Shipped().Model(name)
	if err != nil {
		return nil, err
	}
	m, err := graph.New(spec, []int{28, 28})
	if err != nil {
		return nil, err
	}
	return m.Program(graph.Request{Batch: batch, Training: true, Dtype: tensor.Float64})
}

// compiled compiles the program in float64 with its own copy of the parameters.
func compiled(p *graph.Program, g collective.Group) (*engine.Plan[float64], error) {
	m, err := p.Module()
	if err != nil {
		return nil, err
	}
	return engine.CompileShared[float64](m, nil, g)
}

// bind binds the images and the noise of one step to two plans. The plan alone gets the whole batch, the plan together
// gets the rows of this process.
func bind(p *graph.Program, alone, together *engine.Plan[float64], g *mpi.Group, step int) error {
	from, to := shard.Rows(p.Batch, g.Rank(), g.Size())
	for i, in := range p.Inputs {
		sampled := make([]float32, volume.Of(in.Shape))
		if in.Sampler != nil {
			in.Sampler.Sample(sampled, random.Stream(1, in.Name, uint64(step)))
		} else {
			r := random.Stream(2, "images", uint64(step))
			for j := range sampled {
				sampled[j] = float32(r.IntN(256)) / 255 * float32(r.IntN(2))
			}
		}
		values := lists.Map(sampled, func(v float32) float64 { return float64(v) })
		part := values
		if views := shard.Views(in.Shape, p.Batch); views > 0 && g.Size() > 1 {
			part = nil
			rest := len(values) / (views * p.Batch)
			for v := range views {
				part = append(part, values[(v*p.Batch+from)*rest:(v*p.Batch+to)*rest]...)
			}
		}
		if err := errors.Join(alone.Bind(i, values), together.Bind(i, part)); err != nil {
			return err
		}
	}
	return nil
}

// descend moves the parameters along the negative gradients and projects the weights of the decoder.
func descend(p *graph.Program, plan *engine.Plan[float64]) {
	for i, b := range p.Parameters {
		w := plan.Parameter(i)
		for j, d := range plan.Gradient(i) {
			if w[j] -= 0.05 * d; w[j] < 0 && strings.HasPrefix(b.Path, "decoder.") && strings.HasSuffix(b.Path, ".weight") {
				w[j] = 0
			}
		}
	}
}

func TestTwentyLossesAreThoseOfOneProcess(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		out, err := launch(t, n, "objective")
		expect.NoError(t, err, n, "processes")
		t.Log("\n" + out)
	}
}
