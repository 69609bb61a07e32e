package data

import (
	"context"
	"fmt"
	"slices"

	"tessera/config/part"
	"tessera/internal/random"
)

func init() {
	Registry.Register("patches", "random square patches of the images of another data set",
		func() Source { return &Patches{Size: 12, Count: 10000, Seed: 1} })
}

// Patches contains square patches of the images of another data set, at random places.
//
//	dataset = { name = "patches", of = { name = "images", images = "photographs", size = [480, 640] }, size = 12, scale = "whiten" }
//
// Each patch is cut out of one of the images; all images and all places within an image are equally likely, and patches may
// overlap. Labels, true parts and further columns of the images are left out. If the other data set has test images, as
// many patches are cut out of these. Each patch has its own random stream, so that a larger set begins with the patches of a
// smaller one. Vectors, images with missing values, and images that are smaller than a patch are errors.
type Patches struct {
	Of    *Inner `toml:"of" required:"true" doc:"the data set whose images are cut: a name, or a table with further keys"`
	Size  int    `toml:"size" want:"in [2,256]" doc:"side of a patch, in pixels"`
	Count int    `toml:"patches" want:"in [1,1000000]" doc:"number of patches; as many of the test images, if there are any"`
	Scale Scale  `toml:"scale" single:"true" bare:"factor.by" optional:"true" doc:"how the patches are scaled: a scaling (tessera list scalings), a number as factor, or several scalings in order; by default as the other data set is"`
	Seed  uint64 `toml:"seed" doc:"seed of the places; independent of the run's seed, so that all runs see the same patches"`
}

// Check returns an error if no data set is named.
func (p *Patches) Check() error {
	if p.Of == nil || p.Of.Source == nil {
		return part.KeyErrorf("of", `got nothing, want a data set; write of = "fashion-mnist", or of = { name = "images", images = "FOLDER" }`)
	}
	return p.Scale.OfValues()
}

func (p *Patches) WithInner(other func(Source) Source) Source {
	if p.Of == nil {
		return p
	}
	placed := *p
	placed.Of = &Inner{p.Of.Name, other(p.Of.Source)}
	return &placed
}

// Origin returns where the images of the other data set come from.
func (p *Patches) Origin() Origin {
	if p.Of != nil {
		if s, ok := p.Of.Source.(interface{ Origin() Origin }); ok {
			return s.Origin()
		}
	}
	return Generated
}

func (p *Patches) HasTest() bool  { return p.Of != nil && HasTest(p.Of.Source) }
func (*Patches) Unlabelled() bool { return true }

func (p *Patches) FitsScale() bool {
	return p.Scale.Fitted() || len(p.Scale) == 0 && p.Of != nil && ScaleIsFitted(p.Of.Source)
}

func (p *Patches) shape(images []int) ([]int, error) {
	if len(images) < 2 {
		return nil, &Error{Dataset: "patches", Problem: fmt.Sprintf("of: samples of shape %v are vectors, want images", images)}
	}
	if images[0] < p.Size || images[1] < p.Size {
		return nil, &Error{Dataset: "patches", Problem: fmt.Sprintf("of: images of %dx%d pixels have no patches of %dx%d", images[0], images[1], p.Size, p.Size), Hint: "lower the key size"}
	}
	return append([]int{p.Size, p.Size}, images[2:]...), nil
}

func (p *Patches) Shape(dirs Dirs) ([]int, bool) {
	if p.Of == nil {
		return nil, false
	}
	images, ok := p.Of.Source.Shape(dirs)
	if !ok {
		return nil, false
	}
	shape, err := p.shape(images)
	return shape, err == nil
}

func (p *Patches) Load(ctx context.Context, dirs Dirs, need Need) (*Set, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(need.Columns) > 0 {
		return nil, &Error{Dataset: "patches", Problem: fmt.Sprintf("patches have no column %q", need.Columns[0])}
	}
	set, err := Load(ctx, p.Of.Source, dirs, need)
	if err != nil {
		return nil, err
	}
	shape, err := p.shape(set.Shape)
	if err != nil {
		return nil, err
	}
	out := &Set{Name: "patches", Shape: shape, Files: set.Files, HasTest: set.HasTest, Scale: set.Scale}
	if len(p.Scale) > 0 {
		out.Scale = p.Scale
	}
	if out.Train, err = p.cut(ctx, set.Train, shape, "train"); err != nil {
		return nil, err
	}
	out.Test, err = p.cut(ctx, set.Test, shape, "test")
	return out, err
}

// cut returns patches of images, nil for no images. The name of the split selects the random streams.
func (p *Patches) cut(ctx context.Context, images *Images, shape []int, split string) (*Images, error) {
	switch {
	case images == nil:
		return nil, nil
	case images.Holed():
		return nil, &Error{Dataset: "patches", Problem: "of: the images have missing values, patches cannot have any", Hint: "fill them, or leave out the key missing"}
	}
	size, err := generatedSize("patches", p.Count, shape...)
	if err != nil {
		return nil, err
	}
	width, channels := images.Shape[1], images.pixels/(images.Shape[0]*images.Shape[1])
	line := p.Size * channels
	pixels := p.Size * line
	var bytes []byte
	var floats []float32
	if images.Bytes(0) != nil {
		bytes = make([]byte, size)
	} else {
		floats = make([]float32, size)
	}
	image, last := make([]float32, images.pixels), -1
	places := make([]place, p.Count)
	for i := range places {
		r := random.Stream(p.Seed, "patches "+split, uint64(i))
		places[i] = place{i, r.IntN(images.n), r.IntN(images.Shape[0] - p.Size + 1), r.IntN(width - p.Size + 1)}
	}
	slices.SortFunc(places, func(a, b place) int { return a.image - b.image }) // so that each image is read once
	for _, at := range places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if floats != nil && at.image != last {
			images.copyRow(image, at.image)
			last = at.image
		}
		for y := range p.Size {
			from, to := ((at.row+y)*width+at.column)*channels, at.patch*pixels+y*line
			if bytes != nil {
				copy(bytes[to:to+line], images.Bytes(at.image)[from:])
			} else {
				copy(floats[to:to+line], image[from:])
			}
		}
	}
	if bytes != nil {
		return NewBytes(shape, bytes, nil)
	}
	return NewFloats(shape, floats, nil)
}

type place struct{ patch, image, row, column int }
