package graph_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

// contracted is a training program in float64 whose only loss term is a contractive penalty.
type contracted struct {
	*graph.Program
	ir.Runner[float64]
	tap map[string]int
}

// encoders lists encoders of 12 pixels. The penalty is exact for one dense layer, and estimated for the other encoders.
var encoders = map[string]string{
	"sigmoid":     `[{ kind = "dense", units = 5, activation = "sigmoid" }]`,
	"relu":        `[{ kind = "flatten" }, { kind = "dense", units = 5, activation = "relu" }]`,
	"leaky relu":  `[{ kind = "dense", units = 5, bias = false }, { kind = "leaky_relu" }]`,
	"elu":         `[{ kind = "dense", units = 5, activation = "elu" }]`,
	"softplus":    `[{ kind = "dense", units = 5 }, { kind = "softplus", sharpness = 2.0 }]`,
	"tanh":        `[{ kind = "dense", units = 5, activation = "tanh" }, { kind = "sigmoid" }]`,
	"linear":      `[{ kind = "dense", units = 5 }]`,
	"softmax":     `[{ kind = "dense", units = 5, activation = "softmax" }]`,
	"max plus":    `[{ kind = "max_plus", units = 5 }, { kind = "tanh" }]`,
	"deep":        `[{ kind = "dense", units = 7, activation = "tanh" }, { kind = "dense", units = 6, activation = "elu" }, { kind = "dense", units = 4, activation = "sigmoid" }]`,
	"rectified":   `[{ kind = "dense", units = 9, activation = "relu" }, { kind = "dense", units = 4, activation = "softplus" }]`,
	"noisy":       `[{ kind = "masking_noise", rate = 0.3 }, { kind = "dense", units = 4, activation = "sigmoid" }]`,
	"batch norm":  `[{ kind = "dense", units = 4 }, { kind = "batch_norm" }, { kind = "sigmoid" }]`,
	"convolution": `[{ kind = "conv2d", filters = 2, stride = 2, activation = "leaky_relu" }, { kind = "conv2d", filters = 3, kernel = 2 }, { kind = "batch_norm" }, { kind = "elu" }, { kind = "dense", units = 4, activation = "sigmoid" }]`,
}

var exact = []string{"sigmoid", "relu", "leaky relu", "elu", "softplus", "tanh", "linear"}

const contractedImages = 3

func contractive(t *testing.T, encoder string, probes int) contracted {
	t.Helper()
	m := model(t, fmt.Sprintf("[model.m]\nencoder = %s\nloss = [{ kind = \"mse\", weight = 0.0 }, { kind = \"contractive\", probes = %d }]\n",
		encoder, probes), "m", 3, 4)
	p, err := m.Program(graph.Request{Batch: contractedImages, Training: true, Dtype: tensor.Float64})
	fatal.If(t, err)
	r, err := tape.Compile[float64](p)
	fatal.If(t, err)
	t.Cleanup(func() { r.Close() })
	c := contracted{p, r, map[string]int{}}
	for i, tap := range p.Taps {
		c.tap[tap.Name] = i
	}
	c.bind(t, c.images(), 0)
	return c
}

func (c contracted) images() []float64 {
	x := make([]float64, contractedImages*12)
	for i, v := range noise(len(x)) {
		x[i] = float64(v)
	}
	return x
}

// bind binds images and the noise of one step.
func (c contracted) bind(t *testing.T, images []float64, step int) {
	t.Helper()
	for i, in := range c.Inputs {
		values := images
		if in.Sampler != nil {
			drawn := make([]float32, tensor.Shape(in.Shape).TotalSize())
			in.Sampler.Sample(drawn, random.Stream(5, in.Name, uint64(step)))
			values = make([]float64, len(drawn))
			for j, v := range drawn {
				values[j] = float64(v)
			}
		}
		fatal.If(t, c.Bind(i, values))
	}
}

// run runs the program and returns a tap.
func (c contracted) run(t *testing.T, name string) []float64 {
	t.Helper()
	fatal.If(t, c.Run())
	return slices.Clone(c.Tap(c.tap[name]))
}

// jacobian returns the Jacobian of all codes of the batch with respect to all pixels, by central differences:
// [pixel][unit].
func (c contracted) jacobian(t *testing.T) [][]float64 {
	t.Helper()
	const h = 1e-5
	x := c.images()
	var rows [][]float64
	for i := range x {
		var codes [2][]float64
		for side, move := range []float64{h, -h} {
			moved := slices.Clone(x)
			moved[i] += move
			c.bind(t, moved, 0)
			codes[side] = c.run(t, "code")
		}
		row := lists.Of(len(codes[0]), func(j int) float64 { return (codes[0][j] - codes[1][j]) / (2 * h) })
		rows = append(rows, row)
	}
	c.bind(t, x, 0)
	return rows
}

