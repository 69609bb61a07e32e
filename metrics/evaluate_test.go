package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tessera/internal/volume"
	"tessera/morph"
)

func close6(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: got %.12g, want %.12g", name, got, want)
	}
}

// plainReport recomputes every number by loops over pixels, straight from the study's formulas.
func plainReport(t *testing.T, c *affine, images []float32) *Report {
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
	error2 := func(x, y []float32, low, high float64) *float64 {
		sum := 0.0
		for i := range x {
			d := float64(x[i]) - math.Max(low, math.Min(high, float64(y[i])))
			sum += d * d
		}
		return new(sum / float64(len(x)))
	}
	inf := math.Inf(1)
	r := &Report{Images: n}
	r.MSE, r.MSEClipped = *error2(images, plain, -inf, inf), *error2(images, plain, 0, 1)
	r.MaxApprox = error2(dilate(images), with(dilatedAtoms), -inf, inf)
	r.MaxApproxClipped = error2(dilate(images), with(dilatedAtoms), 0, 1)
	r.MaxApproxBiasDilated = error2(dilate(images), with(biasToo), -inf, inf)
	r.MaxApproxReconstructed = error2(dilate(plain), with(dilatedAtoms), -inf, inf)
	r.Hoyer = plainHoyer(codes, c.units)
	r.HoyerAtoms = new(plainHoyer(c.atoms.Values, pixels))
	negative := 0
	for _, w := range c.atoms.Values {
		if w < 0 {
			negative++
		}
	}
	r.NegativeWeights = &negative
	most := slices.Max(codes)
	for j := range c.units {
		unit := float32(math.Inf(-1))
		for i := range n {
			unit = max(unit, codes[i*c.units+j])
		}
		if float64(unit) < 0.01*float64(most) {
			r.DeadUnits++
		}
	}
	return r
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
			total += (math.Sqrt(float64(k)) - l1/(math.Sqrt(l2)+1e-7)) / (math.Sqrt(float64(k)) - 1)
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
	got, err := Evaluate(context.Background(), c, images, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := plainReport(t, c, images)
	if want.DeadUnits != 2 {
		t.Fatalf("the oracle counts %d dead units, the test made 2", want.DeadUnits)
	}
	compareReports(t, got, want)
}

func compareReports(t *testing.T, got, want *Report) {
	t.Helper()
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		a, b := g.Field(i), w.Field(i)
		if a.Kind() == reflect.Pointer {
			if a.IsNil() != b.IsNil() {
				t.Errorf("%s: nil %t, want %t", name, a.IsNil(), b.IsNil())
			}
			if a.IsNil() || b.IsNil() {
				continue
			}
			a, b = a.Elem(), b.Elem()
		}
		if a.Kind() == reflect.Float64 {
			close6(t, name, a.Float(), b.Float())
		} else if !a.Equal(b) {
			t.Errorf("%s: got %v, want %v", name, a, b)
		}
	}
}

func TestEvaluateAgreesWithMaxApproximation(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	c := newAffine(r, []int{6, 5, 2}, 7)
	images := uniform(r, 41*volume.Of(c.shape))
	for _, o := range []Options{{}, {Operator: morph.Erosion}, {Operator: morph.Opening, Radius: 2}, {Radius: 3}} {
		report, err := Evaluate(context.Background(), c, images, o)
		if err != nil {
			t.Fatal(err)
		}
		for name, one := range map[string]struct {
			got *float64
			m   MaxApproximation
		}{
			"max_approx":               {report.MaxApprox, MaxApproximation{}},
			"max_approx_clipped":       {report.MaxApproxClipped, MaxApproximation{Clip: true}},
			"max_approx_bias_dilated":  {report.MaxApproxBiasDilated, MaxApproximation{OperateBias: true}},
			"max_approx_reconstructed": {report.MaxApproxReconstructed, MaxApproximation{Reconstructions: true}},
		} {
			one.m.Operator, one.m.Radius = morph.Dilation, max(o.Radius, 1)
			if o.Operator != "" {
				one.m.Operator = o.Operator
			}
			want, err := one.m.Measure(c, images)
			if err != nil {
				t.Fatal(err)
			}
			close6(t, name, *one.got, want)
		}
	}
}

