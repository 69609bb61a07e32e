package graph_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/metrics"
)

const boltzmannText = `
[model.machine]
encoder = [{ kind = "rbm", units = 3, sample_steps = 20 }]
decoder = [{ kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" }]
loss = [{ kind = "contrastive_divergence" }]

[model.persistent]
extends = "machine"
encoder = [{ kind = "rbm", units = 3, sample_steps = 1, chains = 2 }]

[model.bare]
extends = "machine"
decoder = []

[model.gaussian]
extends = "machine"
encoder = [{ kind = "rbm", units = 3, sample_steps = 20, visible = "gaussian", deviation = 0.5 }]
decoder = [{ kind = "tied", bias_of = "encoder.0.visible_bias" }]

[model.deep]
extends = "machine"
encoder = [{ kind = "rbm", units = 3 }, { kind = "rbm", units = 2, sample_steps = 20 }]
decoder = [
  { kind = "tied", weight = "encoder.1.weight", activation = "sigmoid", bias_of = "encoder.1.visible_bias" },
  { kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" },
]

[model.column]
column.noise = { kind = "normal", shape = [1] }
encoder = [{ kind = "rbm", units = 3, from = ["images", "noise"] }]
decoder = []
loss = [{ kind = "contrastive_divergence" }]

[model.inner]
extends = "bare"
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }, { kind = "rbm", units = 3 }]

[model.plain]
encoder = [{ kind = "dense", units = 3 }]
loss = [{ kind = "mse" }]
`

// machine returns a model of 2 x 2 images with large weights.
func machine(t *testing.T, name string) *graph.Model {
	t.Helper()
	m := model(t, boltzmannText, name, 2, 2)
	for k, p := range m.Parameters {
		for i := range p.Data {
			p.Data[i] = float32(1.5 * math.Sin(float64(7*k+3*i+1)))
		}
	}
	return m
}

// The code is P(h = 1 | v), and the decoder has the weights and the visible bias of the machine.
func TestTheDecoderOfAMachineBorrowsItsParameters(t *testing.T) {
	m := machine(t, "machine")
	paths := lists.Map(m.Parameters, func(p *graph.Parameter) string { return p.Path })
	if want := []string{"encoder.0.weight", "encoder.0.bias", "encoder.0.visible_bias"}; !slices.Equal(paths, want) {
		t.Fatalf("parameters %q, want %q", paths, want)
	}
	c := graph.NewCoder(m, tape.Backend{})
	codes, err := c.Encode(noise(3 * 4))
	fatal.If(t, err)
	near(t, "codes", codes, dense(t, m, "encoder.0", wide(noise(3*4)), sigmoid))
	outputs, err := c.Decode(codes)
	fatal.If(t, err)
	near(t, "outputs", outputs, tied(t, m, "encoder.0.weight", "encoder.0.visible_bias", wide(codes), sigmoid))
}

// The mean of many drawn images is the expectation of v by enumeration of all states of the hidden units.
func TestDrawnImagesHaveTheDistributionOfTheMachine(t *testing.T) {
	for _, name := range []string{"machine", "gaussian", "bare"} {
		c := graph.NewCoder(machine(t, name), tape.Backend{})
		b, err := c.Boltzmann()
		fatal.If(t, err)
		want, total := make([]float64, 4), 0.0
		for state := range 8 {
			variance, log := 1.0, 0.0
			if b.Deviation > 0 {
				variance = b.Deviation * b.Deviation
			}
			mean := make([]float64, 4)
			for i := range mean {
				mean[i] = float64(b.VisibleBias[i])
				sum := 0.0
				for j := range 3 {
					sum += float64(state>>j&1) * float64(b.Weight[i*3+j])
				}
				mean[i] += sum
				if b.Deviation > 0 {
					log += (sum*sum/2 + float64(b.VisibleBias[i])*sum) / variance
				} else {
					log += math.Log(1 + math.Exp(mean[i]))
					mean[i] = sigmoid(mean[i])
				}
			}
			for j := range 3 {
				log += float64(state>>j&1) * float64(b.Bias[j])
			}
			total += math.Exp(log)
			for i := range mean {
				want[i] += math.Exp(log) * mean[i]
			}
		}
		const n = 3000
		images, err := c.Draw(context.Background(), n, 1)
		fatal.If(t, err)
		got := make([]float64, 4)
		for i, v := range images {
			got[i%4] += float64(v) / n
		}
		for i := range want {
			expect.Near(t, got[i], want[i]/total, 0.05, name, "pixel", i, "has the mean")
		}
		few, err := c.Draw(context.Background(), 5, 1)
		if err != nil || !slices.Equal(few, images[:20]) {
			t.Errorf("%s: five images are not the first of many (%v)", name, err)
		}
	}
}