func TestContractivePenaltyEqualsTheNumericJacobian(t *testing.T) {
	for name, encoder := range encoders {
		t.Run(name, func(t *testing.T) {
			const probes = 2
			c := contractive(t, encoder, probes)
			var vectors [][]float64 // random vectors of the estimate, as bound
			for _, in := range c.Inputs {
				if len(in.Name) > 5 && in.Name[:5] == "loss." {
					drawn := make([]float32, tensor.Shape(in.Shape).TotalSize())
					in.Sampler.Sample(drawn, random.Stream(5, in.Name, 0))
					v := make([]float64, len(drawn))
					for j := range drawn {
						if v[j] = float64(drawn[j]); math.Abs(v[j]) != 1 {
							t.Fatalf("%s: got %v, want +1 or -1", in.Name, v[j])
						}
					}
					vectors = append(vectors, v)
				}
			}
			want, jacobian := 0.0, c.jacobian(t)
			if slices.Contains(exact, name) {
				if len(vectors) > 0 {
					t.Fatalf("%d random vectors for an encoder of one layer", len(vectors))
				}
				for _, row := range jacobian {
					for _, d := range row {
						want += d * d / contractedImages
					}
				}
			} else if len(vectors) != probes {
				t.Fatalf("got %d random vectors, want %d", len(vectors), probes)
			}
			for _, v := range vectors {
				for _, row := range jacobian {
					dot := 0.0
					for j, d := range row {
						dot += d * v[j]
					}
					want += dot * dot / contractedImages / probes
				}
			}
			expect.Near(t, c.run(t, "loss.contractive")[0], want, 1e-7*want)
		})
	}
}

// The expected value of the estimate is the squared norm.
func TestHutchinsonsEstimateAveragesToTheNorm(t *testing.T) {
	c := contractive(t, encoders["deep"], 8)
	want := 0.0
	for _, row := range c.jacobian(t) {
		for _, d := range row {
			want += d * d / contractedImages
		}
	}
	const draws = 400
	mean := 0.0
	for step := range draws {
		c.bind(t, c.images(), step)
		mean += c.run(t, "loss.contractive")[0] / draws
	}
	expect.Near(t, mean, want, 0.03*want, "mean of", draws, "estimates", mean, "norm")
}

// The gradients of the penalty with respect to every parameter are second derivatives. They are compared with
// differences, for fixed random vectors.
func TestGradientOfTheContractivePenalty(t *testing.T) {
	for name, encoder := range encoders {
		t.Run(name, func(t *testing.T) {
			c := contractive(t, encoder, 2)
			c.run(t, "loss")
			gradients := lists.Of(len(c.Parameters), func(i int) []float64 { return slices.Clone(c.Gradient(i)) })
			reached, step := 0.0, 1
			if testing.Short() {
				step = 4
			}
			for i, b := range c.Parameters {
				largest, difference := 0.0, 0.0
				for j := 0; j < len(gradients[i]); j += step {
					numeric := c.slope(t, c.Parameter(i), j)
					largest = max(largest, math.Abs(numeric), math.Abs(gradients[i][j]))
					difference = max(difference, math.Abs(numeric-gradients[i][j]))
				}
				reached = max(reached, largest)
				if difference > 1e-6*largest+1e-9 {
					t.Errorf("%s: differs from the central differences by %g; the largest of them is %g", b.Path, difference, largest)
				}
			}
			if reached == 0 {
				t.Error("no parameter has a gradient")
			}
		})
	}
}

// slope returns the central difference of the loss with respect to w[j].
func (c contracted) slope(t *testing.T, w []float64, j int) float64 {
	const h = 1e-5
	at := w[j]
	defer func() { w[j] = at }()
	w[j] = at + h
	up := c.run(t, "loss")[0]
	w[j] = at - h
	return (up - c.run(t, "loss")[0]) / (2 * h)
}

// The engine agrees with the reference, including second derivatives.
func TestEngineAgreesOnTheContractivePenalty(t *testing.T) {
	team := team.New(2)
	defer team.Close()
	for name, encoder := range encoders {
		t.Run(name, func(t *testing.T) {
			c := contractive(t, encoder, 2)
			p := contractive(t, encoder, 2).Program // a separate program, because Compile extends the graph of the reference
			m, err := p.Module()
			fatal.If(t, err)
			plan, err := engine.Compile[float64](m, team)
			fatal.If(t, err)
			defer plan.Close()
			e := contracted{p, plan, c.tap}
			e.bind(t, e.images(), 0)
			if want, got := c.run(t, "loss")[0], e.run(t, "loss")[0]; math.Abs(got-want) > 1e-12*want {
				t.Errorf("loss: got %v, want %v", got, want)
			}
			largest := 0.0
			for i := range c.Parameters {
				for _, g := range c.Gradient(i) {
					largest = max(largest, math.Abs(g))
				}
			}
			for i, b := range c.Parameters {
				want, got := c.Gradient(i), e.Gradient(i)
				for j := range want {
					if math.Abs(got[j]-want[j]) > 1e-12*largest {
						t.Fatalf("%s: gradient %d: got %v, want %v", b.Path, j, got[j], want[j])
					}
				}
			}
		})
	}
}
