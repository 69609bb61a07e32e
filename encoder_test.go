package tessera_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tessera"
	"tessera/config"
	"tessera/metrics"
)

var (
	encodes    = flag.Int("encodes", 5, "how many times each of 64 goroutines encodes; make encode-load takes 20000")
	encodeSeed = flag.Uint64("encode-seed", 0, "the seed of what they encode, which the test logs; 0 takes a new one")
)

// untrained returns the run of a model of that text after no more than one pass over a few images.
func untrained(t testing.TB, text string, o tessera.Options) *tessera.Run {
	t.Helper()
	dir := t.TempDir()
	file := dir + "/models.toml"
	if err := os.WriteFile(file, []byte("[model.m]\n"+text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	models, err := tessera.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Model("m", config.Passes(1))
	if err != nil {
		t.Fatal(err)
	}
	o.Out = dir + "/run"
	run, err := tessera.Train(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
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

// randomImages returns n images of a run, drawn by that seed.
func randomImages(run *tessera.Run, n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n*pixels(run))
	for i := range x {
		x[i] = r.Float32()
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Issue 10, done when 6: make encode-load runs it in full.
func TestManyGoroutinesGetTheCodesOfOne(t *testing.T) {
	const goroutines, most = 64, 300
	run := untrained(t, denseText, tessera.Options{})
	e := encoder(t, run, tessera.EncoderOptions{})
	images := randomImages(run, most, 1)
	want, err := run.Encode(images)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		e := encoder(t, run, tessera.EncoderOptions{Sizes: []int{1, 4, 30}, Workers: 1})
		in, out := pixels(run), run.Units()
		for n := 1; n <= 30; n++ {
			got, err := e.Encode(t.Context(), nil, images[:n*in])
			if err != nil || !sameBits(got, want[:n*out]) {
				t.Errorf("%s: %d images: other codes than of all at once, error %v", name, n, err)
			}
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
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

// singly codes rows of that many values one by one.
func singly(t *testing.T, rows []float32, width int, code func([]float32) ([]float32, error)) (all []float32) {
	t.Helper()
	for row := range slices.Chunk(rows, width) {
		values, err := code(row)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values...)
	}
	return all
}

// The KL rule begins with the mean code of a block, so that codes of a block depend on all of its images.
func TestABaselinesCodeDependsOnNoOtherImage(t *testing.T) {
	run := untrained(t, baselineText+"\nsolver = \"mu\"\nloss = \"kl\"", tessera.Options{})
	images := randomImages(run, 16, 5)
	e := encoder(t, run, tessera.EncoderOptions{})
	all, err := e.Encode(t.Context(), nil, images)
	if err != nil {
		t.Fatal(err)
	}
	one, err := e.Encode(t.Context(), nil, images[:pixels(run)])
	if err != nil || !sameBits(one, all[:run.Units()]) {
		t.Errorf("the code of an image alone: got %v, want %v, error %v", one, all[:run.Units()], err)
	}
}

// slow is a metric that computes from started until release is closed.
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
	if _, err := e.Encode(ctx, nil, one); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the run computes: got %v, want the context's error", err)
	}
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
			if _, err := e.Encode(ctx, nil, randomImages(run, n, 3)); !errors.Is(err, context.Canceled) {
				t.Errorf("%d images: got %v, want the context's error", n, err)
			}
		}
	}
}

func TestAStreamKeepsTheOrder(t *testing.T) {
	run := untrained(t, smallText, tessera.Options{})
	e := encoder(t, run, tessera.EncoderOptions{})
	in, out := pixels(run), run.Units()
	images := randomImages(run, 700, 4)
	want, err := e.Encode(t.Context(), nil, images)
	if err != nil {
		t.Fatal(err)
	}
	singly := slices.Chunk(images, in)
	for name, pieces := range map[string]iter.Seq[[]float32]{"one": singly, "seven": slices.Chunk(images, 7*in), "all": slices.Values([][]float32{images})} {
		var got []float32
		for codes, err := range e.Stream(t.Context(), pieces) {
			if err != nil {
				t.Fatal(err)
			}
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
		if _, err := run.Encoder(o); err == nil {
			t.Errorf("%+v: an encoder", o)
		}
	}
	e := encoder(t, run, tessera.EncoderOptions{})
	if _, err := e.Encode(t.Context(), nil, make([]float32, 65)); err == nil || !strings.Contains(err.Error(), "65 values") {
		t.Errorf("a pixel too many: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Encode(ctx, nil, make([]float32, 64)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Encode(t.Context(), nil, make([]float32, 64)); !errors.Is(err, tessera.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Encoder(tessera.EncoderOptions{}); !errors.Is(err, tessera.ErrClosed) {
		t.Errorf("of a closed run: %v", err)
	}
}

func TestTwoGoroutinesMayUseARun(t *testing.T) {
	run := untrained(t, smallText, tessera.Options{Threads: 2})
	images := randomImages(run, 40, 5)
	want, err := run.Encode(images)
	if err != nil {
		t.Fatal(err)
	}
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
