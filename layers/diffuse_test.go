package layers_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// signalOf returns a(t) by its definition.
func signalOf(schedule string, t float64) float64 {
	if schedule == "linear" {
		return math.Exp(-(0.1*t + 9.95*t*t) / 2)
	}
	return math.Cos(math.Pi / 2 * t)
}

func TestDiffuseMixesAnImageWithNoise(t *testing.T) {
	for _, schedule := range []string{"cosine", "linear"} {
		l := fresh(t, "diffuse", map[string]any{"noise": "other image", "level": "number", "schedule": schedule})()
		x := []float64{0, 0.25, 0.5, 0.75, 1, 0.1, 0.9, 0.3, 0.2, 0.6, 0.8, 0.4}
		g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return gradcheck.Layer(l, x, 2, []int{2, 3}, false)(b)
		}, false)
		fatal.If(t, err)
		level, noise := g.Leaf("value.number").Values, g.Leaf("value.other image").Values
		copy(level, []float64{0.2, 0.7})
		fatal.If(t, g.Run())
		for i, got := range g.Output() {
			a := signalOf(schedule, level[i/6])
			if want := a*(2*x[i]-1) + math.Sqrt(1-a*a)*noise[i]; !(math.Abs(got-want) < 1e-12) {
				t.Errorf("%s: value %d is %v, want %v", schedule, i, got, want)
			}
		}
		_ = g.Close()
	}
}

// gaussian is a model of numbers from N(0, stddev²) whose estimate of the noise is exact.
type gaussian struct {
	layers.Generation // for methods that the layer does not call
	schedule          string
	stddev            float64
	streams           []*rand.Rand
	steps             int // number of estimates
}

func (g *gaussian) Path() string          { return "encoder.0" }
func (g *gaussian) Streams() []*rand.Rand { return g.streams }
func (g *gaussian) Size(string) int       { return 1 }

func (g *gaussian) Value(_ string, given map[string][]float32) ([]float32, error) {
	g.steps++
	estimate := make([]float32, len(g.streams))
	for i, y := range given["encoder.0"] {
		a := signalOf(g.schedule, float64(given["level"][i]))
		estimate[i] = float32(math.Sqrt(1-a*a) * float64(y) / (a*a*g.stddev*g.stddev + 1 - a*a))
	}
	return estimate, nil
}

// With the exact estimate of the noise, both samplers draw from the distribution of the data.
func TestDiffuseDrawsFromTheDataWithAnExactEstimate(t *testing.T) {
	const n, steps, stddev = 3000, 300, 0.25
	for _, schedule := range []string{"cosine", "linear"} {
		for _, eta := range []float64{0, 1} {
			l := fresh(t, "diffuse", map[string]any{"schedule": schedule})().(layers.Stepwise)
			stepped, err := l.Stepped(steps, eta)
			fatal.If(t, err)
			g := &gaussian{schedule: schedule, stddev: stddev}
			for i := range n {
				g.streams = append(g.streams, random.Stream(1, "draw", uint64(i)))
			}
			y, err := stepped.Generate(g)
			fatal.If(t, err)
			mean, square := 0.0, 0.0
			for _, v := range y {
				x := 2*float64(v) - 1
				mean, square = mean+x/n, square+x*x/n
			}
			if got := math.Sqrt(square); math.Abs(mean) > 0.02 || math.Abs(got-stddev) > 0.06*stddev || g.steps != steps {
				t.Errorf("%s, eta %v: mean %.4f, deviation %.4f in %d steps, want 0, %v in %d", schedule, eta, mean, got, g.steps, stddev, steps)
			}
		}
	}
	l := fresh(t, "diffuse", nil)().(layers.Stepwise)
	for _, wrong := range []struct {
		steps int
		eta   float64
	}{{-1, 0}, {1, 1.5}} {
		expect.AnyError(t, expect.Err(l.Stepped(wrong.steps, wrong.eta)), "no error for", wrong)
	}
}
