package train

import (
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/parallel/team"
)

// feed runs programs on images in their order: for measurements between epochs or for a full-batch objective.
type feed struct {
	images   *data.Images
	prepared hooks.Prepared // nil if no program reads it
	seed     uint64         // of noise
	upstream []float32      // upstream gradient of all codes, if a program reads it
	order    []int
	memory   map[string][]float32 // of one batch, by input
	inputs   [][]float32          // of the last run
}

// newFeed returns the feed of these programs, which read the images or a hook's preparation of them.
func newFeed(images *data.Images, h around, seed uint64, programs ...compiled) (f *feed, err error) {
	f = &feed{images: images, seed: seed, order: make([]int, images.Len()), memory: map[string][]float32{}}
	for i := range f.order {
		f.order[i] = i
	}
	f.prepared, err = h.prepare(images, programs...)
	return f, err
}

// run runs a program on the images in [from, to). A panic of a user-defined sampler becomes an error.
func (f *feed) run(p *program, from, to int) error {
	f.inputs = f.inputs[:0]
	for _, in := range p.Inputs {
		n := volume.Of(in.Shape)
		row := n / (to - from)
		if in.Name == graph.UpstreamName {
			f.inputs = append(f.inputs, f.upstream[from*row:to*row])
			continue
		}
		if len(f.memory[in.Name]) < n {
			f.memory[in.Name] = make([]float32, n)
		}
		values := f.memory[in.Name][:n]
		f.inputs = append(f.inputs, values)
		err := guard("making the input "+in.Name, func() error {
			team.For(to-from, 32, func(a, b int) { f.fill(in, values[a*row:b*row], f.order[from+a:from+b]) })
			return nil
		})
		if err != nil {
			return err
		}
	}
	return p.Run(f.inputs)
}

// fill writes an input for a range of images. The noise of an image is the same at every evaluation and in every batch.
func (f *feed) fill(in graph.Input, dst []float32, indices []int) {
	switch {
	case in.Preparation != nil:
		f.prepared.Batch(dst, indices)
	case in.Sampler == nil:
		f.images.Batch(dst, indices)
	default:
		row := len(dst) / len(indices)
		for k, i := range indices {
			sample(in, dst[k*row:(k+1)*row], random.Stream(f.seed, in.Name, uint64(i)))
		}
	}
}
