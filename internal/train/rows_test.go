package train

import (
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/data/augment"
	"tessera/graph"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// opener returns a function that returns a loader for one of several processes, with labelled images in batches of 40 and 3,
// views and every kind of noise.
func opener(t *testing.T) (func(rank, processes int) *loader, map[int][]graph.Input) {
	t.Helper()
	const side, classes, size, n = 4, 3, 40, 83
	pixels, known := make([]float32, n*side*side), make([]int, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range pixels {
		pixels[i] = r.Float32()
	}
	for i := range known {
		known[i] = i % classes
	}
	images, err := data.NewFloats([]int{side, side}, pixels, known)
	fatal.If(t, err)
	chain, err := augment.NewChain([]augment.Augmentation{&augment.Noise{Std: 0.3}}, []int{side, side})
	fatal.If(t, err)
	inputs := map[int][]graph.Input{}
	for _, batch := range []int{size, n % size} {
		inputs[batch] = []graph.Input{
			{Name: graph.Images, Column: "images", Shape: []int{batch, side, side}}, {Name: graph.Labels, Column: "labels", Classes: classes, Shape: []int{batch, classes}},
			{Name: graph.Views, Shape: []int{2 * batch, side, side}}, {Name: "noise", Shape: []int{batch, 5}, Sampler: uniform{}},
			{Name: "views.noise", Shape: []int{2 * batch, 3}, Sampler: uniform{}}, {Name: "tokens.noise", Shape: []int{4 * batch, 2}, Sampler: uniform{}},
		}
	}
	return func(rank, processes int) *loader {
		l := &loader{images: images, seed: 7, size: size, epochs: 1, threads: 2, inputs: inputs, views: []*augment.Chain{chain}, rank: rank, processes: processes}
		l.Start(0, 0, 0)
		fill(l)
		return l
	}, inputs
}

// The rows of all processes together equal the batch of one process: images, labels, both views, and the noise of images and
// views. This also holds if the rows of a process begin in the middle of a block of noise, and for a last batch with fewer
// images than processes.
func TestTheRowsOfAllProcessesAreTheBatch(t *testing.T) {
	open, inputs := opener(t)
	for _, processes := range []int{2, 3, 4} {
		alone := open(0, 0)
		ranks := lists.Of(processes, func(rank int) *loader { return open(rank, processes) })
		for range 3 {
			whole := taken(t, alone)
			fill(alone)
			for rank, l := range ranks {
				part := taken(t, l)
				fill(l)
				wantRows(t, part, whole, rank, processes, inputs[whole.size])
			}
		}
	}
}

// wantRows checks that part contains the rows of one process of the batch whole.
func wantRows(t *testing.T, part, whole *batch, rank, processes int, inputs []graph.Input) {
	t.Helper()
	from, to := shard.Rows(whole.size, rank, processes)
	if part.size != whole.size || part.from != from || part.to != to {
		t.Fatalf("%d processes: rank %d has rows [%d, %d) of %d, want [%d, %d) of %d", processes, rank, part.from, part.to, part.size, from, to, whole.size)
	}
	for i, in := range inputs {
		views := shard.Views(in.Shape, whole.size)
		row := len(whole.values[i]) / (views * whole.size)
		var want []float32
		for v := range views {
			want = append(want, whole.values[i][(v*whole.size+from)*row:(v*whole.size+to)*row]...)
		}
		expect.Slice(t, part.values[i], want, processes, "processes: rank", rank, "has other values of", in.Name, "in a batch of", whole.size)
	}
}
