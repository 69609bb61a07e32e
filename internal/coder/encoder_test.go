package coder_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera"
	"tessera/config"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/metrics"
)

var (
	encodes    = flag.Int("encodes", 5, "how many times each of 64 goroutines encodes; make encode-load takes 20000")
	encodeSeed = flag.Uint64("encode-seed", 0, "the seed of what they encode, which the test logs; 0 takes a new one")
)

// untrained returns the run of a declared model after at most one pass over a few images.
func untrained(t testing.TB, text string, o tessera.Options) *tessera.Run {
	t.Helper()
	dir := t.TempDir()
	file := dir + "/models.toml"
	fatal.If(t, os.WriteFile(file, []byte("[model.m]\n"+text+"\n"), 0o600))
	models, err := tessera.Load(file)
	fatal.If(t, err)
	m, err := models.Model("m", config.Passes(1))
	fatal.If(t, err)
	o.Out = dir + "/run"
	run, err := tessera.Train(t.Context(), m, o)
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}

// The models whose codes are compared.
const (
	denseText = `dataset = { name = "swimmer", limit = 20 }
encoder = [{ kind = "dense", units = 100, activation = "sigmoid" }]`
	convolutionText = `dataset = { name = "swimmer", limit = 20 }
encoder = [{ kind = "conv2d", filters = 64, kernel = 4, stride = 2, activation = "leaky_relu" },
  { kind = "conv2d", filters = 64, kernel = 4, stride = 2, activation = "leaky_relu" },
  { kind = "dense", units = 20, activation = "sigmoid" }]`
	smallText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "dense", units = 10, activation = "sigmoid" }]`
	baselineText = `kind = "nmf"
