// Package parts contains parts of tessera that are defined in another module, one file each.
package parts

import (
	"context"
	"math/rand/v2"

	"tessera/data"
)

// Stripes are generated images of 8x8 pixels, each of two horizontal stripes. The label is the row of the first one.
type Stripes struct {
	Count int `toml:"count" want:"in [1,100000]" doc:"number of generated images"`
}

func init() {
	data.Registry.Register("stripes", "generated 8x8 images of two horizontal stripes", func() data.Source { return &Stripes{Count: 120} })
}

const side = 8

// Shape implements [data.Source].
func (*Stripes) Shape(data.Dirs) ([]int, bool) { return []int{side, side}, true }

// Load implements [data.Source].
func (s *Stripes) Load(context.Context, data.Dirs, data.Need) (*data.Set, error) {
	r := rand.New(rand.NewPCG(1, 2))
	pixels, labels := make([]byte, s.Count*side*side), make([]int, s.Count)
	for i := range s.Count {
		first, second := r.IntN(side), r.IntN(side)
		labels[i] = min(first, second)
		for x := range side {
			pixels[i*side*side+first*side+x] = 255
			pixels[i*side*side+second*side+x] = 255
		}
	}
	images, err := data.NewBytes([]int{side, side}, pixels, labels)
	if err != nil {
		return nil, err
	}
	return &data.Set{Name: "stripes", Shape: []int{side, side}, Train: images}, nil
}
