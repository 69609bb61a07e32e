package losses

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Contractive is the squared Frobenius norm of the Jacobian of the code, J = dh/dx, mean over the images: how much a code
// changes when its image changes a little. Rifai, Vincent, Muller, Glorot and Bengio, Contractive Auto-Encoders, 2011.
//
// It is exact where the encoder is one dense layer with an activation that maps every unit by itself, z = x W + b,
// h = s(z), of which differentiation gives s':
//
//	|J|² = sum over units j of s'(z_j)² |w_j|²
//
// Elsewhere it is Hutchinson's estimate, which is right in the mean: |J|² is the expectation of |J^T v|², v with elements
// of +1 and -1 at random, drawn for every image and step; with a full-batch optimizer, once for every
// image. Each of the probes is one pass back through the encoder.
// Where images of a batch see each other (batch_norm) J is that of the whole batch, divided by its images.
//
// The images are those of the batch, before any noise that the encoder adds to them.
type Contractive struct {
	onCode
	Probes int `toml:"probes" want:"in [1,100]" doc:"number of random vectors of the estimate; unused if the encoder is one dense layer"`
}

func init() {
	Registry.Register("contractive", "squared Frobenius norm of the code's Jacobian, mean over images", func() Loss {
		return &Contractive{Probes: 1}
	})
}

// Reads implements [Loss].
func (*Contractive) Reads() Reads { return Reads{On: true, Jacobian: true} }

// Build implements [Loss].
func (l *Contractive) Build(v Values) (*gorgonia.Node, error) {
	if l.Probes < 1 {
		return nil, fmt.Errorf("probes: got %d, want > 0", l.Probes)
	}
	e, err := v.Encoding()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	images := float64(e.Images.Shape()[0])
	if z, w, ok := ops.Affine(e.Images, e.Code); ok {
		slopes := c.Gradient(c.Sum(e.Code), z)
		norms := c.Sum(c.Square(w), 0)
		return c.Scale(c.Sum(c.MulRow(c.Square(slopes), norms)), 1/images), c.Err()
	}
	var sum *gorgonia.Node
	for range l.Probes {
		v := e.Noise(signs{}, e.Code.Shape()...)
		back := c.Gradient(c.Sum(c.Mul(v, e.Code)), e.Images)
		if square := c.Sum(c.Square(back)); sum == nil {
			sum = square
		} else {
			sum = c.Add(sum, square)
		}
	}
	return c.Scale(sum, 1/(images*float64(l.Probes))), c.Err()
}

// signs draws +1 or -1, each with probability 1/2.
type signs struct{}

// Sample implements [ops.Sampler].
func (signs) Sample(dst []float32, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(int(r.Uint64()&1)*2 - 1)
	}
}