// A chain begins at a persistent one: with large weights, one step leaves it there.
func TestDrawnImagesBeginAtPersistentChains(t *testing.T) {
	m := machine(t, "persistent")
	w, _ := m.Parameter("encoder.0.weight")
	for i := range w.Data {
		w.Data[i] = 0
	}
	for i := range 3 { // unit i copies pixel i; the fourth pixel is free
		w.Data[i*3+i] = 60
	}
	for path, value := range map[string]float32{"encoder.0.bias": -30, "encoder.0.visible_bias": -30} {
		p, _ := m.Parameter(path)
		for i := range p.Data {
			p.Data[i] = value
		}
	}
	chains, _ := m.Parameter("encoder.0.chain")
	copy(chains.Data, []float32{1, 0, 1, 0, 0, 1, 0, 0})
	images, err := graph.NewCoder(m, tape.Backend{}).Draw(context.Background(), 20, 1)
	fatal.If(t, err)
	seen := map[float32]int{}
	for v := range slices.Chunk(images, 4) {
		for i, want := range [][]float32{{1, 0, 1, 0}, {0, 1, 0, 0}}[int(math.Round(float64(v[1])))] {
			expect.Near(t, v[i], want, 1e-3, v)
		}
		seen[float32(math.Round(float64(v[0])))]++
	}
	expect.Equal(t, len(seen), 2, "all images are of one chain", seen)
}

// In a deep belief net the last machine draws, and its samples are decoded.
func TestTheLastMachineOfADeepBeliefNetDraws(t *testing.T) {
	m := machine(t, "deep")
	c := graph.NewCoder(m, tape.Backend{})
	images, err := c.Draw(context.Background(), 64, 1)
	fatal.If(t, err)
	var codes []float32 // all states of the two units of the last machine
	for state := range 4 {
		codes = append(codes, float32(state&1), float32(state>>1))
	}
	decoded, err := c.Decode(codes)
	fatal.If(t, err)
	for v := range slices.Chunk(images, 4) {
		if !slices.ContainsFunc(slices.Collect(slices.Chunk(decoded, 4)), func(of []float32) bool { return slices.Equal(of, v) }) {
			t.Fatalf("%v is no decoded state of the last machine, %v", v, decoded)
		}
	}
	other, err := c.Stepped(3, -1)
	fatal.If(t, err)
	if again, err := other.Draw(context.Background(), 64, 1); err != nil || slices.Equal(again, images) {
		t.Errorf("three steps give the images of 20 (%v)", err)
	}
	expect.AnyError(t, expect.Err(c.Stepped(3, 0.5)), "eta")
}

func TestOnlyASingleMachineHasALikelihood(t *testing.T) {
	for _, name := range []string{"deep", "plain", "column"} {
		expect.Is(t, expect.Err(graph.NewCoder(machine(t, name), tape.Backend{}).Boltzmann()), metrics.ErrNoBoltzmann, name)
	}
	expect.Is(t, expect.Err(graph.NewCoder(nil, nil).Boltzmann()), graph.ErrNoModel)
}

func TestOnlyAStackOfMachinesIsADeepBeliefNet(t *testing.T) {
	for _, name := range []string{"machine", "gaussian", "plain", "column"} {
		expect.Is(t, expect.Err(graph.NewCoder(machine(t, name), tape.Backend{}).DeepBelief()), metrics.ErrNoDeepBelief, name)
	}
	expect.Is(t, expect.Err(graph.NewCoder(nil, nil).DeepBelief()), graph.ErrNoModel)
	m := machine(t, "deep")
	all, err := graph.NewCoder(m, tape.Backend{}).DeepBelief()
	if err != nil || len(all) != 2 {
		t.Fatalf("got %d machines (%v), want 2", len(all), err)
	}
	for i, b := range all {
		for name, got := range map[string][]float32{"weight": b.Weight, "bias": b.Bias, "visible_bias": b.VisibleBias} {
			p, err := m.Parameter(fmt.Sprintf("encoder.%d.%s", i, name))
			if err != nil || !slices.Equal(p.Data, got) {
				t.Errorf("%s of machine %d: got %v (%v)", name, i, got, err)
			}
		}
	}
}

// Without a decoder only the samples of a machine on the images are images, even if another one has as many visible units.
func TestSamplesOfAnInnerMachineAreNoImages(t *testing.T) {
	for _, name := range []string{"inner", "column"} {
		expect.Is(t, expect.Err(graph.NewCoder(machine(t, name), tape.Backend{}).Draw(context.Background(), 2, 1)), metrics.ErrNoSampler, name)
	}
}
