package morph

import (
	"math/rand/v2"
	"testing"
)

func TestReconstructionEqualsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shape := range testShapes {
		g, _ := newGrid(shape)
		for range 20 {
			marker, mask := randomImages(r, 2, shape), randomImages(r, 2, shape)
			down, err := ReconstructByDilation(marker, mask, shape)
			if err != nil {
				t.Fatal(err)
			}
			up, err := ReconstructByErosion(marker, mask, shape)
			if err != nil {
				t.Fatal(err)
			}
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

// A path that winds against both scans: only the queue carries the marker to its end.
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
	got, err := ReconstructByDilation(marker, mask, []int{7, 7})
	if err != nil {
		t.Fatal(err)
	}
	if !equal(got, mask) {
		t.Errorf("got %v, want the whole path", got)
	}
}

func TestReconstructionConnectsDiagonally(t *testing.T) {
	mask := []float32{1, 0, 0, 0, 1, 0, 0, 0, 1}
	got, err := ReconstructByDilation([]float32{0, 0, 0, 0, 0, 0, 0, 0, 1}, mask, []int{3, 3})
	if err != nil {
		t.Fatal(err)
	}
	if !equal(got, mask) {
		t.Errorf("got %v, want the diagonal", got)
	}
}

func TestReconstructionRefusesUnequalLengths(t *testing.T) {
	if _, err := ReconstructByDilation(make([]float32, 4), make([]float32, 8), []int{2, 2}); err == nil {
		t.Error("a marker of another length was accepted")
	}
}
