package losses_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/laws"
	"tessera/laws/gradcheck"
	"tessera/layers"
	"tessera/losses"
)

// oracle computes a loss with plain loops; x has rows of columns values.
type oracle func(x, target [][]float64) float64

// perPixel averages f over pixels and batch.
func perPixel(f func(y, x float64) float64) oracle {
	return func(y, x [][]float64) float64 {
		sum := 0.0
		for i := range y {
			for j := range y[i] {
				sum += f(y[i][j], x[i][j])
			}
		}
		return sum / float64(len(y)*len(y[0]))
	}
}

// perUnit sums f of each unit's mean over the batch.
func perUnit(f func(t float64) float64) oracle {
	return func(h, _ [][]float64) float64 {
		sum := 0.0
		for j := range h[0] {
			t := 0.0
			for i := range h {
				t += h[i][j] / float64(len(h))
			}
			sum += f(t)
		}
		return sum
	}
}

// perImage averages f of each code over the batch.
func perImage(f func(h []float64) float64) oracle {
	return func(h, _ [][]float64) float64 {
		sum := 0.0
		for _, row := range h {
			sum += f(row)
		}
		return sum / float64(len(h))
	}
}

// perWeight sums f over all weights.
func perWeight(f func(w float64) float64) oracle {
	return func(w, _ [][]float64) float64 {
		sum := 0.0
		for _, row := range w {
			for _, v := range row {
				sum += f(v)
			}
		}
		return sum
	}
}

func probability(p float64) float64 { return min(max(p, 1e-7), 1-1e-7) }

func divergence(p, t float64) float64 {
	t = probability(t)
	return p*math.Log(p/t) + (1-p)*math.Log((1-p)/(1-t))
}

func sparseness(h []float64) float64 {
	var l1, l2 float64
	for _, v := range h {
		l1 += math.Abs(v)
		l2 += v * v
	}
	root := math.Sqrt(float64(len(h)))
	return (root - l1/(math.Sqrt(l2)+1e-7)) / (root - 1 + 1e-7)
}

func asymmetric(alpha float64, f func(w float64) float64) oracle {
	return perWeight(func(w float64) float64 {
		if w >= 0 {
			return alpha * f(w)
		}
		return f(w)
	})
}

func smooth(alpha1, alpha2, kappa float64) oracle {
	return asymmetric(0, func(w float64) float64 {
		gamma := math.Abs(w)
		if gamma <= kappa {
			gamma = w*w/(2*kappa) + kappa/2
		}
		return alpha1*gamma + alpha2/2*w*w
	})
}

// atoms returns the decoder's atoms that gradcheck.Loss passes to penalties of atoms, for images of two rows.
func atoms(units int) [][]float64 {
	return rowsOf(gradcheck.Values[float64](units*units, layers.Everything, random.Stream(gradcheck.Seed, "atoms", 0)), units)
}

func decoded(h, w [][]float64) [][]float64 {
	y := make([][]float64, len(h))
	for i := range h {
		y[i] = make([]float64, len(w[0]))
		for j, row := range w {
			for n, v := range row {
				y[i][n] += h[i][j] * v
			}
		}
	}
	return y
}

func maxApproximation(operator morph.Operator, element morph.Element, radius int) oracle {
	operated := func(images [][]float64) [][]float64 {
		columns := len(images[0])
		out, err := morph.Apply(operator, element, radius, narrow(slices.Concat(images...)), []int{2, columns / 2})
		if err != nil {
			panic(err)
		}
		wide := make([]float64, len(out))
		for i, v := range out { // morph only selects: the nearest float64 value is the one that was rounded to float32
			wide[i] = nearestOf(slices.Concat(images...), v)
		}
		return rowsOf(wide, columns)
	}
	squares := perPixel(func(y, x float64) float64 { return (y - x) * (y - x) })
	return func(h, x [][]float64) float64 {
		return squares(decoded(h, operated(atoms(len(h[0])))), operated(x))
	}
}

