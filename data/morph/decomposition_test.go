package morph

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

func TestDecompositionsAddUpToTheImage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, shape := range testShapes {
		for _, method := range []Method{AMD, PADO} {
			for _, original := range []bool{false, true} {
				images := randomImages(r, 3, shape)
				d := Decomposition{Method: method, Levels: 4, Start: 1, Step: 1, Original: original}
				values, out, err := d.Apply(images, shape)
				fatal.If(t, err)
				checkSum(t, d, images, values, out, shape)
			}
		}
	}
}

func checkSum(t *testing.T, d Decomposition, images, values []float32, out, shape []int) {
	t.Helper()
	g, _ := newGrid(shape)
	groups := d.Groups()
	if want := []int{g.height, g.width, g.channels * groups}; !slices.Equal(out, want) {
		t.Fatalf("shape %v, want %v", out, want)
	}
	first := groups - d.Levels - 1
	for i, x := range images {
		pixel, c := i/g.channels, i%g.channels
		sum := 0.0
		for group := range groups {
			v := values[(pixel*groups+group)*g.channels+c]
			switch {
			case group < first && v != x:
				t.Fatalf("%s %v: the original is %g, want %g", d.Method, shape, v, x)
			case group >= first:
				sum += float64(v)
			}
			if d.Method == PADO && group >= first && group < groups-1 && v < 0 {
				t.Fatalf("pado %v: residual %g < 0", shape, v)
			}
		}
		if math.Abs(sum-float64(x)) > 1e-5 {
			t.Fatalf("%s %v: channels add up to %g, want %g", d.Method, shape, sum, x)
		}
	}
}

// Every channel is compared with its definition, computed by plain loops.
func TestDecompositionsEqualTheirDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	g := grid{10, 9, 1}
	x := randomImages(r, 1, []int{10, 9})
	const levels, start, step = 3, 1, 2
	lower, upper := [][]float32{x}, [][]float32{x}
	for l := range levels {
		radius := start + l*step
		lower = append(lower, plainReconstruct(plainApply(Opening, radius, x, g), x, g, 1))
		upper = append(upper, plainReconstruct(plainApply(Closing, radius, x, g), x, g, -1))
	}
	for _, method := range []Method{AMD, PADO} {
		got, _, err := Decomposition{Method: method, Levels: levels, Start: start, Step: step}.Apply(x, []int{10, 9})
		fatal.If(t, err)
		for p := range x {
			for l := range levels + 1 {
				var want float64
				down, up := float64(lower[min(l, levels)][p]), float64(upper[min(l, levels)][p])
				switch {
				case l == levels && method == PADO:
					want = down
				case l == levels:
					want = (down + up) / 2
				default:
					want = down - float64(lower[l+1][p])
					if method == AMD {
						want = (want - (float64(upper[l+1][p]) - up)) / 2
					}
				}
				if v := got[p*(levels+1)+l]; math.Abs(float64(v)-want) > 1e-6 {
					t.Fatalf("%s pixel %d channel %d: %g, want %g", method, p, l, v, want)
				}
			}
		}
	}
}

func TestDecompositionRefusesWrongSettings(t *testing.T) {
	good := Decomposition{Method: AMD, Levels: 1, Start: 1, Step: 1}
	for name, c := range map[string]struct {
		edit func(*Decomposition)
		want string
	}{
		"method": {func(d *Decomposition) { d.Method = "amp" }, `"amp"`},
		"levels": {func(d *Decomposition) { d.Levels = 0 }, "0 levels"},
		"start":  {func(d *Decomposition) { d.Start = -1 }, "first radius -1"},
		"step":   {func(d *Decomposition) { d.Step = -2 }, "step -2"},
	} {
		d := good
		c.edit(&d)
		if _, _, err := d.Apply(make([]float32, 4), []int{2, 2}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
