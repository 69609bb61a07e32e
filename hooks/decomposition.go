package hooks

import (
	"math"
	"slices"
	"sync"

	"tessera/config/part"
	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// Decomposition prepares images for a first layer that decomposes them (amd, pado). Every model with such a layer has this
// hook, declared or not. In a new run it sets the layer's rescaling before the first step: low is a channel's minimum over
// all training images, gain is 1 / (range of the channel), or 1 for a constant channel. Frozen layers and layers with
// parameters from another run keep their rescaling.
//
// With cache it also computes the levels of every image once; a training step then only combines them. Levels have the type
// of the images: L levels take L bytes per pixel of every 8-bit image (2 L for amd), and four times as much for float images.
// Without cache every step decomposes its images. Both give the same values.
type Decomposition struct {
	Cache bool `toml:"cache" doc:"decompose every sample once and store the levels in memory"`
}

func init() {
	Registry.Register("decomposition", "decomposes every sample once for a first layer such as amd",
		func() Hook { return &Decomposition{Cache: true} })
}

func (*Decomposition) Prepares(preparation any) bool {
	_, ok := preparation.(morph.Decomposition)
	return ok
}

func (*Decomposition) Stage() Stage             { return Prepare }
func (*Decomposition) Replicated() (state bool) { return false }

func (*Decomposition) Suits(m Declared) error {
	if _, ok := m.Preparation.(morph.Decomposition); !ok {
		return notDecomposing
	}
	return nil
}

var notDecomposing = part.KeyError{Key: "encoder", Problem: "its first layer does not decompose samples"}

func (d *Decomposition) Attach(t Training) (*Active, error) {
	of, ok := t.Preparation().(morph.Decomposition)
	if !ok {
		return nil, notDecomposing
	}
	h := &decomposing{of: of, training: t}
	active := &Active{Initialise: h.initialise}
	if d.Cache {
		active.Prepare = h.prepare
	}
	return active, nil
}

// decomposing is the hook's state in a training.
type decomposing struct {
	of       morph.Decomposition
	training Training
	fitted   *decomposed // preparation of the training images; nil if no program reads it
}

func (h *decomposing) prepare(images *data.Images) (Prepared, error) {
	d, err := decompose(h.of, images)
	if err != nil {
		return nil, err
	}
	d.cache()
	if images == h.training.Images() {
		h.fitted = d
	}
	return d, nil
}

func (h *decomposing) initialise() error {
	d := h.fitted
	if d == nil {
		var err error
		if d, err = decompose(h.of, h.training.Images()); err != nil {
			return err
		}
	}
	low, gain := d.ranges()
	for name, values := range map[string][]float32{"low": low, "gain": gain} {
		for _, p := range h.training.Parameters("encoder.0." + name) {
			if !p.Frozen && !p.Started {
				copy(p.Data, values)
			}
		}
	}
	return nil
}

// decomposed computes the channels of images; it implements [Prepared].
type decomposed struct {
	of     morph.Decomposition
	images *data.Images
	deep   int       // number of channels of an image
	row    int       // number of values of an image's levels
	bytes  []byte    // levels of all images; nil if the levels are floats or not cached
	floats []float32 // levels of all images; nil if the levels are bytes or not cached
	pool   sync.Pool // contains *workspace
}

// workspace is the memory of one goroutine for a decomposition.
type workspace struct {
	*morph.Decomposer // created on first use
	image, levels     []float32
}

func decompose(of morph.Decomposition, images *data.Images) (*decomposed, error) {
	if _, err := morph.NewDecomposer(of, images.Shape); err != nil {
		return nil, err
	}
	d := &decomposed{of: of, images: images, deep: volume.Of(images.Shape[2:]), row: of.Stack() * images.Pixels()}
	d.pool.New = func() any {
		return &workspace{image: make([]float32, images.Pixels()), levels: make([]float32, d.row)}
	}
	return d, nil
}

// cache computes the levels of all images on all processors.
func (d *decomposed) cache() {
	n := d.images.Len()
	var bytes []byte
	var floats []float32
	if d.images.Bytes(0) != nil {
		bytes = make([]byte, n*d.row)
	} else {
		floats = make([]float32, n*d.row)
	}
	team.For(n, 32, func(from, to int) {
		w := d.pool.Get().(*workspace)
		defer d.pool.Put(w)
		for i := from; i < to; i++ {
			levels := d.levels(w, i)
			if floats != nil {
				copy(floats[i*d.row:], levels)
				continue
			}
			for j, v := range levels {
				bytes[i*d.row+j] = byte(v*255 + 0.5)
			}
		}
	})
	d.bytes, d.floats = bytes, floats
}

// levels loads image i into a workspace and returns its levels.
func (d *decomposed) levels(w *workspace, i int) []float32 {
	index := [1]int{i}
	d.images.Batch(w.image, index[:])
	switch from, to := i*d.row, (i+1)*d.row; {
	case d.floats != nil:
		return d.floats[from:to]
	case d.bytes != nil:
		kernel.Float32().FromBytes(w.levels, d.bytes[from:to])
	default:
		if w.Decomposer == nil {
			w.Decomposer, _ = morph.NewDecomposer(d.of, d.images.Shape) // decompose has already made one without error
		}
		w.LevelsOf(w.levels, w.image)
	}
	return w.levels
}

func (d *decomposed) Batch(dst []float32, indices []int) {
	w := d.pool.Get().(*workspace)
	defer d.pool.Put(w)
	width := d.of.Groups() * len(w.image)
	for k, i := range indices {
		levels := d.levels(w, i)
		morph.Combine(d.of, d.deep, dst[k*width:(k+1)*width], w.image, levels)
	}
}

// ranges returns the minimum of each channel over all images and 1 / range, or 1 for a constant channel.
func (d *decomposed) ranges() (low, gain []float32) {
	channels := d.of.Groups() * d.deep
	low = slices.Repeat([]float32{float32(math.Inf(1))}, channels)
	high := slices.Repeat([]float32{float32(math.Inf(-1))}, channels)
	var mu sync.Mutex
	team.For(d.images.Len(), 64, func(from, to int) {
		indices, values := make([]int, to-from), make([]float32, (to-from)*d.of.Groups()*d.images.Pixels())
		for i := range indices {
			indices[i] = from + i
		}
		d.Batch(values, indices)
		mu.Lock()
		defer mu.Unlock()
		for i, v := range values {
			c := i % channels
			low[c], high[c] = min(low[c], v), max(high[c], v)
		}
	})
	for c := range high {
		if gain = append(gain, high[c]-low[c]); gain[c] == 0 {
			gain[c] = 1
		}
		gain[c] = 1 / gain[c]
	}
	return low, gain
}