func sumsLessMaxima(h, _ [][]float64) float64 {
	w, sum := atoms(len(h[0])), 0.0
	for i, row := range decoded(h, w) {
		for n, all := range row {
			largest := math.Inf(-1)
			for j := range w {
				largest = max(largest, h[i][j]*w[j][n])
			}
			sum += (all - largest) * (all - largest)
		}
	}
	return sum / float64(len(h)*len(w[0]))
}

func nearestOf(values []float64, v float32) float64 {
	i := slices.IndexFunc(values, func(x float64) bool { return float32(x) == v })
	return values[i]
}

func overlap(h, _ [][]float64) float64 {
	w, sum := atoms(len(h[0])), 0.0
	for _, code := range h {
		for n := range w[0] {
			for j := range w {
				for l := range w {
					if j != l {
						sum += code[j] * w[j][n] * code[l] * w[l][n]
					}
				}
			}
		}
	}
	return sum / float64(len(h)*len(w[0]))
}

func half(w float64) float64 { return w * w / 2 }

// rms returns the root mean square of each column.
func rms(x [][]float64) []float64 {
	out := make([]float64, len(x[0]))
	for p := range out {
		for i := range x {
			out[p] += x[i][p] * x[i][p] / float64(len(x))
		}
		out[p] = math.Sqrt(out[p])
	}
	return out
}

func groupLasso(h, x [][]float64) float64 {
	var held, there float64
	of := rms(h)
	for j, w := range atoms(len(h[0])) {
		var norm1, square float64
		for _, v := range w {
			norm1 += math.Abs(v)
			square += v * v
		}
		held += of[j] * math.Sqrt(norm1*math.Sqrt(float64(len(w))*square))
	}
	for _, v := range rms(x) {
		there += v
	}
	return held / there
}

func relevance(bend float64) oracle {
	return func(h, _ [][]float64) float64 {
		means, all, sum := make([]float64, len(h[0])), 0.0, 0.0
		for j := range means {
			for i := range h {
				means[j] += math.Abs(h[i][j]) / float64(len(h))
			}
			all += means[j] / float64(len(means))
		}
		for _, t := range means {
			sum += math.Log(1 + t/all/bend)
		}
		return sum / float64(len(means)) / math.Log(1+1/bend)
	}
}

// ratio returns |h|_1 / |h|_2.
func ratio(h []float64) float64 {
	var l1, l2 float64
	for _, v := range h {
		l1 += math.Abs(v)
		l2 += v * v
	}
	return l1 / (math.Sqrt(l2) + 1e-7)
}

