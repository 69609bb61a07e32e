package train

import (
	"errors"
	"testing"

	"tessera/data"
	"tessera/graph"
)

// refusing says of how many images it was to compile a program.
type refusing struct{ batch int }

func (r *refusing) Compile(p *graph.Program) (graph.Runner[float32], error) {
	r.batch = p.Batch
	return nil, errors.New("compiles nothing")
}

// 4096 pixels weigh each other: 17 million weights for an image, of which 8 images fit.
func TestWhatIsLargeIsWatchedInSmallerBatches(t *testing.T) {
	spec := model(t, "[model.m]\nencoder = [{ kind = \"conv2d\", filters = 1 }, { kind = \"attention\", heads = 1 }, { kind = \"dense\", units = 4 }]\ntrain = { batch = 8 }\n")
	for side, want := range map[int]int{64: 8, 8: 500} {
		m, err := graph.New(spec, []int{side, side})
		if err != nil {
			t.Fatal(err)
		}
		images, err := data.NewBytes(m.Shape, make([]byte, 600*m.Pixels()), nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &refusing{}
		if _, err := newWatcher(m, b, data.Splits{Validation: images}); err == nil || b.batch != want {
			t.Errorf("%d pixels a side: %d images at once (%v), want %d", side, b.batch, err, want)
		}
	}
}