components = 6
dataset = { name = "bars", count = 60 }`
)

// randomImages returns n images for a run, drawn with the given seed.
func randomImages(run *tessera.Run, n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := lists.Of(n*pixels(run), func(int) float32 { return r.Float32() })
	return x
}

func pixels(run *tessera.Run) int {
	n := 1
	for _, d := range run.Shape() {
		n *= d
	}
	return n
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func encoder(t testing.TB, run *tessera.Run, o tessera.EncoderOptions) *tessera.Encoder {
	t.Helper()
	e, err := run.Encoder(o)
	fatal.If(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// make encode-load runs this test at full size.
func TestManyGoroutinesGetTheCodesOfOne(t *testing.T) {
	const goroutines, most = 64, 300
	run := untrained(t, denseText, tessera.Options{})
	e := encoder(t, run, tessera.EncoderOptions{})
	images := randomImages(run, most, 1)
	want, err := run.Encode(images)
	fatal.If(t, err)
	in, out := pixels(run), run.Units()
	seed := *encodeSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("what is encoded is that of -encode-seed %d", seed)
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			var codes []float32
			for range *encodes {
				n := 1 + r.IntN(most)
				from := r.IntN(most - n + 1)
				var err error
				codes, err = e.Encode(context.Background(), codes[:0], images[from*in:(from+n)*in])
				if err != nil || !sameBits(codes, want[from*out:(from+n)*out]) {
					t.Errorf("images %d to %d: other codes than serially, error %v", from, from+n, err)
					return
				}
			}
		})
	}
	wait.Wait()
	if n := e.Programs(); n > 8 {
		t.Errorf("%d programs compiled, want at most 8", n)
	}
	t.Logf("%d goroutines, %d encodes each, %d programs", goroutines, *encodes, e.Programs())
}

func TestAnImagesCodeHasTheSameBitsInEveryCall(t *testing.T) {
	for name, run := range map[string]*tessera.Run{
		"dense": untrained(t, denseText, tessera.Options{Threads: 2}), "convolution": untrained(t, convolutionText, tessera.Options{Threads: 2}),
		"tape": untrained(t, smallText, tessera.Options{Backend: tessera.Tape}),
	} {
		images := randomImages(run, 30, 2)
		want, err := run.Encode(images)
		fatal.If(t, err)
		e := encoder(t, run, tessera.EncoderOptions{Sizes: []int{1, 4, 30}, Workers: 1})
		in, out := pixels(run), run.Units()
		for n := 1; n <= 30; n++ {
			got, err := e.Encode(t.Context(), nil, images[:n*in])
			if err != nil || !sameBits(got, want[:n*out]) {
				t.Errorf("%s: %d images: other codes than of all at once, error %v", name, n, err)
			}
		}
		fatal.If(t, run.Close())
		if got, err := e.Encode(t.Context(), nil, images[:in]); err != nil || !sameBits(got, want[:out]) {
			t.Errorf("%s: after Close of the run: error %v", name, err)
		}
	}
}

func TestABaselineHasAnEncoderToo(t *testing.T) {
	run := untrained(t, baselineText, tessera.Options{})
	images := randomImages(run, 20, 3)
	want := singly(t, images, pixels(run), run.Encode)
	e := encoder(t, run, tessera.EncoderOptions{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if got, err := e.Encode(context.Background(), nil, images); err != nil || !sameBits(got, want) {
				t.Errorf("other codes than serially, error %v", err)
			}
		})
	}
	wait.Wait()
}

// singly calls code for each row of the given width, and returns the concatenated results.
func singly(t *testing.T, rows []float32, width int, code func([]float32) ([]float32, error)) (all []float32) {
	t.Helper()
	for row := range slices.Chunk(rows, width) {
		values, err := code(row)
		fatal.If(t, err)
		all = append(all, values...)
	}
	return all
}

// The KL rule starts with the mean code of a block, so that the codes of a block depend on all of its images.
func TestABaselinesCodeDependsOnNoOtherImage(t *testing.T) {
	run := untrained(t, baselineText+"\nsolver = \"mu\"\nloss = \"kl\"", tessera.Options{})
	images := randomImages(run, 16, 5)
	e := encoder(t, run, tessera.EncoderOptions{})
	all, err := e.Encode(t.Context(), nil, images)
	fatal.If(t, err)
	one, err := e.Encode(t.Context(), nil, images[:pixels(run)])
	if err != nil || !sameBits(one, all[:run.Units()]) {
		t.Errorf("the code of an image alone: got %v, want %v, error %v", one, all[:run.Units()], err)
	}
}

// slow is a metric that is started, signals this on started, and computes until release is closed.
type slow struct{ started, release chan struct{} }

func (s slow) Describe() metrics.Description {
	return metrics.Description{Reads: metrics.ReadsCodes, Measures: []metrics.Measure{{Name: "slow"}}}
}
func (s slow) Start(*metrics.Subject) (metrics.Meter, error) { return s, nil }
func (s slow) Add(*metrics.Batch) error                      { s.started <- struct{}{}; <-s.release; return nil }
func (slow) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{metrics.Number(0)}, nil
}

func TestABaselinesEncoderWaitsNoLongerThanItsContext(t *testing.T) {
	run := untrained(t, baselineText, tessera.Options{})
	e := encoder(t, run, tessera.EncoderOptions{})
	one := randomImages(run, 1, 3)
	s := slow{make(chan struct{}), make(chan struct{})}
	var measuring sync.WaitGroup
	measuring.Go(func() { _, _ = run.Evaluate(context.Background(), metrics.Selection{{Metric: s}}) })
	<-s.started // the run computes until release is closed
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	expect.Is(t, expect.Err(e.Encode(ctx, nil, one)), context.DeadlineExceeded, "while the run computes")
	close(s.release)
	go func() {
		for range s.started { // further batches
		}
	}()
	measuring.Wait()
	close(s.started)
	if codes, err := e.Encode(t.Context(), nil, one); err != nil || len(codes) != run.Units() {
		t.Errorf("afterwards: %d values, %v", len(codes), err)
	}
}

func TestACancelledContextEncodesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{smallText, baselineText} {
		run := untrained(t, text, tessera.Options{})
		e := encoder(t, run, tessera.EncoderOptions{})
		for _, n := range []int{0, 1} {
			expect.Is(t, expect.Err(e.Encode(ctx, nil, randomImages(run, n, 3))), context.Canceled, n, "images")
		}
	}
}

func TestAStreamKeepsTheOrder(t *testing.T) {
	run := untrained(t, smallText, tessera.Options{})
	e := encoder(t, run, tessera.EncoderOptions{})
	in, out := pixels(run), run.Units()
	images := randomImages(run, 700, 4)
	want, err := e.Encode(t.Context(), nil, images)
	fatal.If(t, err)
	singly := slices.Chunk(images, in)
	for name, pieces := range map[string]iter.Seq[[]float32]{"one": singly, "seven": slices.Chunk(images, 7*in), "all": slices.Values([][]float32{images})} {
		var got []float32
		for codes, err := range e.Stream(t.Context(), pieces) {
			fatal.If(t, err)
			got = append(got, codes...)
		}
		if !sameBits(got, want) {
			t.Errorf("%s image at a time: other codes, %d values instead of %d", name, len(got), len(want))
		}
	}
	count := 0
	for codes, err := range e.Stream(t.Context(), singly) {
		if count++; err != nil || len(codes) != out {
			t.Errorf("%d codes, error %v", len(codes), err)
		}
		if count == 3 {
			break
		}
	}
	broken := func(yield func([]float32) bool) { _ = yield(images[:in]) && yield(images[:in+1]) }
	var errs []error
	for _, err := range e.Stream(t.Context(), broken) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || errs[1] == nil {
		t.Errorf("one image and a bit: %v", errs)
	}
}

func TestAnEncoderThatCannotEncodeSaysWhy(t *testing.T) {
	run := untrained(t, smallText, tessera.Options{})
	for _, o := range []tessera.EncoderOptions{{Sizes: []int{}}, {Sizes: []int{0}}, {Sizes: []int{-3, 4}}, {Workers: -1}} {
		expect.AnyError(t, expect.Err(run.Encoder(o)), o, "an encoder")
	}
	e := encoder(t, run, tessera.EncoderOptions{})
	expect.Error(t, expect.Err(e.Encode(t.Context(), nil, make([]float32, 65))), "65 values", "a pixel too many")
	rows := make([]float32, 2*64)
	rows[64+3] = float32(math.NaN())
	_, one := e.Encode(t.Context(), nil, rows)
	_, all := run.Encode(rows)
	_, output := run.Value("output", rows)
	_, decoded := run.Decode(rows[64:])
	for want, err := range map[string]error{"encode: row 1, value 3": one, `model "m": encode: row 1, value 3`: all, `model "m": output: row 1, value 3`: output, `model "m": decode: row `: decoded} {
		expect.Error(t, err, want)
		expect.Error(t, err, ": got NaN, want a finite number", want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Is(t, expect.Err(e.Encode(ctx, nil, make([]float32, 64))), context.Canceled, "an ended context")
	fatal.If(t, e.Close())
	expect.Is(t, expect.Err(e.Encode(t.Context(), nil, make([]float32, 64))), tessera.ErrClosed, "after Close")
	fatal.If(t, run.Close())
	expect.Is(t, expect.Err(run.Encoder(tessera.EncoderOptions{})), tessera.ErrClosed, "of a closed run")
}

func TestTwoGoroutinesMayUseARun(t *testing.T) {
	run := untrained(t, smallText, tessera.Options{Threads: 2})
	images := randomImages(run, 40, 5)
	want, err := run.Encode(images)
	fatal.If(t, err)
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for n := g + 1; n < 40; n += 4 {
				got, err := run.Encode(images[:n*64])
				if err != nil || !sameBits(got, want[:n*run.Units()]) {
					t.Errorf("%d images: other codes, error %v", n, err)
				}
			}
		})
	}
	wait.Wait()
}

// BenchmarkEncoder encodes single images and batches with the shipped shallow model.
func BenchmarkEncoder(b *testing.B) {
	run := untrained(b, denseText, tessera.Options{})
	e := encoder(b, run, tessera.EncoderOptions{})
	for _, n := range []int{1, 8, 64, 256} {
		images := randomImages(run, n, 6)
		b.Run(fmt.Sprintf("images=%d", n), func(b *testing.B) {
			var codes []float32
			var err error
			for b.Loop() {
				if codes, err = e.Encode(context.Background(), codes[:0], images); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// headText declares a model with a head.
const headText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "dense", units = 10, activation = "sigmoid" }]
head = { side = { from = "code", layers = [{ kind = "dense", units = 3 }] } }
loss = [{ kind = "mse" }, { kind = "l1", on = "side", weight = 0.001 }]`