// oracles lists a loss, its settings if they differ from the defaults, and its oracle.
var oracles = []struct {
	name     string
	settings map[string]any
	oracle   oracle
}{
	{"mse", nil, perPixel(func(y, x float64) float64 { return (y - x) * (y - x) })},
	{"mse", map[string]any{"censored": true}, censored(false)},
	{"mse", map[string]any{"censored": true, "relative": true}, censored(true)},
	{"bce", nil, perPixel(func(y, x float64) float64 {
		y = probability(y)
		return -x*math.Log(y) - (1-x)*math.Log(1-y)
	})},
	{"l2", nil, perUnit(func(t float64) float64 { return (0.1 - t) * (0.1 - t) })},
	{"independence", map[string]any{"score": "values"}, correlation(func(x []float64) []float64 { return x })},
	{"independence", nil, correlation(probabilities)},
	{"independence", map[string]any{"measure": "hsic", "bandwidth": 0.7}, hsic},
	{"l2", map[string]any{"target": 0.3}, perUnit(func(t float64) float64 { return (0.3 - t) * (0.3 - t) })},
	{"kl", nil, perUnit(func(t float64) float64 { return divergence(0.1, t) })},
	{"kl", map[string]any{"target": 0.01}, perUnit(func(t float64) float64 { return divergence(0.01, t) })},
	{"epsilon_l1", nil, perUnit(func(t float64) float64 { return math.Sqrt((0.1-t)*(0.1-t) + 1e-4) })},
	{"log", nil, perUnit(func(t float64) float64 { return math.Log(1 + (0.1-t)*(0.1-t)) })},
	{"activity_floor", nil, perUnit(func(t float64) float64 { return max(0, 1-t/0.01) })},
	{"activity_floor", map[string]any{"floor": 0.2}, perUnit(func(t float64) float64 { return max(0, 1-t/0.2) })},
	{"hoyer", nil, perImage(func(h []float64) float64 { return math.Abs(0.6 - sparseness(h)) })},
	{"mean_hoyer", map[string]any{"target": 0.3}, func(h, _ [][]float64) float64 { return math.Pow(0.3-perImage(sparseness)(h, nil), 2) }},
	{"l1", nil, perImage(func(h []float64) float64 {
		sum := 0.0
		for _, v := range h {
			sum += math.Abs(v)
		}
		return sum
	})},
	{"l2_activity", nil, perImage(func(h []float64) float64 {
		sum := 0.0
		for _, v := range h {
			sum += v * v
		}
		return sum
	})},
	{"max_approximation_layer", nil, sumsLessMaxima},
	{"max_approximation", nil, maxApproximation(morph.Dilation, morph.Disk, 1)},
	{"max_approximation", map[string]any{"operator": "erosion"}, maxApproximation(morph.Erosion, morph.Disk, 1)},
	{"max_approximation", map[string]any{"operator": "opening"}, maxApproximation(morph.Opening, morph.Disk, 1)},
	{"max_approximation", map[string]any{"operator": "closing", "radius": 2}, maxApproximation(morph.Closing, morph.Disk, 2)},
	{"max_approximation", map[string]any{"element": "square"}, maxApproximation(morph.Dilation, morph.Square, 1)},
	{"max_approximation", map[string]any{"element": "011 010 000"}, maxApproximation(morph.Dilation, "011 010 000", 1)},
	{"max_approximation", map[string]any{"element": "011 010 000", "operator": "opening"}, maxApproximation(morph.Opening, "011 010 000", 1)},
	{"max_approximation", map[string]any{"element": "row", "operator": "erosion"}, maxApproximation(morph.Erosion, morph.Row, 1)},
	{"overlap", nil, overlap},
	{"group_lasso", nil, groupLasso},
	{"relevance", nil, relevance(0.1)},
	{"relevance", map[string]any{"bend": 1.0}, relevance(1)},
	{"spread", nil, perImage(ratio)},
	{"atom_spread", nil, func(w, _ [][]float64) float64 { return perImage(ratio)(w, nil) / math.Sqrt(float64(len(w[0]))) }},
	{"weight_decay", nil, perWeight(half)},
	{"asymmetric_decay", nil, asymmetric(0, half)},
	{"asymmetric_decay", map[string]any{"alpha": 0.1}, asymmetric(0.1, half)},
	{"asymmetric_decay", map[string]any{"alpha": 2.5}, asymmetric(2.5, half)},
	{"asymmetric_decay", map[string]any{"norm": "l1"}, asymmetric(0, math.Abs)},
	{"asymmetric_decay", map[string]any{"norm": "l1", "alpha": 0.1}, asymmetric(0.1, math.Abs)},
	{"asymmetric_decay", map[string]any{"norm": "l1", "alpha": 2.5}, asymmetric(2.5, math.Abs)},
	{"asymmetric_decay", map[string]any{"norm": "smooth"}, smooth(1, 1, 0.4)},
	{"asymmetric_decay", map[string]any{"norm": "smooth", "alpha1": 0.3, "alpha2": 2.0, "kappa": 0.7}, smooth(0.3, 2, 0.7)},
}

func configured(t *testing.T, name string, settings map[string]any) losses.Loss {
	e, ok := losses.Registry.Lookup(name)
	if !ok {
		t.Fatalf("no loss %q", name)
	}
	l := e.New()
	for key, value := range settings {
		fatal.If(t, laws.Set(l, key, value))
	}
	return l
}

// edges are 0, 1 and values that the clip changes.
var edges = []float64{0, 1, 0.5, 0.1, 1e-9, 1 - 1e-9}

