package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/morph"
	"tessera/ops"
	"tessera/part"
)

// MaxApproximation is the error of applying a morphological operator psi to the atoms instead of to the images. It is the
// mean over pixels and batch of
//
//	(sigma(H psi(W) + b) - psi(x))²
//
// with the images x, the code H, the atoms W and bias b of the decoder's last layer with weights, and the later layers
// sigma. psi is not applied to the bias. The gradient flows through psi and drives the atoms apart: a dilation of a sum
// equals the sum of the dilations only where the supports are disjoint or grow at the same pixels.
//
// Source: Ponchon, Velasco-Forero, Blusseau, Angulo and Bloch, Part-based Approximations for Morphological Operators using
// Asymmetric Auto-encoders, ISMM 2019. The paper only evaluates the measure; this term minimises it.
type MaxApproximation struct {
	onAtoms
	Operator morph.Operator `toml:"operator" doc:"psi, flat and grey-level, by a disk"`
	Radius   int            `toml:"radius" want:"> 0" doc:"radius of the disk in pixels"`
}

func init() {
	Registry.Register("max_approximation", "mean squared error between images after a dilation (or another operator) and the sums of dilated atoms", func() Loss {
		return &MaxApproximation{Operator: morph.Dilation, Radius: 1}
	})
}

// CheckShape implements [ShapeChecker]: images are (height, width) or (height, width, channels), and no smaller than the disk.
func (l *MaxApproximation) CheckShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 {
		return fmt.Errorf("images of shape %v have no neighbouring pixels: want (height, width) or (height, width, channels)", shape)
	}
	if most := max(shape[0], shape[1]); l.Radius > most {
		return part.KeyErrorf("radius", "got %d, want <= %d, the longer side of the images", l.Radius, most)
	}
	return nil
}

// Build implements [Loss].
func (l *MaxApproximation) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	atoms, want := l.operate(&c, d.Atoms, d.Shape), l.operate(&c, d.Images, d.Shape)
	got := c.Do("decode", func() (*gorgonia.Node, error) { return d.Decode(atoms) })
	return c.Mean(c.Square(c.Sub(got, want))), c.Err()
}

// operate returns psi of every row of x.
func (l *MaxApproximation) operate(c *ops.Chain, x *gorgonia.Node, shape []int) *gorgonia.Node {
	dilate := func(x *gorgonia.Node) *gorgonia.Node {
		return c.Do("dilate", func() (*gorgonia.Node, error) { return ops.Dilate(x, shape, l.Radius) })
	}
	erode := func(x *gorgonia.Node) *gorgonia.Node { return c.Neg(dilate(c.Neg(x))) }
	switch l.Operator {
	case morph.Dilation:
		return dilate(x)
	case morph.Erosion:
		return erode(x)
	case morph.Opening:
		return dilate(erode(x))
	case morph.Closing:
		return erode(dilate(x))
	}
	return c.Do("operator", func() (*gorgonia.Node, error) {
		return nil, fmt.Errorf("got %q, want one of %q", l.Operator, l.Operator.Choices())
	})
}