func TestAnEncoderComputesAnyValue(t *testing.T) {
	for model, values := range map[string][]string{headText: {"code", "output", "side"}, baselineText: {"code", "output"}} {
		run := untrained(t, model, tessera.Options{Threads: 1})
		x := randomImages(run, 9, 4)
		for _, value := range values {
			var want []float32
			var err error
			if value == "output" {
				want = singly(t, singly(t, x, pixels(run), run.Encode), run.Units(), run.Decode)
			} else if value == "code" {
				want = singly(t, x, pixels(run), run.Encode)
			} else {
				want, err = run.Value(value, x)
			}
			fatal.If(t, err)
			e := encoder(t, run, tessera.EncoderOptions{Value: value, Workers: 1})
			got, err := e.Encode(t.Context(), nil, x)
			if err != nil || !sameBits(got, want) || e.Units() != len(want)/9 {
				t.Errorf("%s: %d values of %d each, %v; want %d, the same", value, len(got), e.Units(), err, len(want))
			}
		}
		expect.AnyError(t, expect.Err(run.Encoder(tessera.EncoderOptions{Value: "nothing"})), "a value that the model does not have")
	}
}

// species declares a classifier for the rows of a .csv file. The first value distinguishes the two species.
func species(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/flowers.csv"
	rows := "long,wide,species\n"
	for i := range 40 {
		rows += fmt.Sprintf("%d,%d,%s\n", i%2, i%5, []string{"setosa", "virginica"}[i%2])
	}
	fatal.If(t, os.WriteFile(file, []byte(rows), 0o600))
	return `dataset = { name = "csv", images = "` + filepath.ToSlash(file) + `", labels = "species", validation = 0 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
head = { kind = { layers = [{ kind = "dense" }] } }
loss = [{ kind = "cross_entropy", on = "kind" }]
optimizer = { learning_rate = 0.3 }
train = { batch = 1 }`
}

