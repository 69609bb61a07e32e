package train

import (
	"tessera/graph"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/team"
)

// This file feeds the programs of an objective over all images.

// decompose finds the levels of all images once, where a program wants them.
func (w *whole) decompose(p *program) (err error) {
	if w.parts != nil {
		return nil
	}
	if w.parts, err = decompose(w.images, p.Inputs); w.parts != nil {
		w.channels = make([]float32, p.Batch*w.parts.of.Groups()*w.images.Pixels())
	}
	return err
}

// run runs a program of the images from to to.
func (w *whole) run(p *program, from, to int) error {
	w.inputs = w.inputs[:0]
	for _, in := range p.Inputs {
		switch {
		case in.Name == graph.PullName:
			units := w.model.Units()
			w.inputs = append(w.inputs, w.pull[from*units:to*units])
		case in.Decomposition != nil:
			w.inputs = append(w.inputs, w.combined(from, to))
		case in.Fixed:
			w.inputs = append(w.inputs, w.drawn(in, from, to))
		default:
			w.inputs = append(w.inputs, w.load(from, to))
		}
	}
	return p.Run(w.inputs)
}

// load returns the pixels of the images from to to.
func (w *whole) load(from, to int) []float32 {
	width := w.images.Pixels()
	pixels := w.pixels[:(to-from)*width]
	team.For(to-from, 64, func(a, b int) {
		w.images.Batch(pixels[a*width:b*width], w.order[from+a:from+b])
	})
	return pixels
}

// combined returns the channels of the images from to to.
func (w *whole) combined(from, to int) []float32 {
	width := w.parts.of.Groups() * w.images.Pixels()
	channels := w.channels[:(to-from)*width]
	team.For(to-from, 16, func(a, b int) {
		w.parts.Batch(w.parts.space(), channels[a*width:b*width], w.order[from+a:from+b])
	})
	return channels
}

// drawn returns the noise of the images from to to. An image has the same noise at every evaluation, in any batch.
func (w *whole) drawn(in graph.Input, from, to int) []float32 {
	if w.noise == nil {
		w.noise = map[string][]float32{}
	}
	length := volume.Of(in.Shape)
	if len(w.noise[in.Name]) < length {
		w.noise[in.Name] = make([]float32, length)
	}
	noise, row := w.noise[in.Name][:length], length/(to-from)
	team.For(to-from, 64, func(a, b int) {
		for i := a; i < b; i++ {
			in.Sampler.Sample(noise[i*row:(i+1)*row], random.Stream(w.model.Spec.Train.Seed, in.Name, uint64(from+i)))
		}
	})
	return noise
}
