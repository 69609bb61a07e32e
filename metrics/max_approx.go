package metrics

import (
	"context"
	"errors"
	"io"

	"tessera/data/morph"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("max_approx", "error of an operator on atoms in the place of images", func() Metric { return &MaxApprox{Dilation()} })
}

// ErrNoAtoms is the error for a decoder without a dictionary of atoms.
var ErrNoAtoms = errors.New("metrics: the decoder's last layer has no atoms")

// Morphology is the flat morphological operator that a metric applies.
type Morphology struct {
	Operator morph.Operator `toml:"operator" doc:"morphological operator; empty means dilation"`
	Radius   int            `toml:"radius" want:"> 0" doc:"radius of its element in pixels; 0 means 1"`
	Element  morph.Element  `toml:"element" doc:"structuring element: disk, square, row, column, or rows of 0 and 1 as in 010 111 010; empty means disk"`
}

// Dilation returns the study's operator: dilation by the disk of radius 1.
func Dilation() Morphology { return Morphology{Operator: morph.Dilation, Radius: 1} }

// orDefault replaces missing settings with their defaults.
func (m Morphology) orDefault() Morphology {
	if m.Operator == "" {
		m.Operator = morph.Dilation
	}
	if m.Radius == 0 {
		m.Radius = 1
	}
	return m
}

// Coder returns the coder for max-approximations: it decodes with the operator applied to the atoms and, with operateBias, to
// the bias image. For a coder without atoms the error is [ErrNoAtoms]. If the result is an io.Closer, the caller closes it.
func (m Morphology) Coder(coder Coder, operateBias bool) (Coder, error) {
	atoms := coder.Atoms()
	if atoms == nil {
		return nil, ErrNoAtoms
	}
	if err := atoms.check(); err != nil {
		return nil, err
	}
	operated, err := atoms.Apply(m)
	if err != nil {
		return nil, err
	}
	if operateBias && atoms.Bias != nil {
		bias := Atoms{Shape: atoms.Shape, Count: 1, Values: atoms.Bias}
		image, err := bias.Apply(m)
		if err != nil {
			return nil, err
		}
		operated.Bias = image.Values
	}
	return coder.WithAtoms(operated)
}

// MaxApprox measures the error of replacing a morphological operator psi on images by psi on the atoms alone:
//
//	D_psi(x) = activation( sum_j h_j(x) psi(w_j) + b ), error = mean over images and pixels of (D_psi(x) - psi(x))^2
//
// with the codes h of the encoder. The study's main number uses dilation by the disk of radius 1, compares with the original
// images, does not apply psi to the bias and does not clip values. Its published tables mix several conventions, so the metric
// has four numbers.
type MaxApprox struct{ Morphology }

func (*MaxApprox) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "max_approx", Better: Lower, Doc: "mean over images and pixels of (D(x) - δ(x))², D(x) = s(Σ h_j δ(w_j) + b). δ is the grey-level dilation " +
				"by the disk of radius 1 (a pixel and its four neighbours), or the operator of the settings `operator`, `radius` and `element`. Each atom is dilated, the bias is not, nothing is " +
				"clipped. The study's max-approximation error, as in its text and curves"},
			{Name: "max_approx_clipped", Better: Lower, Doc: "`max_approx` with D(x) clipped to [0,1], as in later notebooks of the study's author"},
			{Name: "max_approx_bias_dilated", Better: Lower, Doc: "`max_approx` with the bias dilated too, as in tables 1 and 2 of the report"},
			{Name: "max_approx_reconstructed", Better: Lower, Doc: "`max_approx` with δ(y), the dilated reconstruction, instead of δ(x)"},
		},
		Reads: ReadsImages | ReadsCodes | ReadsOutputs | ReadsAtoms | ReadsPictures, ScaleFree: true,
	}
}

func (m *MaxApprox) Start(s *Subject) (Meter, error) {
	meter := &approxMeter{Morphology: m.orDefault(), shape: s.Shape, pixels: volume.Of(s.Shape)}
	var err error
	if meter.dilated, err = m.Coder(s.Coder, false); err != nil {
		return nil, err
	}
	if s.Atoms.Bias != nil {
		if meter.biased, err = m.Coder(s.Coder, true); err != nil {
			return nil, errors.Join(err, meter.Close())
		}
	}
	return meter, nil
}

type approxMeter struct {
	Morphology
	shape   []int
	pixels  int
	dilated Coder // decodes with psi applied to the atoms
	biased  Coder // decodes with psi applied to atoms and bias; nil without a bias, because dilated is then equal

	each []approxErrors // errors of the images of one batch
	sum  approxErrors
	n    int
}

// approxErrors contains sums of squared errors over pixels.
type approxErrors struct{ plain, clipped, biased, reconstructed float64 }

func (m *approxMeter) Add(b *Batch) error {
	dilated, err := decode(m.dilated, b.Codes)
	if err != nil {
		return err
	}
	biased := dilated
	if m.biased != nil {
		if biased, err = decode(m.biased, b.Codes); err != nil {
			return err
		}
	}
	n := len(b.Images) / m.pixels
	if len(m.each) < n {
		m.each = make([]approxErrors, n)
	}
	team.For(n, 25, func(from, to int) {
		scratch := make([]float32, m.pixels)
		// Where atoms could be operated on, which Start checked, images of the same shape can.
		filter, _ := morph.NewFilter(m.Operator, m.Element, m.Radius, m.shape)
		for i := from; i < to; i++ {
			one := func(batch []float32) []float32 { return batch[i*m.pixels : (i+1)*m.pixels] }
			e := &m.each[i]
			filter.Image(scratch, one(b.Images))
			e.plain, e.clipped = squaredErrors(scratch, one(dilated))
			e.biased = squaredError(scratch, one(biased))
			filter.Image(scratch, one(b.Outputs))
			e.reconstructed = squaredError(scratch, one(dilated))
		}
	})
	for _, e := range m.each[:n] {
		m.sum.plain += e.plain
		m.sum.clipped += e.clipped
		m.sum.biased += e.biased
		m.sum.reconstructed += e.reconstructed
	}
	m.n += n
	return nil
}

func (m *approxMeter) Values(context.Context) ([]Value, error) {
	values := float64(m.n * m.pixels)
	return []Value{Number(m.sum.plain / values), Number(m.sum.clipped / values), Number(m.sum.biased / values),
		Number(m.sum.reconstructed / values)}, nil
}

// Close frees the coders with modified atoms.
func (m *approxMeter) Close() error {
	var all []error
	for _, c := range []Coder{m.dilated, m.biased} {
		if closer, ok := c.(io.Closer); ok {
			all = append(all, closer.Close())
		}
	}
	return errors.Join(all...)
}
