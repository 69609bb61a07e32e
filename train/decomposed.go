package train

import (
	"slices"
	"sync"

	"tessera/data"
	"tessera/graph"
	"tessera/kernel"
	"tessera/morph"
	"tessera/team"
)

// decomposed are the levels of images that a model's encoder decomposes first, found once for a whole run: a step only
// combines them. Levels are values of their image, so that those of bytes are bytes: of a decomposition of L levels, L bytes
// per pixel of every image, 2 L for AMD (four times as much where images are floats).
type decomposed struct {
	of     morph.Decomposition
	images *data.Images
	deep   int // channels of an image
	row    int // values of an image's levels
	bytes  []byte
	floats []float32
}

// space is what one goroutine combines in.
type space struct{ image, levels []float32 }

func (d *decomposed) space() *space {
	return &space{make([]float32, d.images.Pixels()), make([]float32, d.row)}
}

// decompose finds the levels of all images for the input of a program that wants them, on all processors; nil where none does.
func decompose(images *data.Images, inputs []graph.Input) (*decomposed, error) {
	for _, in := range inputs {
		if in.Decomposition == nil {
			continue
		}
		if _, err := morph.NewDecomposer(*in.Decomposition, images.Shape); err != nil {
			return nil, err
		}
		d := &decomposed{of: *in.Decomposition, images: images, deep: 1}
		if len(images.Shape) == 3 {
			d.deep = images.Shape[2]
		}
		d.row = d.of.Stack() * images.Pixels()
		d.fill()
		return d, nil
	}
	return nil, nil
}

// fill finds the levels.
func (d *decomposed) fill() {
	n := d.images.Len()
	if d.images.Bytes(0) != nil {
		d.bytes = make([]byte, n*d.row)
	} else {
		d.floats = make([]float32, n*d.row)
	}
	team.For(n, 32, func(from, to int) {
		w, _ := morph.NewDecomposer(d.of, d.images.Shape) // which has been made before
		image, levels := make([]float32, d.images.Pixels()), make([]float32, d.row)
		for i := from; i < to; i++ {
			d.images.Batch(image, []int{i})
			if d.floats != nil {
				w.LevelsOf(d.floats[i*d.row:(i+1)*d.row], image)
				continue
			}
			w.LevelsOf(levels, image)
			for j, v := range levels {
				d.bytes[i*d.row+j] = byte(v*255 + 0.5)
			}
		}
	})
}

// Batch writes the channels of the images of those indices to dst, one after the other.
func (d *decomposed) Batch(s *space, dst []float32, indices []int) {
	width := d.of.Groups() * len(s.image)
	for k, i := range indices {
		d.images.Batch(s.image, indices[k:k+1])
		levels := s.levels
		if d.floats != nil {
			levels = d.floats[i*d.row : (i+1)*d.row]
		} else {
			kernel.Float32().FromBytes(levels, d.bytes[i*d.row:(i+1)*d.row])
		}
		morph.Combine(d.of, d.deep, dst[k*width:(k+1)*width], s.image, levels)
	}
}

// Ranges returns the least value of each channel over all images, and 1 over the range of its values, 1 for a constant one.
func (d *decomposed) Ranges() (low, gain []float32) {
	channels := d.of.Groups() * d.deep
	low, high := make([]float32, channels), make([]float32, channels)
	var mu sync.Mutex
	first := true
	team.For(d.images.Len(), 256, func(from, to int) {
		least, most := d.part(from, to)
		mu.Lock()
		defer mu.Unlock()
		for c := range channels {
			if first || least[c] < low[c] {
				low[c] = least[c]
			}
			if first || most[c] > high[c] {
				high[c] = most[c]
			}
		}
		first = false
	})
	gain = high
	for c := range gain {
		if gain[c] -= low[c]; gain[c] == 0 {
			gain[c] = 1
		}
		gain[c] = 1 / gain[c]
	}
	return low, gain
}

// part returns the least and the greatest value of each channel of some images.
func (d *decomposed) part(from, to int) (least, most []float32) {
	channels, space := d.of.Groups()*d.deep, d.space()
	values := make([]float32, d.of.Groups()*d.images.Pixels())
	for i := from; i < to; i++ {
		d.Batch(space, values, []int{i})
		if i == from {
			least, most = slices.Clone(values[:channels]), slices.Clone(values[:channels])
		}
		for j, v := range values {
			c := j % channels
			least[c], most[c] = min(least[c], v), max(most[c], v)
		}
	}
	return least, most
}

// rescale sets what a new run's first layer rescales the channels of its images by; a resumed run has it in its state, a
// frozen layer keeps what it has, and so does one that started from another run's.
func (n *trainee) rescale(d *decomposed) error {
	first, ok := n.model.Decomposing()
	if !ok || n.progress.Step > 0 {
		return nil
	}
	if d == nil { // a graph that decomposes by itself
		var err error
		of := first.Decompose()
		if d, err = decompose(n.images, []graph.Input{{Decomposition: &of}}); err != nil {
			return err
		}
	}
	low, gain := d.Ranges()
	for name, values := range map[string][]float32{"low": low, "gain": gain} {
		p, err := n.model.Parameter("encoder.0." + name)
		if err != nil {
			return err
		}
		if !p.Frozen && !n.takes(p.Path) {
			copy(p.Data, values)
		}
	}
	return nil
}
