package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	vector "tessera/internal/engine/kernel"
	"tessera/internal/expect"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// Winograd's algorithm gives the same values as im2col for every geometry to which it applies, worthwhile or not, and
// for every range of units. Outputs and workspace contain NaN before the call.
func TestWinogradEqualsGatheredPatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		stride, batch := 1+r.IntN(4), 1+r.IntN(7)
		g := Convolution{In: [3]int{1 + r.IntN(11), 1 + r.IntN(11), 1 + r.IntN(9)}, Out: [3]int{2 + r.IntN(9), 2 + r.IntN(9), 1 + r.IntN(20)},
			Kernel: stride * (2 + r.IntN(2)), Stride: stride, Dilation: 1, Groups: 1, Top: r.IntN(14), Left: r.IntN(14)}
		w, l := newWinograd(g), newLowering(g)
		x, f := random(r, batch*g.In[0]*g.In[1]*g.In[2]), random(r, g.Kernel*g.Kernel*g.In[2]*g.Out[2])
		n := g.Out[0] * g.Out[1] * g.Out[2]
		want := make([]float64, batch*n)
		convolve(l, vector.Float64)(want, [][]float64{x, f}, make([]float64, l.scratch(batch)), 0, batch)

		from := r.IntN(batch)
		to := from + r.IntN(batch-from) + 1
		for i := range x { // other images must not be read
			if image := i / (len(x) / batch); image < from || image >= to {
				x[i] = math.NaN()
			}
		}
		filters, got := unknown(volume.Of(w.filters().Out)), unknown(batch*n)
		winogradFilters(w, vector.Float64)(filters, [][]float64{f}, nil, 0, points*points)
		convolveWinograd(w, vector.Float64)(got, [][]float64{x, filters}, unknown(w.scratch(batch)), from, to)
		for i, v := range got {
			inside := i >= from*n && i < to*n
			if inside && !(math.Abs(v-want[i]) <= 1e-11) || !inside && !math.IsNaN(v) {
				t.Fatalf("%+v of %d images, %d to %d: value %d is %v, of %v", g, batch, from, to, i, v, want[i])
			}
		}
	}
}

func random(r *rand.Rand, n int) []float64 {
	v := lists.Of(n, func(int) float64 { return r.NormFloat64() })
	return v
}

func unknown(n int) []float64 {
	v := lists.Of(n, func(int) float64 { return math.NaN() })
	return v
}

func TestWinogradIsTakenWhereItPays(t *testing.T) {
	for _, c := range []struct {
		in, out        [3]int
		kernel, stride int
		batch          int
		pays           bool
	}{
		{[3]int{14, 14, 64}, [3]int{7, 7, 128}, 4, 2, 8, true},
		{[3]int{14, 14, 64}, [3]int{7, 7, 128}, 4, 2, 7, false},
		{[3]int{14, 14, 64}, [3]int{14, 14, 64}, 3, 1, 2, true},
		{[3]int{4, 4, 512}, [3]int{2, 2, 512}, 4, 2, 64, false}, // more filters than output pixels
		{[3]int{14, 14, 8}, [3]int{7, 7, 128}, 4, 2, 1000, false},
		{[3]int{14, 14, 64}, [3]int{7, 7, 32}, 4, 2, 1000, false},
	} {
		w := newWinograd(Convolution{In: c.in, Out: c.out, Kernel: c.kernel, Stride: c.stride, Dilation: 1, Groups: 1, Top: 1, Left: 1})
		expect.Equal(t, w.pays(c.batch), c.pays, c.in, "to", c.out, c.batch, "images: pays", !c.pays)
	}
	for name, change := range map[string]func(g *Convolution){
		"one column":     func(g *Convolution) { g.Out[1] = 1 },
		"one tap":        func(g *Convolution) { g.Kernel = 2 },
		"four taps":      func(g *Convolution) { g.Kernel = 8 },
		"half a tap":     func(g *Convolution) { g.Kernel = 5 },
		"gaps":           func(g *Convolution) { g.Dilation = 2 },
		"several groups": func(g *Convolution) { g.Groups = 2 },
	} {
		g := Convolution{In: [3]int{14, 14, 64}, Out: [3]int{7, 7, 128}, Kernel: 4, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1}
		change(&g)
		if newWinograd(g) != nil {
			t.Errorf("%s: is computed by Winograd's algorithm", name)
		}
	}
}
