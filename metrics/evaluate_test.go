package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/volume"
)

func close6(t *testing.T, name string, got, want float64) {
	t.Helper()
	expect.Near(t, got, want, 1e-9*max(1, math.Abs(want)), name)
}

// measured returns the result of evaluating a coder on images.
func measured(t *testing.T, c Coder, images []float32, chosen ...Choice) *Result {
	t.Helper()
	r, err := Evaluate(context.Background(), c, Sample{Images: images}, chosen)
	fatal.If(t, err)
	return r
}

// number returns a number of a result. The test fails if the number is missing.
func number(t *testing.T, r *Result, name string) float64 {
	t.Helper()
	v, ok := r.Number(name)
	if !ok {
		t.Fatalf("%s was not measured: %+v", name, r.Values)
	}
	return v
}

// plainValues computes the standard metrics by loops over pixels, directly from the study's formulas.
func plainValues(t *testing.T, c *affine, images []float32) Values {
	t.Helper()
	pixels := volume.Of(c.shape)
	n := len(images) / pixels
	codes, _ := c.Encode(images)
	plain, _ := c.Decode(codes)
	dilate := func(v []float32) []float32 { return plainCross(v, c.shape) }
	dilatedAtoms := *c.atoms
	dilatedAtoms.Values = dilate(c.atoms.Values)
	biasToo := dilatedAtoms
	biasToo.Bias = dilate(c.atoms.Bias)
	with := func(a Atoms) []float32 {
		other, _ := c.WithAtoms(&a)
		y, _ := other.Decode(codes)
		return y
	}
	error2 := func(x, y []float32, low, high float64) float64 {
		sum := 0.0
		for i := range x {
			d := float64(x[i]) - math.Max(low, math.Min(high, float64(y[i])))
			sum += d * d
		}
		return sum / float64(len(x))
	}
	inf := math.Inf(1)
	var v Values
	v.Set("mse", error2(images, plain, -inf, inf))
	v.Set("mse_clipped", error2(images, plain, 0, 1))
	v.Set("hoyer", plainHoyer(codes, c.units))
	v.Set("hoyer_atoms", plainHoyer(c.atoms.Values, pixels))
	v.Set("max_approx", error2(dilate(images), with(dilatedAtoms), -inf, inf))
	v.Set("max_approx_clipped", error2(dilate(images), with(dilatedAtoms), 0, 1))
	v.Set("max_approx_bias_dilated", error2(dilate(images), with(biasToo), -inf, inf))
	v.Set("max_approx_reconstructed", error2(dilate(plain), with(dilatedAtoms), -inf, inf))
	dead, most := 0, slices.Max(codes)
	for j := range c.units {
		unit := float32(math.Inf(-1))
		for i := range n {
			unit = max(unit, codes[i*c.units+j])
		}
		if float64(unit) < 0.01*float64(most) {
			dead++
		}
	}
	v.Set("dead_units", float64(dead))
	negative := 0
	for _, w := range c.atoms.Values {
		if w < 0 {
			negative++
		}
	}
	v.Set("negative_weights", float64(negative))
	return append(v, Value{Name: "kl", Missing: "codes leave [0,1]"})
}

// plainCross dilates each image of (height, width) by the 3x3 cross.
func plainCross(v []float32, shape []int) []float32 {
	h, w := shape[0], shape[1]
	out := slices.Clone(v)
	for i := range v {
		y, x, base := i/w%h, i%w, i/(h*w)*h*w
		for _, d := range [][2]int{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
			if yy, xx := y+d[0], x+d[1]; yy >= 0 && yy < h && xx >= 0 && xx < w {
				out[i] = max(out[i], v[base+yy*w+xx])
			}
		}
	}
	return out
}

func plainHoyer(rows []float32, k int) float64 {
	total := 0.0
	for i := 0; i < len(rows); i += k {
		var l1, l2 float64
		for _, v := range rows[i : i+k] {
			l1 += math.Abs(float64(v))
			l2 += float64(v) * float64(v)
		}
		if l1 > 0 {
			total += (math.Sqrt(float64(k)) - l1/math.Sqrt(l2)) / (math.Sqrt(float64(k)) - 1)
		}
	}
	return total / float64(len(rows)/k)
}

func TestEvaluateEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := newAffine(r, []int{7, 5}, 9)
	for k := range volume.Of(c.shape) { // a unit that hardly reacts, and one that never does
		c.encoder[k*c.units+2] *= 1e-4
		c.encoder[k*c.units+3] = 0
	}
	for j := range c.offset {
		c.offset[j] = 1
	}
	c.offset[2], c.offset[3] = 0, -1
	images := uniform(r, (batchSize+77)*volume.Of(c.shape))
	got, want := measured(t, c, images, selected(t, Standard...)...).Values, plainValues(t, c, images)
	if dead, _ := want.Number("dead_units"); dead != 2 {
		t.Fatalf("the oracle counts %g dead units, the test made 2", dead)
	}
	if got = got.Shown(); len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if close6(t, want[i].Name, got[i].Number, want[i].Number); got[i].Name != want[i].Name || got[i].Missing != want[i].Missing {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestEvaluateMeasuresUsageAndOverlapOfAtoms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	c := newAffine(r, []int{6, 5}, 7)
	images := uniform(r, (JaccardImages+1)*30) // one more than Jaccard looks at
	chosen, err := Select("hoyer_atoms_dilated", "used_units", "jaccard*")
	fatal.If(t, err)
	result := measured(t, c, images, chosen...)
	codes, _ := c.Encode(images)
	used := 0
	for j := range 7 {
		mean := 0.0
		for i := j; i < len(codes); i += 7 {
			mean += float64(codes[i]) / float64(len(codes)/7)
		}
		if mean > 0.1 {
			used++
		}
	}
	close6(t, "used units", number(t, result, "used_units"), float64(used))
	dilated := *c.atoms
	dilated.Values = plainCross(c.atoms.Values, c.shape)
	for name, atoms := range map[string]*Atoms{"jaccard": c.atoms, "jaccard_dilated": &dilated} {
		want, err := meanJaccard(atoms, codes[:JaccardImages*7])
		fatal.If(t, err)
		close6(t, name, number(t, result, name), want)
	}
	close6(t, "hoyer_atoms_dilated", number(t, result, "hoyer_atoms_dilated"), plainHoyer(dilated.Values, 30))
}

func TestEvaluateDoesNotDependOnTheNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(3, 1))
	c := newAffine(r, []int{6, 5}, 7)
	images := uniform(r, 1234*volume.Of(c.shape))
	var first []byte
	for _, procs := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(procs)
		text, err := json.Marshal(measured(t, c, images))
		fatal.If(t, err)
		if first == nil {
			first = text
		}
		expect.Equal(t, string(text), string(first), procs, "processors", text, "with one", first)
	}
}

func TestAResultHasTheContractsKeysInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	c := newAffine(r, []int{4, 4}, 3)
	c.hidden = true
	c.offset[0] = 50 // no code in [0,1]
	result := measured(t, c, uniform(r, 32))
	result.Model, result.Dataset = "m", "d"
	for i, name := range []string{"mse", "mse_clipped", "hoyer", "dead_units", "active_units", "cosine", "explained_variance"} {
		result.Set(name, float64(i+1))
	}
	text, err := json.Marshal(result)
	fatal.If(t, err)
	want := `{"model":"m","dataset":"d","images":2,"mse":1,"mse_clipped":2,"hoyer":3,"hoyer_atoms":null,"max_approx":null,` +
		`"max_approx_clipped":null,"max_approx_bias_dilated":null,"max_approx_reconstructed":null,"dead_units":4,` +
		`"negative_weights":null,"kl":null,"active_units":5,"cosine":6,"explained_variance":7}`
	expect.Equal(t, string(text), want)
}

func TestACoderWithoutBiasHasOneMaxApproximation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	c := newAffine(r, []int{4, 4}, 3)
	c.atoms.Bias = nil
	result := measured(t, c, uniform(r, 160))
	expect.Equal(t, number(t, result, "max_approx_bias_dilated"), number(t, result, "max_approx"), "bias dilated")
}

// closing counts the coders that WithAtoms returned and that are not closed.
type closing struct {
	*affine
	open *int
}

func (c closing) WithAtoms(a *Atoms) (Coder, error) {
	other, err := c.affine.WithAtoms(a)
	if err != nil {
		return nil, err
	}
	*c.open++
	return closing{other.(*affine), c.open}, nil
}

func (c closing) Close() error { *c.open--; return nil }

func TestTheCodersOfMaxApproximationAreClosed(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for _, fail := range []error{nil, errors.New("boom")} {
		c := closing{newAffine(r, []int{4, 4}, 3), new(int)}
		c.fail = fail
		if _, err := Evaluate(context.Background(), c, Sample{Images: uniform(r, 32)}, nil); !errors.Is(err, fail) {
			t.Fatal(err)
		}
		expect.Equal(t, *c.open, 0, "coder's error", fail, *c.open, "coders stay open")
	}
}

func TestEvaluateRefusesWhatCannotBeMeasured(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		ctx    context.Context
		values int
		edit   func(*affine)
		o      Selection
		want   string
	}{
		"no samples":    {values: 0, want: "no samples"},
		"half an image": {values: 24, want: "24 values"},
		"coder fails":   {values: 32, edit: func(a *affine) { a.fail = boom }, want: "boom"},
		"nan weights":   {values: 32, edit: func(a *affine) { a.atoms.Bias[3] = float32(math.NaN()) }, want: "mse is NaN"},
		"short atoms":   {values: 32, edit: func(a *affine) { a.atoms.Count = 7 }, want: "7 atoms"},
		"target":        {values: 32, o: Selection{{Metric: &KL{Target: 1}}}, want: "kl target 1"},
		"no labels":     {values: 32, o: Selection{{Metric: &SVM{}}}, want: "no labels, but svm_accuracy needs them"},
		"no meter":      {values: 32, o: Selection{{Metric: unstarted{}}}, want: "unstarted: Start returned neither"},
		"cancelled":     {ctx: cancelled, values: 32, want: "canceled"},
	} {
		a := newAffine(r, []int{4, 4}, 3)
		if c.edit != nil {
			c.edit(a)
		}
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		_, err := Evaluate(c.ctx, a, Sample{Images: uniform(r, c.values)}, c.o)
		expect.Error(t, err, c.want, name)
	}
}

// Without a head that predicts classes, labels are not what is missing.
func TestAccuracyWithoutAHeadIsNotApplicable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	got, err := Evaluate(t.Context(), newAffine(r, []int{4, 4}, 3), Sample{Images: uniform(r, 32), Labels: []int{0, 1}}, selected(t, "accuracy"))
	fatal.If(t, err)
	if v, ok := got.Find("accuracy"); !ok || v.Missing != "the model has no head that is compared with classes" {
		t.Errorf("got %+v, %t", v, ok)
	}
}
