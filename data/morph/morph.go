// Package morph is flat grey-level mathematical morphology on images: dilation, erosion, opening and closing by disks and
// other structuring elements, reconstruction, and the additive decompositions built from them.
//
// Images are float32, row-major, of shape (height, width) or (height, width, channels); every channel is treated on its own.
// Pixels outside of an image are ignored: a maximum or minimum runs over the existing neighbours. For disks this equals the
// mirrored border of scipy and scikit-image, because a mirrored pixel always lies in the disk.
package morph

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/volume"
	"tessera/parallel/team"
)

// Operator names a flat morphological operator.
type Operator string

// The operators; B is the structuring element.
const (
	Dilation Operator = "dilation" // maximum over B
	Erosion  Operator = "erosion"  // minimum over B
	Opening  Operator = "opening"  // erosion, then dilation
	Closing  Operator = "closing"  // dilation, then erosion
)

// Choices lists the operators.
func (Operator) Choices() []string {
	return []string{string(Dilation), string(Erosion), string(Opening), string(Closing)}
}

// Apply returns the images after the operator by the disk of that radius (in pixels; 0 changes nothing). It fails for an
// unknown operator, a negative radius, a shape that is not an image's, and a slice that holds no whole number of images.
func Apply(op Operator, radius int, images []float32, shape []int) ([]float32, error) {
	return ApplyBy(op, Disk, radius, images, shape)
}

// ApplyBy is [Apply] with another structuring element.
func ApplyBy(op Operator, element Element, radius int, images []float32, shape []int) ([]float32, error) {
	if _, err := NewFilterBy(op, element, radius, shape); err != nil {
		return nil, err
	}
	g, n, err := gridOf(images, shape)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(images))
	pixels := g.pixels()
	team.For(n, grain, func(from, to int) {
		f, _ := NewFilterBy(op, element, radius, shape) // checked above
		for i := from; i < to; i++ {
			f.Image(out[i*pixels:(i+1)*pixels], images[i*pixels:(i+1)*pixels])
		}
	})
	return out, nil
}

// grain is how many images one goroutine takes at a time: enough that a filter's buffers cost nothing.
const grain = 32

// grid is the shape of one image, channels innermost.
type grid struct{ height, width, channels int }

func (g grid) pixels() int { return g.height * g.width * g.channels }

// gridOf checks that values hold a whole number of images of that shape and returns how many.
func gridOf(values []float32, shape []int) (g grid, n int, err error) {
	if g, err = newGrid(shape); err != nil {
		return g, 0, err
	}
	if len(values)%g.pixels() != 0 {
		return g, 0, fmt.Errorf("morph: got %d values, want whole images of shape %v", len(values), shape)
	}
	return g, len(values) / g.pixels(), nil
}

func newGrid(shape []int) (grid, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return grid{}, fmt.Errorf("morph: shape %v: want (height, width) or (height, width, channels), all > 0", shape)
	}
	if _, ok := volume.Within(shape, math.MaxInt32); !ok {
		return grid{}, fmt.Errorf("morph: shape %v: want fewer than 2^31 values", shape)
	}
	g := grid{height: shape[0], width: shape[1], channels: 1}
	if len(shape) == 3 {
		g.channels = shape[2]
	}
	return g, nil
}
