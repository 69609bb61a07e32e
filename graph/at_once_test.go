package graph_test

import (
	"errors"
	"testing"

	"tessera/engine/ir"
	"tessera/graph"
)

// attentive has 1024 tokens of one feature: 1,048,576 weights for an image.
const attentive = `
[model.attentive]
encoder = [{ kind = "reshape", shape = [1024, 1] }, { kind = "attention", heads = 1 }, { kind = "dense", units = 4 }]
[model.small]
encoder = [{ kind = "dense", units = 4 }]
`

// refusing records the batch size of the program and does not compile it.
type refusing struct {
	ir.Backend
	batch int
}

func (r *refusing) Compile(p ir.Program) (ir.Runner[float32], error) {
	r.batch = p.(*graph.Program).Batch
	return nil, errors.New("compiles nothing")
}

// The attention weights of 1000 images would take 4 GB, and their gradients another 4 GB.
func TestLargeModelsAreCodedInSmallerBatches(t *testing.T) {
	for name, want := range map[string]int{"attentive": 128, "small": 1000} {
		m := model(t, attentive, name, 32, 32)
		if got := m.AtOnce(1000); got != want {
			t.Errorf("%s: %d images at once, want %d", name, got, want)
		}
		images := make([]float32, 1000*m.Pixels())
		b := &refusing{}
		c := graph.NewCoder(m, b)
		if _, err := c.Encode(images); err == nil || b.batch != want {
			t.Errorf("%s: encodes %d images at once (%v), want %d", name, b.batch, err, want)
		}
		if _, err := c.InputGradient(images, images); err == nil || b.batch != want {
			t.Errorf("%s: attacks %d images at once (%v), want %d", name, b.batch, err, want)
		}
	}
}
