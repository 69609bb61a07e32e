package train

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// numbered returns n images of one value each: the index of the image.
func numbered(t *testing.T, n int) *data.Images {
	t.Helper()
	values := lists.Of(n, func(i int) float32 { return float32(i) })
	images, err := data.NewFloats([]int{1}, values, nil)
	fatal.If(t, err)
	return images
}

// loads returns the batches of a loader of 10 images, in batches of 4, from the given position to the end of epoch 3.
func loads(t *testing.T, epoch, position, step int) (batches [][][]float32) {
	t.Helper()
	inputs := map[int][]graph.Input{}
	for _, size := range []int{4, 2} {
		inputs[size] = []graph.Input{{Name: "input", Column: "images", Shape: []int{size, 1}}, {Name: "encoder.0.noise", Shape: []int{size, 3}, Sampler: uniform{}}}
	}
	l := &loader{images: numbered(t, 10), seed: 7, size: 4, epochs: 3, threads: 2, inputs: inputs}
	l.Start(epoch, position, step)
	fill(l)
	for ; epoch < 3; epoch, position = epoch+1, 0 {
		for ; position < 10; position += 4 {
			b := taken(t, l)
			fill(l)
			if want := min(4, 10-position); b.size != want || len(b.values[0]) != want || len(b.values[1]) != 3*want {
				t.Fatalf("a batch has %d images, %d and %d values; want %d images", b.size, len(b.values[0]), len(b.values[1]), want)
			}
			batches = append(batches, [][]float32{slices.Clone(b.values[0]), slices.Clone(b.values[1])})
		}
	}
	return batches
}

// An epoch of several passes has the same batches as several epochs of one pass, and so does a loader that starts at any of
// these batches.
func TestPassesAreEpochsOfOnePass(t *testing.T) {
	const passes = 3
	want := loads(t, 0, 0, 0) // three epochs of three batches
	for first := range want {
		l := &loader{images: numbered(t, 10), seed: 7, size: 4, epochs: 1, passes: passes, threads: 2, inputs: map[int][]graph.Input{}}
		for _, size := range []int{4, 2} {
			l.inputs[size] = []graph.Input{{Name: "input", Column: "images", Shape: []int{size, 1}}, {Name: "encoder.0.noise", Shape: []int{size, 3}, Sampler: uniform{}}}
		}
		l.Start(0, first/3*10+first%3*4, first)
		fill(l)
		for i := first; i < len(want); i++ {
			expect.Equal(t, l.done(), float64(i/3*10+i%3*4)/(passes*10), "before batch", i)
			b := taken(t, l)
			fill(l)
			expect.Slice(t, b.values[0], want[i][0], "begun at batch", first, "batch", i)
			expect.Slice(t, b.values[1], want[i][1], "begun at batch", first, "batch", i)
		}
		expect.Equal(t, taken(t, l).size, 0, "begun at batch", first, "after the last one there is another")
	}
}

// taken returns the filled batch.
func taken(t *testing.T, l *loader) *batch {
	t.Helper()
	b, err := l.Take()
	fatal.If(t, err)
	return b
}

// fill fills the next batch like two threads.
func fill(l *loader) {
	l.Fill(1)
	l.Fill(0)
}

func TestEveryEpochHasEachImageOnceInAnotherOrder(t *testing.T) {
	batches := loads(t, 0, 0, 0)
	var orders [][]float32
	for e := range 3 {
		var order []float32
		for _, b := range batches[3*e : 3*e+3] {
			order = append(order, b[0]...)
		}
		orders = append(orders, order)
		sorted := slices.Sorted(slices.Values(order))
		for i, v := range sorted {
			if v != float32(i) {
				t.Fatalf("epoch %d has images %v", e, sorted)
			}
		}
	}
	if slices.Equal(orders[0], orders[1]) || slices.Equal(orders[1], orders[2]) {
		t.Errorf("epochs have the same order: %v", orders)
	}
}

func TestNoiseIsTheStreamOfItsPathAndStep(t *testing.T) {
	for step, b := range loads(t, 0, 0, 0) {
		want := make([]float32, len(b[1]))
		uniform{}.Sample(want, noise(7, "encoder.0.noise", 0, step))
		expect.Slice(t, b[1], want, "step", step, "noise")
	}
}

func TestALoaderStartsAtAnyPosition(t *testing.T) {
	all := loads(t, 0, 0, 0)
	for step := range all {
		got := loads(t, step/3, step%3*4, step)
		for i, b := range got {
			if want := all[step+i]; !slices.Equal(b[0], want[0]) || !slices.Equal(b[1], want[1]) {
				t.Errorf("begun at step %d, batch %d differs", step, i)
			}
		}
	}
}

func TestTheNumberOfThreadsChangesNoValue(t *testing.T) {
	inputs := map[int][]graph.Input{70: {{Name: "input", Column: "images", Shape: []int{70, 1}}, {Name: "noise", Shape: []int{70, 3}, Sampler: uniform{}}}}
	var want *batch
	for _, threads := range []int{1, 2, 3, 9} {
		l := &loader{images: numbered(t, 70), seed: 7, size: 70, epochs: 1, threads: threads, inputs: inputs}
		l.Start(0, 0, 0)
		for thread := range threads {
			l.Fill(thread)
		}
		got := taken(t, l)
		if want == nil {
			want = got
		}
		expect.Slice(t, got.values[0], want.values[0], threads, "threads give another batch than one")
		expect.Slice(t, got.values[1], want.values[1], threads, "threads give another batch than one")
	}
}

// spoilt is a user-defined sampler that panics.
type spoilt struct{}

func (spoilt) Sample([]float32, *rand.Rand) { panic("no noise") }

func TestASamplerThatPanicsInTheFirstBatchIsAnError(t *testing.T) {
	inputs := map[int][]graph.Input{70: {{Name: "input", Column: "images", Shape: []int{70, 1}}, {Name: "noise", Shape: []int{70, 3}, Sampler: spoilt{}}}}
	for _, n := range []int{1, 3} {
		n := &network{
			trainee: &trainee{job: &job{options: Options{Team: threads(t, n)}}},
			loader:  &loader{images: numbered(t, 70), seed: 7, size: 70, epochs: 1, threads: n, inputs: inputs},
		}
		n.loader.Start(0, 0, 0)
		expect.Error(t, n.fill(), "no noise")
	}
}

func TestASamplerThatPanicsInAnEvaluationIsAnError(t *testing.T) {
	f, err := newFeed(numbered(t, 70), nil, 7)
	fatal.If(t, err)
	p := &program{Program: &graph.Program{Inputs: []graph.Input{{Name: "noise", Shape: []int{70, 3}, Sampler: spoilt{}}}}}
	expect.Error(t, f.run(p, 0, 70), "no noise")
}
