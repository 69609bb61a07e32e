package layers_test

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// adapted applies the rule of the study to one unit with inputs g. It returns the activations and the next gain and bias.
func adapted(g []float64, gain, bias, mean, rate float64) (h []float64, nextGain, nextBias float64) {
	n := float64(len(g))
	nextGain, nextBias = gain+rate/gain, bias
	for _, v := range g {
		y := 1 / (1 + math.Exp(-gain*v-bias))
		d := rate * (1 - (2+1/mean)*y + y*y/mean)
		h, nextGain, nextBias = append(h, y), nextGain+v*d/n, nextBias+d/n
	}
	return h, nextGain, nextBias
}

func TestPlasticityEqualsPlainLoops(t *testing.T) {
	l := &layers.Plasticity{Mean: 0.3, Rate: 0.05}
	for _, c := range []struct {
		batch, units int
		in           []int
	}{{5, 4, []int{4}}, {1, 4, []int{4}}, {3, 2, []int{2, 3, 2}}, {2, 1, []int{3, 2}}} {
		places := 1
		for _, d := range c.in {
			places *= d
		}
		places /= c.units
		x := drawnNormal(c.batch*places*c.units, "x")
		gain, bias := []float64{1, 0.5, 2, 1.5}[:c.units], []float64{-3, 0, 1, -0.5}[:c.units]
		for _, training := range []bool{true, false} {
			g, err := gradcheck.Compile(gradcheck.Layer(l, x, c.batch, c.in, training), false)
			fatal.If(t, err)
			copy(g.Leaf("gain").Values, gain)
			copy(g.Leaf("bias").Values, bias)
			fatal.If(t, g.Run())
			want, gains, biases := make([]float64, len(x)), slices.Clone(gain), slices.Clone(bias)
			for unit := range c.units {
				var own []float64
				for i := unit; i < len(x); i += c.units {
					own = append(own, x[i])
				}
				h, nextGain, nextBias := adapted(own, gain[unit], bias[unit], l.Mean, l.Rate)
				for i, v := range h {
					want[i*c.units+unit] = v
				}
				gains[unit], biases[unit] = nextGain, nextBias
			}
			wantNear(t, "activations", g.Output(), want, 1e-12)
			if training {
				wantNear(t, "next gain", g.Update("gain"), gains, 1e-12)
				wantNear(t, "next bias", g.Update("bias"), biases, 1e-12)
			} else if g.Update("gain") != nil || g.Update("bias") != nil {
				t.Error("gain or bias change at inference")
			}
			fatal.If(t, g.Close())
		}
	}
}

// Repeated updates on the same inputs bring every unit's mean activation near the target.
func TestPlasticityBringsMeanActivationsNearTheTarget(t *testing.T) {
	const mean, batch = 0.2, 200
	x := drawnNormal(batch*2, "x")
	for i := range x {
		x[i] = (x[i] + float64(i%2)) * 3 // two units, one of them mostly on
	}
	l := &layers.Plasticity{Mean: mean, Rate: 0.02, Gain: 1, Bias: 0}
	g, err := gradcheck.Compile(gradcheck.Layer(l, x, batch, []int{2}, true), false)
	fatal.If(t, err)
	defer g.Close()
	for range 5000 {
		fatal.If(t, g.Run())
		copy(g.Leaf("gain").Values, g.Update("gain"))
		copy(g.Leaf("bias").Values, g.Update("bias"))
	}
	var means [2]float64
	for i, h := range g.Output() {
		means[i%2] += h / batch
	}
	for unit, got := range means {
		expect.Near(t, got, mean, 0.03, "unit", unit, "mean activation", got, "want about")
	}
}

func drawnNormal(n int, name string) []float64 {
	x := make([]float64, n)
	for i, v := range normal(n, name) {
		x[i] = float64(v)
	}
	return x
}
