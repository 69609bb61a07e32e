package train

import (
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/team"
)

// feed runs programs on images in their order: on those that are measured between epochs, or on those of a full-batch objective.
type feed struct {
	images   *data.Images
	prepared hooks.Prepared // nil where no program reads it
	seed     uint64         // of noise
	pull     []float32      // of all images: how the loss changes with the codes, where a program reads that
	order    []int
	memory   map[string][]float32 // of one batch, by input
	inputs   [][]float32          // of the last run
}

// newFeed returns what feeds these programs, which read the images or what a hook makes of them.
func newFeed(images *data.Images, h around, seed uint64, programs ...compiled) (f *feed, err error) {
	f = &feed{images: images, seed: seed, order: make([]int, images.Len()), memory: map[string][]float32{}}
	for i := range f.order {
		f.order[i] = i
	}
	f.prepared, err = h.prepare(images, programs...)
	return f, err
}

// run runs a program of the images from to to. A sampler may be a user's own: its panic is an error.
func (f *feed) run(p *program, from, to int) error {
	f.inputs = f.inputs[:0]
	for _, in := range p.Inputs {
		n := volume.Of(in.Shape)
		row := n / (to - from)
		if in.Name == graph.PullName {
			f.inputs = append(f.inputs, f.pull[from*row:to*row])
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

// fill writes an input of some images. An image has the same noise at every evaluation, in any batch.
func (f *feed) fill(in graph.Input, dst []float32, indices []int) {
	switch {
	case in.Preparation != nil:
		f.prepared.Batch(dst, indices)
	case in.Sampler == nil:
		f.images.Batch(dst, indices)
	default:
		row := len(dst) / len(indices)
		for k, i := range indices {
			in.Sampler.Sample(dst[k*row:(k+1)*row], random.Stream(f.seed, in.Name, uint64(i)))
		}
	}
}
