package train

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data"
	"tessera/data/augment"
	"tessera/graph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// filled returns the inputs of the second batch of a loader with the given number of threads.
func filled(t *testing.T, threads int) (views, labels []float32) {
	t.Helper()
	const n, side, classes, size = 60, 5, 3, 40
	pixels, known := make([]float32, n*side*side), make([]int, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range pixels {
		pixels[i] = r.Float32()
	}
	for i := range known {
		known[i] = i%(classes+1) - 1 // every fourth is unknown
	}
	images, err := data.NewFloats([]int{side, side}, pixels, known)
	fatal.If(t, err)
	inputs := map[int][]graph.Input{}
	for _, batch := range []int{size, n % size} {
		inputs[batch] = []graph.Input{{Name: graph.Views, Shape: []int{2 * batch, side, side}}, {Name: graph.Labels, Column: "labels", Classes: classes, Shape: []int{batch, classes}}}
	}
	chain, err := augment.NewChain([]augment.Augmentation{&augment.Noise{Std: 0.3}}, []int{side, side})
	fatal.If(t, err)
	l := &loader{images: images, seed: 7, size: size, epochs: 2, threads: threads, inputs: inputs, views: []*augment.Chain{chain}}
	l.Start(0, 0, 0)
	for range 2 {
		for thread := range threads {
			l.Fill(thread)
		}
		b := taken(t, l)
		views, labels = slices.Clone(b.values[0]), slices.Clone(b.values[1])
	}
	return views, labels
}

// If an augmentation fails on any thread, the batch is not used.
func TestAnErrorOfAViewEndsTheTraining(t *testing.T) {
	images, err := data.NewFloats([]int{2, 2}, make([]float32, 4*40), nil)
	fatal.If(t, err)
	other, err := augment.NewChain(nil, []int{3, 3}) // of images of another size
	fatal.If(t, err)
	inputs := map[int][]graph.Input{40: {{Name: graph.Views, Shape: []int{80, 2, 2}}}}
	l := &loader{images: images, size: 40, epochs: 1, threads: 2, inputs: inputs, views: []*augment.Chain{other}}
	l.Start(0, 0, 0)
	fill(l)
	expect.Error(t, expect.Err(l.Take()), "want as many, and a multiple of 9")
}

func TestViewsAndLabelsDoNotDependOnTheNumberOfThreads(t *testing.T) {
	views, labels := filled(t, 1)
	for _, threads := range []int{2, 3, 5} {
		v, l := filled(t, threads)
		expect.Slice(t, v, views, threads, "threads give another batch than one")
		expect.Slice(t, l, labels, threads, "threads give another batch than one")
	}
	first, second := views[:len(views)/2], views[len(views)/2:]
	if slices.Equal(first, second) {
		t.Error("both views of every image are the same")
	}
	unknown := 0
	for row := range slices.Chunk(labels, 3) {
		sum := row[0] + row[1] + row[2]
		if sum != 0 && sum != 1 {
			t.Errorf("labels %v, want one 1, or none", row)
		}
		if sum == 0 {
			unknown++
		}
	}
	if unknown == 0 || unknown == len(labels)/3 {
		t.Errorf("%d of %d labels are unknown", unknown, len(labels)/3)
	}
}
