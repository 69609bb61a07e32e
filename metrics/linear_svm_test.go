package metrics

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/random"
)

// clouds returns n points of overlapping classes.
func clouds(r *rand.Rand, n, width, classes int) (features []float32, labels []int) {
	centres := normal(r, classes*width)
	features = normal(r, n*width)
	labels = make([]int, n)
	for i := range labels {
		labels[i] = 10 * r.IntN(classes) // labels need not be 0, 1, 2
		for j := range width {
			features[i*width+j] += centres[labels[i]/10*width+j]
		}
	}
	return features, labels
}

// plainGradient returns f'(w) for one class against the rest, by loops over the rows.
func plainGradient(features []float32, labels []int, class int, c float64, w []float64) []float64 {
	width := len(w) - 1
	g := slices.Clone(w)
	for i, label := range labels {
		y, margin := -1.0, w[width]
		if label == class {
			y = 1
		}
		for j := range width {
			margin += w[j] * float64(features[i*width+j])
		}
		if gap := 1 - y*margin; gap > 0 {
			for j := range width {
				g[j] -= 2 * c * gap * y * float64(features[i*width+j])
			}
			g[width] -= 2 * c * gap * y
		}
	}
	return g
}

func TestTheFitIsTheMinimumOfTheProblem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	features, labels := clouds(r, 300, 7, 4)
	for j := range 300 {
		features[j*7+3] *= 100 // a badly scaled feature
	}
	p, err := fit.Of("svm", features, 7, labels)
	fatal.If(t, err)
	if !slices.Equal(p.Classes, []int{0, 10, 20, 30}) {
		t.Fatalf("classes %v", p.Classes)
	}
	for _, c := range []float64{1e-3, 1, 1000} {
		weights, err := p.SVM(context.Background(), c, 1e-6)
		fatal.If(t, err)
		for k, class := range p.Classes {
			start := fit.Norm(plainGradient(features, labels, class, c, make([]float64, 8)))
			if end := fit.Norm(plainGradient(features, labels, class, c, weights[k*8:(k+1)*8])); end > 1e-6*start {
				t.Errorf("C %g class %d: gradient %g, at zero %g", c, class, end, start)
			}
		}
	}
}

// The expected accuracies, and norms of all weights, are those of scikit-learn 1.2.1's LinearSVC(dual=False) on the same
// split, with tol=1e-4 for the accuracies and tol=1e-8 for the norms: with 1e-4 the solver stops at a norm of 72.9 for the
// last C. Features are 4x4 block means of the Fashion-MNIST test images, the first 8,000 for fitting, the last 2,000 for
// testing.
func TestAccuracyEqualsLIBLINEARs(t *testing.T) {
	images := realImages(t, "t10k-images-idx3-ubyte.gz", 10_000)
	labels := realLabels(t, "t10k-labels-idx1-ubyte.gz", 10_000)
	features := make([]float32, 10_000*49)
	for i, v := range images {
		y, x := i/28%28, i%28
		features[i/784*49+y/4*7+x/4] += v / 16
	}
	train, err := fit.Of("svm", features[:8_000*49], 49, labels[:8_000])
	fatal.If(t, err)
	test, err := fit.Of("svm", features[8_000*49:], 49, labels[8_000:])
	fatal.If(t, err)
	for _, peer := range []struct{ c, accuracy, norm float64 }{
		{.01, .7600, 6.234645}, {1, .7975, 20.048535}, {100, .7980, 50.984346}, {1000, .7980, 86.041730},
	} {
		weights, err := train.SVM(context.Background(), peer.c, fit.Tolerance)
		fatal.If(t, err)
		if got, _ := test.Predicted(weights); math.Abs(got-peer.accuracy) > .003 {
			t.Errorf("C %g: accuracy %.4f, scikit-learn %.4f", peer.c, got, peer.accuracy)
		}
		expect.Near(t, fit.Norm(weights), peer.norm, .015*peer.norm, "C", peer.c, "norm of the weights")
	}
}

// smallProtocol returns a protocol that is fast enough for tests.
func smallProtocol(seed uint64) *SVMProtocol {
	p := NewSVMProtocol(seed)
	p.Grid, p.GridSplits, p.Splits, p.Test = []float64{0.01, 1, 100}, 3, 4, 0.2
	return p
}

func TestTheProtocolIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	features, labels := clouds(rand.New(rand.NewPCG(4, 4)), 600, 5, 3)
	run := func(seed uint64, procs int) *SVMResult {
		runtime.GOMAXPROCS(procs)
		r, err := smallProtocol(seed).Measure(context.Background(), features, 5, labels)
		fatal.If(t, err)
		return r
	}
	one := run(1, 1)
	if many := run(1, 3); !reflect.DeepEqual(one, many) {
		t.Errorf("one processor: %+v, three: %+v", one, many)
	}
	if other := run(2, 1); reflect.DeepEqual(one.Grid, other.Grid) {
		t.Error("another seed gives the same splits")
	}
}

