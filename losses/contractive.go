package losses

import (
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Contractive is the mean over the images of the squared Frobenius norm of the Jacobian J = dh/dx of the code. It measures
// the sensitivity of the code to small changes of the image. Source: Rifai, Vincent, Muller, Glorot and Bengio, Contractive
// Auto-Encoders, 2011.
//
// The term is exact if the encoder is one dense layer with an elementwise activation, z = x W + b, h = s(z). Automatic
// differentiation gives s':
//
//	|J|² = sum over units j of s'(z_j)² |w_j|²
//
// For other encoders the term is Hutchinson's unbiased estimate: |J|² is the expectation of |J^T v|², where the elements of v
// are +1 or -1 at random. v is drawn for every image and step; with a full-batch optimizer, once for every image. Each probe
// is one backward pass through the encoder. With batch_norm the code of an image depends on the other images of the batch: J
// is then the Jacobian of the whole batch, and |J|² is divided by the number of images.
//
// The derivative is taken at the images of the batch, before the encoder's layers add noise.
type Contractive struct {
	onCode
	Probes int `toml:"probes" want:"in [1,100]" doc:"number of random vectors of the estimate; unused if the encoder is one dense layer"`
}

func init() {
	Registry.Register("contractive", "squared Frobenius norm of the code's Jacobian, mean over samples", func() Loss {
		return &Contractive{Probes: 1}
	})
}

func (*Contractive) Reads() Reads { return Reads{On: true, Jacobian: true} }

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

func (signs) Sample(dst []float32, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(int(r.Uint64()&1)*2 - 1)
	}
}