func TestEvaluateMeasuresUsageAndOverlapOfAtoms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	c := newAffine(r, []int{6, 5}, 7)
	images := uniform(r, (JaccardImages+1)*30) // one more than Jaccard looks at
	report, err := Evaluate(context.Background(), c, images, Options{Atoms: true})
	if err != nil {
		t.Fatal(err)
	}
	codes, _ := c.Encode(images)
	used, _ := UsedUnits(codes, 7, UsageThreshold)
	if *report.UsedUnits != len(used) {
		t.Errorf("used units: got %d, want %d", *report.UsedUnits, len(used))
	}
	dilated := *c.atoms
	dilated.Values = plainCross(c.atoms.Values, c.shape)
	for name, one := range map[string]struct {
		got   *float64
		atoms *Atoms
	}{"jaccard": {report.Jaccard, c.atoms}, "jaccard_dilated": {report.JaccardDilated, &dilated}} {
		want, err := Jaccard(one.atoms, codes[:JaccardImages*7])
		if err != nil {
			t.Fatal(err)
		}
		close6(t, name, *one.got, want)
	}
	want, _ := MeanHoyer(dilated.Values, 30)
	close6(t, "hoyer_atoms_dilated", *report.HoyerAtomsDilated, want)
}

func TestEvaluateDoesNotDependOnTheNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(3, 1))
	c := newAffine(r, []int{6, 5}, 7)
	images := uniform(r, 1234*volume.Of(c.shape))
	var first []byte
	for _, procs := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(procs)
		report, err := Evaluate(context.Background(), c, images, Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if string(text) != string(first) {
			t.Errorf("%d processors: %s, with one: %s", procs, text, first)
		}
	}
}

func TestReportHasTheContractsKeysInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	c := newAffine(r, []int{4, 4}, 3)
	c.hidden = true
	c.offset[0] = 50 // no code in [0,1]
	report, err := Evaluate(context.Background(), c, uniform(r, 32), Options{})
	if err != nil {
		t.Fatal(err)
	}
	report.Model, report.Dataset, report.MSE, report.MSEClipped, report.Hoyer, report.DeadUnits = "m", "d", 1, 2, 3, 4
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","dataset":"d","images":2,"mse":1,"mse_clipped":2,"hoyer":3,"hoyer_atoms":null,"max_approx":null,` +
		`"max_approx_clipped":null,"max_approx_bias_dilated":null,"max_approx_reconstructed":null,"dead_units":4,` +
		`"negative_weights":null,"kl":null}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestACoderWithoutBiasHasOneMaxApproximation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	c := newAffine(r, []int{4, 4}, 3)
	c.atoms.Bias = nil
	report, err := Evaluate(context.Background(), c, uniform(r, 160), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *report.MaxApproxBiasDilated != *report.MaxApprox {
		t.Errorf("bias dilated %g, not dilated %g", *report.MaxApproxBiasDilated, *report.MaxApprox)
	}
}

// closing counts the coders that WithAtoms made and no one closed.
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
		if _, err := Evaluate(context.Background(), c, uniform(r, 32), Options{}); !errors.Is(err, fail) {
			t.Fatal(err)
		}
		if _, err := (Options{}).maxApproximation().Measure(c, uniform(r, 32)); !errors.Is(err, fail) {
			t.Fatal(err)
		}
		if *c.open != 0 {
			t.Errorf("coder's error %v: %d coders stay open", fail, *c.open)
		}
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
		o      Options
		want   string
	}{
		"no images":     {values: 0, want: "no images"},
		"half an image": {values: 24, want: "24 values"},
		"coder fails":   {values: 32, edit: func(a *affine) { a.fail = boom }, want: "boom"},
		"nan weights":   {values: 32, edit: func(a *affine) { a.atoms.Bias[3] = float32(math.NaN()) }, want: "mse is NaN"},
		"short atoms":   {values: 32, edit: func(a *affine) { a.atoms.Count = 7 }, want: "7 atoms"},
		"target":        {values: 32, o: Options{KLTarget: 1}, want: "kl target 1"},
		"cancelled":     {ctx: cancelled, values: 32, want: "canceled"},
	} {
		a := newAffine(r, []int{4, 4}, 3)
		if c.edit != nil {
			c.edit(a)
		}
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		_, err := Evaluate(c.ctx, a, uniform(r, c.values), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
