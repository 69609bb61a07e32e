package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/morph"
	"tessera/ops"
	"tessera/part"
)

// MaxApproximation is the error that is made when a morphological operator psi is applied to the atoms instead of to the
// images, the mean over pixels and batch of
//
//	(sigma(H psi(W) + b) - psi(x))²
//
// with the code H, the atoms W and the bias b of the decoder's last layer with weights, all that follows it as sigma, and
// the images x; the bias is not operated on. Taken as a term of the objective it is differentiated through psi, and
// drives the atoms apart: a dilation of a sum is the sum of the dilations only where supports do not meet, or grow at
// the same pixels.
//
// The measure is that of Ponchon, Velasco-Forero, Blusseau, Angulo and Bloch, Part-based Approximations for Morphological
// Operators using Asymmetric Auto-encoders, ISMM 2019; they evaluate it, here it is minimised.
type MaxApproximation struct {
	onAtoms
	Operator morph.Operator `toml:"operator" doc:"psi, flat and grey-level, by a disk"`
	Radius   int            `toml:"radius" want:"> 0" doc:"radius of the disk in pixels"`
}

func init() {
	Registry.Register("max_approximation", "mean squared error between dilated images and the sums of their dilated atoms, or with another operator", func() Loss {
		return &MaxApproximation{Operator: morph.Dilation, Radius: 1}
	})
}

// CheckShape implements [ShapeChecker]: images are (height, width) or (height, width, channels), and no smaller than the disk.
func (l *MaxApproximation) CheckShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 {
		return fmt.Errorf("images of shape %v have no neighbouring pixels: want (height, width) or (height, width, channels)", shape)
	}
	if most := max(shape[0], shape[1]); l.Radius > most {
		return part.KeyError{Key: "radius", Problem: fmt.Sprintf("got %d, want <= %d, the longer side of the images", l.Radius, most)}
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
