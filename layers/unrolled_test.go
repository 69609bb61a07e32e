package layers_test

import (
	"fmt"
	"math"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["unrolled"] = []map[string]any{{"units": 4, "steps": 3}, {"units": 3, "steps": 1}, {"units": 2, "steps": 2, "init": &layers.HeNormal{}},
		{"units": 4, "steps": 3, "method": "splitting", "init": &layers.HeNormal{}}, {"units": 3, "steps": 1, "method": "splitting", "rho": 0.5}}
}

// descended returns the code of an image x, computed by plain loops; w[i][j] is pixel i of atom j.
func descended(x []float64, w, size, threshold [][]float64, momenta []float64) []float64 {
	units := len(w[0])
	y, z := make([]float64, units), make([]float64, units)
	for t := 0; t <= len(momenta); t++ {
		next := make([]float64, units)
		for j := range units {
			row, slope := 0.0, 0.0
			for l := range units {
				g := 0.0
				for i := range x {
					g += w[i][j] * w[i][l]
				}
				row, slope = row+math.Abs(g), slope+z[l]*g
			}
			for i := range x {
				slope -= x[i] * w[i][j]
			}
			next[j] = max(0, z[j]-size[t][j]*slope/row-threshold[t][j])
		}
		for j := range units {
			if t < len(momenta) {
				z[j] = next[j] + momenta[t]*(next[j]-y[j])
			}
		}
		y = next
	}
	return y
}

func TestUnrolledEqualsPlainLoops(t *testing.T) {
	const batch, pixels, units = 3, 6, 4
	x, drawn := drawnNormal(batch*pixels, "x"), drawnNormal(pixels*units, "w")
	var size, threshold [][]float64
	for t := range 4 {
		size = append(size, []float64{1 + 0.1*float64(t), 0.5, 1.5 - 0.2*float64(t), 0.8})
		threshold = append(threshold, []float64{0, 0.1, -0.1 + 0.05*float64(t), 0.02})
	}
	for _, momenta := range [][]float64{{}, {0.3}, {0.2, 0.5, -0.1}} {
		l := &layers.Unrolled{Units: units, Steps: len(momenta) + 1, Init: &layers.HeNormal{}}
		g, err := gradcheck.Compile(gradcheck.Layer(l, x, batch, []int{2, 3}, false), false)
		fatal.If(t, err)
		defer g.Close()
		copy(g.Leaf("weight").Values, drawn)
		for t := range l.Steps {
			copy(g.Leaf(fmt.Sprintf("step_size_%d", t+1)).Values, size[t])
			copy(g.Leaf(fmt.Sprintf("threshold_%d", t+1)).Values, threshold[t])
		}
		for i, m := range momenta {
			g.Leaf(fmt.Sprintf("momentum_%d", i+1)).Values[0] = m
		}
		fatal.If(t, g.Run())
		w := lists.Of(pixels, func(i int) []float64 { return drawn[i*units : (i+1)*units] })
		var want []float64
		for b := range batch {
			want = append(want, descended(x[b*pixels:(b+1)*pixels], w, size, threshold, momenta)...)
		}
		wantNear(t, "unrolled", g.Output(), want, 1e-11)
	}
}

// With non-negative atoms, a step size of 1 and neither threshold nor momentum, no step raises the squared error.
func TestUnrolledStepsDescend(t *testing.T) {
	const pixels, units = 9, 5
	x, w := drawnNormal(pixels, "x"), drawnNormal(pixels*units, "w")
	for i, v := range w {
		w[i] = math.Abs(v)
	}
	last := math.Inf(1)
	for steps := 1; steps <= 12; steps++ {
		l := &layers.Unrolled{Units: units, Steps: steps, Init: &layers.HeNormal{}}
		g, err := gradcheck.Compile(gradcheck.Layer(l, x, 1, []int{pixels}, false), false)
		fatal.If(t, err)
		defer g.Close()
		copy(g.Leaf("weight").Values, w)
		for i := 1; i <= steps; i++ {
			for j := range units {
				g.Leaf(fmt.Sprintf("step_size_%d", i)).Values[j] = 1
				g.Leaf(fmt.Sprintf("threshold_%d", i)).Values[j] = 0
			}
			if i < steps {
				g.Leaf(fmt.Sprintf("momentum_%d", i)).Values[0] = 0
			}
		}
		fatal.If(t, g.Run())
		sum := 0.0
		for i := range x {
			rest := x[i]
			for j, y := range g.Output() {
				rest -= w[i*units+j] * y
			}
			sum += rest * rest
		}
		if sum > last*(1+1e-12) {
			t.Errorf("step %d raises the error from %v to %v", steps, last, sum)
		}
		last = sum
	}
}

// Splitting steps with equal thresholds settle at the code of least penalised error, whatever the relaxation, where the
// gradient of the error is 0 for active units and not negative for others.
func TestSplittingStepsSettleAtTheBestCode(t *testing.T) {
	const batch, pixels, units = 4, 9, 6
	x, w := drawnNormal(batch*pixels, "x"), drawnNormal(pixels*units, "w")
	for i := range w { // atoms that overlap
		w[i] = 0.3*math.Abs(w[i]) + 1
	}
	for i := range x {
		x[i] = math.Abs(x[i])
	}
	for name, threshold := range map[string]float64{"no threshold": 0, "a threshold": 0.01} {
		l := &layers.Unrolled{Units: units, Steps: 300, Method: "splitting", Rho: 0.01, Init: &layers.HeNormal{}}
		g, err := gradcheck.Compile(gradcheck.Layer(l, x, batch, []int{pixels}, false), false)
		fatal.If(t, err)
		defer g.Close()
		copy(g.Leaf("weight").Values, w)
		g.Leaf("log_rho").Values[0] = math.Log(0.01)
		for i := 1; i <= l.Steps; i++ {
			for j := range units {
				g.Leaf(fmt.Sprintf("threshold_%d", i)).Values[j] = threshold
			}
			g.Leaf(fmt.Sprintf("relaxation_%d", i)).Values[0] = 1 + 0.6*float64(i%2)
		}
		fatal.If(t, g.Run())
		mean := 0.0
		for _, v := range w {
			mean += v * v / units
		}
		active := 0
		for b := range batch {
			for j := range units {
				y, slope := g.Output()[b*units:(b+1)*units], threshold*mean
				for i := range pixels {
					rest := -x[b*pixels+i]
					for l, v := range y {
						rest += w[i*units+l] * v
					}
					slope += rest * w[i*units+j]
				}
				if y[j] > 0 {
					active++
				}
				if y[j] < 0 || slope < -1e-6 || y[j] > 0 && slope > 1e-6 {
					t.Errorf("%s: image %d, unit %d: the code is %v, the slope %v", name, b, j, y[j], slope)
				}
			}
		}
		if active < batch || active == batch*units {
			t.Errorf("%s: %d of %d values are active: the test says little", name, active, batch*units)
		}
	}
}
