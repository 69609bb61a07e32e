package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MaxApproximationLayer is the error of replacing the sums of a dense decoder layer by maxima. It is the mean over the batch
// and over the outputs n of the layer of
//
//	(sum_j h_j w_jn - max_j h_j w_jn)²
//
// with the input h and the weight W of the layer, before bias and activation. For non-negative h and W it is 0 if and only if
// at most one input contributes to each output. The sums are then maxima, which commute with flat dilations: dilating the rows
// of W dilates the sum. [MaxApproximation] measures this for atoms that are images; this term needs no operator, because the
// outputs of an inner layer have no neighbours. Declare a term for each dense layer of a deep decoder. With a constraint
// `nonneg` on "decoder.*.weight" and `relu` between the layers, h and W are non-negative. With `relative` the term is divided
// by the mean square of the sums.
//
// Source: Ponchon, Velasco-Forero, Blusseau, Angulo and Bloch, Part-based Approximations for Morphological Operators using
// Asymmetric Auto-encoders, ISMM 2019, for the atoms on images; the layers before them are not in the paper.
type MaxApproximationLayer struct {
	onAtoms
	Layer    string `toml:"layer" doc:"dense layer of the decoder, such as decoder.0; the default is the layer of the atoms"`
	Relative bool   `toml:"relative" doc:"divides the error by the mean square of the sums over the batch"`
}

func init() {
	Registry.Register("max_approximation_layer", "mean squared error between the sums of a dense decoder layer and the largest of their terms", func() Loss {
		return &MaxApproximationLayer{}
	})
}

func (l *MaxApproximationLayer) Reads() Reads {
	r := relativeReads(l.onAtoms.Reads(), l.Relative)
	r.AtomsOf = l.Layer
	return r
}

func (l *MaxApproximationLayer) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	sums := c.MatMul(d.Code, d.Atoms)
	largest := c.Do("max times", func() (*gorgonia.Node, error) { return ops.MaxTimes(d.Code, d.Atoms) })
	off := c.Mean(c.Square(c.Sub(sums, largest)))
	if l.Relative {
		off = share(&c, off, c.Mean(c.Square(sums)))
	}
	return off, c.Err()
}
