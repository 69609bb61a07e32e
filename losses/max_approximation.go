package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/data/morph"
	"tessera/graph/ops"
	"tessera/internal/lists"
)

// MaxApproximation is the error of applying a morphological operator psi to the atoms instead of to the images. It is the
// mean over pixels and batch of
//
//	(sigma(H psi(W) + b) - psi(x))²
//
// with the images x, the code H, the atoms W and bias b of the decoder's last layer with weights, and the later layers sigma.
// psi is not applied to the bias. The gradient flows through psi and separates the atoms: a dilation of a sum equals the sum
// of the dilations only where the supports are disjoint or grow at the same pixels. With `relative` the term is divided by
// the mean square of psi(x) over the batch, which makes it independent of the scale of the data.
//
// Source: Ponchon, Velasco-Forero, Blusseau, Angulo and Bloch, Part-based Approximations for Morphological Operators using
// Asymmetric Auto-encoders, ISMM 2019. The paper only evaluates the measure; this term minimises it.
type MaxApproximation struct {
	onAtoms
	Operator morph.Operator `toml:"operator" doc:"psi, flat and grey-level"`
	Radius   int            `toml:"radius" want:"> 0" doc:"radius of the element in pixels"`
	Element  morph.Element  `toml:"element" doc:"structuring element: disk, square, row, column, or rows of 0 and 1 as in 010 111 010"`
	Relative bool           `toml:"relative" doc:"divides the error by the mean square of the images of the batch after the operator"`
}

func init() {
	Registry.Register("max_approximation", "mean squared error between images after a dilation (or another operator) and the sums of dilated atoms", func() Loss {
		return &MaxApproximation{Operator: morph.Dilation, Radius: 1, Element: morph.Disk}
	})
}

// CheckShape implements [ShapeChecker]: images are (height, width) or (height, width, channels), and the element must fit.
func (l *MaxApproximation) CheckShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 {
		return fmt.Errorf("images of shape %v have no neighbouring pixels: want (height, width) or (height, width, channels)", shape)
	}
	if most := max(shape[0], shape[1]); l.Radius > most {
		return part.KeyErrorf("radius", "got %d, want <= %d, the longer side of the images", l.Radius, most)
	}
	return l.checkElement(max(shape[0], shape[1]))
}

// checkElement returns an error for invalid rows, and for a structuring element that extends further than most pixels.
func (l *MaxApproximation) checkElement(most int) error {
	if l.Element.IsDisk() {
		return nil
	}
	offsets, err := l.Element.Offsets(l.Radius)
	if err != nil {
		return part.KeyErrorf("element", "%v", err)
	}
	for _, o := range offsets {
		if max(o.DY, -o.DY, o.DX, -o.DX) > most {
			return part.KeyErrorf("element", "it reaches beyond %d pixels, the longer side of the images", most)
		}
	}
	return nil
}

func (l *MaxApproximation) Reads() Reads { return relativeReads(l.onAtoms.Reads(), l.Relative) }

func (l *MaxApproximation) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	atoms, want := l.operate(&c, d.Atoms, d.Shape), l.operate(&c, d.Images, d.Shape)
	got := c.Do("decode", func() (*gorgonia.Node, error) { return d.Decode(atoms) })
	off := c.Mean(c.Square(c.Sub(got, want)))
	if l.Relative {
		off = share(&c, off, c.Mean(c.Square(want)))
	}
	return off, c.Err()
}

// operate returns psi of every row of x.
func (l *MaxApproximation) operate(c *ops.Chain, x *gorgonia.Node, shape []int) *gorgonia.Node {
	maximum := func(x *gorgonia.Node, sign int) *gorgonia.Node {
		return c.Do("dilate", func() (*gorgonia.Node, error) { return l.maximum(x, shape, sign) })
	}
	dilate := func(x *gorgonia.Node) *gorgonia.Node { return maximum(x, -1) }
	erode := func(x *gorgonia.Node) *gorgonia.Node { return c.Neg(maximum(c.Neg(x), 1)) }
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

// maximum returns, for each pixel p, the maximum of x(p + sign b) over the pixels b of the structuring element.
func (l *MaxApproximation) maximum(x *gorgonia.Node, shape []int, sign int) (*gorgonia.Node, error) {
	if l.Element.IsDisk() {
		return ops.Dilate(x, shape, l.Radius)
	}
	list, err := l.Element.Offsets(l.Radius)
	if err != nil {
		return nil, err
	}
	offsets := lists.Map(list, func(o morph.Offset) [2]int { return [2]int{sign * o.DY, sign * o.DX} })
	return ops.DilateBy(x, shape, offsets)
}