func batch(l losses.Loss, rows, columns int) (x, target []float64) {
	within := layers.Interval{Low: 0, High: 1}
	target = gradcheck.Values[float64](rows*columns, within, random.Stream(1, "values", 0))
	if !l.Reads().Unit {
		within = layers.Everything
	}
	x = gradcheck.Values[float64](rows*columns, within, random.Stream(1, "values", 0))
	copy(x[columns:], edges)
	copy(target[columns:], edges[2:])
	return x, target
}

func rowsOf(x []float64, columns int) [][]float64 { return slices.Collect(slices.Chunk(x, columns)) }

func narrow(x []float64) []float32 {
	n := lists.Map(x, func(v float64) float32 { return float32(v) })
	return n
}

func TestEveryLossEqualsItsPlainLoops(t *testing.T) {
	const columns = 8
	for _, o := range oracles {
		t.Run(o.name, func(t *testing.T) {
			l := configured(t, o.name, o.settings)
			for _, rows := range []int{2, 3, 7} {
				x, target := batch(l, rows, columns)
				want := o.oracle(rowsOf(x, columns), rowsOf(target, columns))
				got, _, err := gradcheck.Evaluate(gradcheck.Loss(l, x, target, rows, columns))
				fatal.If(t, err)
				expect.Near(t, got[0], want, 1e-12*(1+math.Abs(want)), rows, "rows")
				single, _, err := gradcheck.Evaluate(gradcheck.Loss(l, narrow(x), narrow(target), rows, columns))
				fatal.If(t, err)
				// The clip at 1 - 2^-23 instead of 1 - 1e-7 changes one element's logarithm by at most 0.19 nats.
				slack := 1e-5*(1+math.Abs(want)) + clipSlack(l, rows*columns)
				expect.Near(t, float64(single[0]), want, slack, rows, "rows in float32")
			}
		})
	}
}

func clipSlack(l losses.Loss, n int) float64 {
	if _, ok := l.(*losses.BCE); ok {
		return 2 * 0.19 / float64(n)
	}
	return 0
}

// gradient returns the derivatives of l with respect to x.
func gradient(t *testing.T, l losses.Loss, x []float64, rows, columns int) []float64 {
	t.Helper()
	g, err := gradcheck.Compile(gradcheck.Loss(l, x, make([]float64, len(x)), rows, columns), true)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	return slices.Clone(g.Leaf("x").Gradient())
}

// censored is the oracle of mse with the key censored: an output above the largest target of the batch is no error there.
func censored(relative bool) oracle {
	return func(output, target [][]float64) float64 {
		most := 0.0
		for _, row := range target {
			most = max(most, slices.Max(row))
		}
		sum, squares, n := 0.0, 0.0, 0
		for i, row := range target {
			for j, x := range row {
				d := output[i][j] - x
				if x >= 0.999*most && d > 0 {
					d = 0
				}
				sum, squares, n = sum+d*d, squares+x*x, n+1
			}
		}
		if relative {
			return sum / squares
		}
		return sum / float64(n)
	}
}

func TestOutputsAboveSaturatedPixelsAreNoErrors(t *testing.T) {
	l := configured(t, "mse", map[string]any{"censored": true})
	output, target := []float64{1.5, 0.5, 1.5, -0.25}, []float64{1, 1, 0.5, 0}
	value, err := gradcheck.Compile(gradcheck.Loss(l, output, target, 1, 4), true)
	fatal.If(t, err)
	defer value.Close()
	fatal.If(t, value.Run())
	want := []float64{0, -0.25, 0.5, -0.125} // 2 (output - target) / 4, 0 for the first
	expect.Slice(t, value.Leaf("x").Gradient(), want)
}

// counted is a Values with a mask and sample weights.
type counted struct {
	shaped
	counts losses.Counts
}

func (c counted) Counts() (losses.Counts, error) { return c.counts, nil }

