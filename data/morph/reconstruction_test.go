package morph

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// reconstruct reconstructs each image of marker; flipped is 0 for dilation and flip for erosion.
func reconstruct(marker, mask []float32, shape []int, flipped int32) ([]float32, error) {
	g, n, err := gridOf(mask, shape)
	if err != nil {
		return nil, err
	}
	if len(marker) != len(mask) {
		return nil, fmt.Errorf("morph: the marker has %d values, its mask %d", len(marker), len(mask))
	}
	out := make([]float32, len(mask))
	pixels := g.pixels()
	team.For(n, grain, func(from, to int) {
		r := newReconstructor(g)
		for i := from; i < to; i++ {
			at, end := i*pixels, (i+1)*pixels
			r.image(out[at:end], marker[at:end], mask[at:end], flipped)
		}
	})
	return out, nil
}

func TestReconstructionEqualsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shape := range testShapes {
		g, _ := newGrid(shape)
		for range 20 {
			marker, mask := randomImages(r, 2, shape), randomImages(r, 2, shape)
			down, err := reconstruct(marker, mask, shape, 0)
			fatal.If(t, err)
			up, err := reconstruct(marker, mask, shape, flip)
			fatal.If(t, err)
			for i := range 2 {
				at, end := i*g.pixels(), (i+1)*g.pixels()
				if !equal(down[at:end], plainReconstruct(marker[at:end], mask[at:end], g, 1)) {
					t.Fatalf("shape %v: by dilation differs", shape)
				}
				if !equal(up[at:end], plainReconstruct(marker[at:end], mask[at:end], g, -1)) {
					t.Fatalf("shape %v: by erosion differs", shape)
				}
			}
		}
	}
}

// The path changes direction such that both scans fail to follow it. Only the queue propagates the marker to its end.
func TestReconstructionFollowsAWindingPath(t *testing.T) {
	mask := []float32{
		1, 1, 1, 1, 1, 1, 1,
		0, 0, 0, 0, 0, 0, 1,
		1, 1, 1, 1, 1, 0, 1,
		1, 0, 0, 0, 1, 0, 1,
		1, 0, 1, 1, 1, 0, 1,
		1, 0, 0, 0, 0, 0, 1,
		1, 1, 1, 1, 1, 1, 1,
	}
	marker := make([]float32, len(mask))
	marker[4*7+2] = 1
	got, err := reconstruct(marker, mask, []int{7, 7}, 0)
	fatal.If(t, err)
	if !equal(got, mask) {
		t.Errorf("got %v, want the whole path", got)
	}
}

func TestReconstructionConnectsDiagonally(t *testing.T) {
	mask := []float32{1, 0, 0, 0, 1, 0, 0, 0, 1}
	got, err := reconstruct([]float32{0, 0, 0, 0, 0, 0, 0, 0, 1}, mask, []int{3, 3}, 0)
	fatal.If(t, err)
	if !equal(got, mask) {
		t.Errorf("got %v, want the diagonal", got)
	}
}

func TestReconstructionRefusesUnequalLengths(t *testing.T) {
	expect.AnyError(t, expect.Err(reconstruct(make([]float32, 4), make([]float32, 8), []int{2, 2}, 0)), "a marker of another length was accepted")
}