func TestAClassifierPredictsTheNamesOfItsClasses(t *testing.T) {
	trained := untrained(t, species(t), tessera.Options{Threads: 1})
	opened, err := tessera.Open(trained.Path, tessera.Options{})
	fatal.If(t, err)
	defer opened.Close()
	file, err := os.ReadFile(trained.Path + "/model.safetensors")
	fatal.If(t, err)
	read, err := tessera.ReadModel(file, tessera.Options{})
	fatal.If(t, err)
	defer read.Close()
	x := []float32{0, 2, 1, 2, 1, 3}
	logits, err := trained.Value("kind", x)
	fatal.If(t, err)
	for _, run := range []*tessera.Run{trained, opened, read} {
		for _, head := range []string{"", "kind"} {
			p, err := run.Predict(head, x)
			fatal.If(t, err)
			if !slices.Equal(p.Classes, []string{"setosa", "virginica"}) || !slices.Equal(p.Labels, []int{0, 1, 1}) || p.Head != "kind" {
				t.Errorf("got %+v", p)
			}
			for i := range 3 {
				want := 1 / (1 + math.Exp(float64(logits[2*i+1-p.Labels[i]]-logits[2*i+p.Labels[i]])))
				if got := float64(p.Probability(i)); math.Abs(got-want) > 1e-6 || math.Abs(float64(p.Probabilities[2*i]+p.Probabilities[2*i+1])-1) > 1e-6 {
					t.Errorf("sample %d: probability %v of %v, want %v", i, got, p.Probabilities, want)
				}
			}
		}
	}
	expect.Error(t, expect.Err(opened.Predict("code", x)), `want one of "kind"`, "of a value without classes")
	expect.Is(t, expect.Err(untrained(t, headText, tessera.Options{Threads: 1}).Predict("", make([]float32, 64))), tessera.ErrNoClasses, "of a model without classes")
}

// pooling is a user-defined layer with a stateful op of Gorgonia: [gorgonia.MaxPool2D] stores the positions of the maxima.
type pooling struct{}

func init() {
	layers.Registry.Register("zz_pooling", "largest values of 2 x 2 pixels", func() layers.Layer { return pooling{} })
}

func (pooling) OutputShape(in []int) ([]int, error) {
	if len(in) != 2 || in[0]%2+in[1]%2 > 0 {
		return nil, fmt.Errorf("got images of shape %v, want two even sizes", in)
	}
	return []int{in[0] / 2, in[1] / 2}, nil
}

func (pooling) Parameters([]int) []layers.Parameter { return nil }

func (pooling) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	n, h, w := x.Shape()[0], x.Shape()[1], x.Shape()[2]
	var c ops.Chain
	y := c.Do("images", func() (*gorgonia.Node, error) { return ops.Reshape(x, n, 1, h, w) })
	y = c.Do("pooling", func() (*gorgonia.Node, error) {
		return gorgonia.MaxPool2D(y, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
	})
	y = c.Do("pooled", func() (*gorgonia.Node, error) { return ops.Reshape(y, n, h/2, w/2) })
	return y, c.Err()
}

const poolingText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "zz_pooling" }, { kind = "dense", units = 10, activation = "sigmoid" }]`

// Every program of an encoder has a separate graph with separate ops: only one goroutine uses the state of an op.
func TestGoroutinesDoNotShareTheOpsOfAUsersLayer(t *testing.T) {
	for _, backend := range tessera.Backends() {
		run := untrained(t, poolingText, tessera.Options{Backend: backend})
		e := encoder(t, run, tessera.EncoderOptions{Sizes: []int{1, 8}, Workers: 8})
		in, out, n := pixels(run), run.Units(), 40
		images := randomImages(run, n, 3)
		want, err := e.Encode(t.Context(), nil, images)
		fatal.If(t, err)
		if serial, err := run.Encode(images); err != nil || !sameBits(serial, want) {
			t.Errorf("%s: other codes than of the run, error %v", backend, err)
		}
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				for k := range 20 {
					from := (5*g + k) % n
					to := min(from+1+(g+k)%8, n)
					got, err := e.Encode(t.Context(), nil, images[from*in:to*in])
					if err != nil || !sameBits(got, want[from*out:to*out]) {
						t.Errorf("%s: images %d to %d: other codes than serially, error %v", backend, from, to, err)
					}
				}
			})
		}
		wait.Wait()
	}
}