// The largest target is 1: the 9 is masked, and the 7 is in a sample of weight 0.
func TestTargetsThatDoNotCountDoNotSaturate(t *testing.T) {
	l := configured(t, "mse", map[string]any{"censored": true})
	value, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		leaf := func(name string, values []float64, fixed bool, shape ...int) *gorgonia.Node {
			return b.Leaf(name, shape, values, fixed)
		}
		return l.Build(counted{
			shaped{on: leaf("x", []float64{1.5, 0.5, 8, 6}, false, 2, 2), images: leaf("target", []float64{1, 9, 7, 2}, true, 2, 2)},
			losses.Counts{Entries: leaf("mask", []float64{1, 0, 1, 1}, true, 2, 2), Samples: leaf("weight", []float64{1, 0}, true, 2)},
		})
	}, true)
	fatal.If(t, err)
	defer value.Close()
	fatal.If(t, value.Run())
	expect.Equal(t, value.Output()[0], 0, "an output above the saturated pixel")
}

func TestHoyerHasNoGradientAtAZeroCode(t *testing.T) {
	got := gradient(t, configured(t, "hoyer", nil), make([]float64, 8), 2, 4)
	expect.Slice(t, got, make([]float64, 8))
}

func TestL1HasNoGradientAtZero(t *testing.T) {
	got := gradient(t, configured(t, "l1", nil), []float64{0, 2, -3, 0}, 2, 2)
	expect.Slice(t, got, []float64{0, 0.5, -0.5, 0})
}

func TestHoyerRefusesACodeOfOneUnit(t *testing.T) {
	l := configured(t, "hoyer", nil)
	if _, _, err := gradcheck.Evaluate(gradcheck.Loss(l, []float64{1, 2}, nil, 2, 1)); err == nil {
		t.Error("the sparseness of one unit is accepted")
	}
}

func TestKLRefusesATargetOutsideTheOpenInterval(t *testing.T) {
	for _, p := range []float64{0, 1, -0.1, math.NaN()} {
		if _, _, err := gradcheck.Evaluate(gradcheck.Loss(&losses.KL{Target: p}, []float64{0.5}, nil, 1, 1)); err == nil {
			t.Errorf("a target of %v is accepted", p)
		}
	}
}

// A unit that is never active, or always at 1, gets no gradient from the clipped divergence.
func TestClippedUnitsGetNoGradientFromKL(t *testing.T) {
	got := gradient(t, configured(t, "kl", nil), []float64{0, 0.5, 1, 0, 0.5, 1}, 2, 3)
	if got[0] != 0 || got[2] != 0 || !(got[1] > 0) {
		t.Errorf("got %v, want 0, a positive number and 0", got[:3])
	}
}

// A weight that was projected to 0 stays there: the decay only acts on negative weights.
func TestAsymmetricDecayLeavesZeroWeightsAlone(t *testing.T) {
	for _, norm := range []string{"l2", "l1", "smooth"} {
		got := gradient(t, configured(t, "asymmetric_decay", map[string]any{"norm": norm}), []float64{0, 1, -1, 0}, 2, 2)
		if got[0] != 0 || got[1] != 0 || got[3] != 0 || !(got[2] < 0) {
			t.Errorf("%s: got %v, want 0 except for the negative weight", norm, got)
		}
	}
}

func TestAsymmetricDecayRefusesAnUnknownNorm(t *testing.T) {
	expect.AnyError(t, expect.Err((&losses.AsymmetricDecay{Norm: "l3"}).Build(nil)), "the norm l3 is accepted")
}

func TestMaxApproximationRefusesInvalidImages(t *testing.T) {
	for _, wrong := range []struct {
		l     losses.MaxApproximation
		shape []int
	}{
		{losses.MaxApproximation{Operator: morph.Dilation, Radius: 1}, []int{784}},
		{losses.MaxApproximation{Operator: morph.Dilation, Radius: 29}, []int{28, 28}},
	} {
		if wrong.l.CheckShape(wrong.shape) == nil {
			t.Errorf("radius %d on images of shape %v is accepted", wrong.l.Radius, wrong.shape)
		}
	}
	l := &losses.MaxApproximation{Operator: morph.Dilation, Radius: 28}
	expect.NoError(t, l.CheckShape([]int{28, 28, 1}))
	_, _, err := gradcheck.Evaluate(gradcheck.Loss(&losses.MaxApproximation{Operator: "median", Radius: 1},
		make([]float64, 4), make([]float64, 4), 1, 4))
	expect.AnyError(t, err, "the operator median is accepted")
}