func TestTheProtocolFindsWhatCanBeSeparated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	features, labels := uniform(r, 500*2), make([]int, 500)
	for i := range labels {
		labels[i] = i % 2
		features[2*i] += 1.5 * float32(labels[i])
	}
	protocol := smallProtocol(1)
	protocol.Grid = []float64{1e-4, 100} // at the first C both classes look alike
	got, err := protocol.Measure(context.Background(), features, 2, labels)
	fatal.If(t, err)
	if got.Accuracy != 1 || got.Std != 0 || got.C != 100 || got.Grid[1] != 1 || got.Grid[0] == 1 {
		t.Errorf("separable classes: %+v", got)
	}
	r.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	if got, err = protocol.Measure(context.Background(), features, 2, labels); err != nil || got.Accuracy > 0.7 || got.Std == 0 {
		t.Errorf("random labels: %+v %v", got, err)
	}
}

func TestSplitsAreStratifiedPartitions(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	labels := make([]int, 997)
	counts := make([]float64, 4)
	for i := range labels {
		labels[i] = min(r.IntN(8), 3)
		counts[labels[i]]++
	}
	p, err := fit.Of("split", make([]float32, len(labels)), 1, labels)
	fatal.If(t, err)
	for _, fraction := range []float64{0.05, 0.08, 0.2, 0.5} {
		train, test, err := p.Split(fraction, random.Stream(1, "test", 0))
		fatal.If(t, err)
		expect.Equal(t, len(test), int(math.Ceil(fraction*997)), "fraction", fraction, len(test), "test images")
		expect.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(train, test))))), 997, "fraction", fraction, "the sides are no partition")
		share := make([]float64, 4)
		for _, i := range test {
			share[labels[i]]++
		}
		for class, n := range share {
			if math.Abs(n-counts[class]*float64(len(test))/997) >= 1 {
				t.Errorf("fraction %g: class %d has %g of %d test images", fraction, class, n, len(test))
			}
		}
		_, again, _ := p.Split(fraction, random.Stream(1, "test", 0))
		_, other, _ := p.Split(fraction, random.Stream(1, "test", 1))
		if !slices.Equal(test, again) || slices.Equal(test, other) {
			t.Errorf("fraction %g: the stream does not decide the split", fraction)
		}
	}
}

func TestTheStudysGrid(t *testing.T) {
	g := NewSVMProtocol(1).Grid
	if len(g) != 30 || math.Abs(g[0]-.01) > 1e-12 || math.Abs(g[29]-1000) > 1e-9 || math.Abs(g[1]/g[0]-math.Pow(10, 5.0/29)) > 1e-12 {
		t.Errorf("grid %v", g)
	}
}

func TestTheSVMRefusesWhatItCannotFit(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	features, labels := clouds(rand.New(rand.NewPCG(7, 4)), 60, 2, 2)
	infinite := slices.Clone(features)
	infinite[5] = float32(math.Inf(1))
	few := make([]int, 60)
	few[0] = 1
	for name, c := range map[string]struct {
		ctx      context.Context
		features []float32
		labels   []int
		edit     func(*SVMProtocol)
		want     string
		data     bool // the error concerns the labels: a *data.Error
	}{
		"no labels":       {labels: nil, want: "0 labels for 60 codes"},
		"one class":       {labels: make([]int, 60), want: "1 classes", data: true},
		"a class of one":  {labels: few, want: "too small", data: true},
		"infinite":        {features: infinite, labels: labels, want: "code 2 has the value +Inf"},
		"cancelled":       {ctx: cancelled, labels: labels, want: "canceled"},
		"fraction":        {labels: labels, edit: func(p *SVMProtocol) { p.Test = 1 }, want: "test fraction 1"},
		"splits":          {labels: labels, edit: func(p *SVMProtocol) { p.Splits = 0 }, want: "splits"},
		"descending grid": {labels: labels, edit: func(p *SVMProtocol) { p.Grid = []float64{2, 1} }, want: "ascending"},
	} {
		p := smallProtocol(1)
		if c.edit != nil {
			c.edit(p)
		}
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		if c.features == nil {
			c.features = features
		}
		var bad *data.Error
		if _, err := p.Measure(c.ctx, c.features, 2, c.labels); err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &bad) != c.data {
			t.Errorf("%s: error %v, want one with %q, a *data.Error: %v", name, err, c.want, c.data)
		}
	}
}

func TestEvaluateReportsTheSVM(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 4))
	images, labels := clouds(r, 300, 12, 3)
	c := newAffine(r, []int{3, 4}, 20)
	labels = append(labels, -1, -1) // two images of an unknown class
	images = append(images, images[:24]...)
	got, err := Evaluate(context.Background(), c, Sample{Images: images, Labels: labels}, Selection{{Metric: &SVM{Protocol: smallProtocol(3)}}})
	fatal.If(t, err)
	labels, images = labels[:300], images[:3600]
	codes, _ := c.Encode(images)
	want, err := smallProtocol(3).Measure(context.Background(), codes, 20, labels)
	fatal.If(t, err)
	if number(t, got, "svm_accuracy") != want.Accuracy || number(t, got, "svm_std") != want.Std || number(t, got, "svm_c") != want.C {
		t.Errorf("got %+v, want %+v", got.Values, want)
	}
}
