package metrics

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"tessera/internal/vectors"
	"tessera/internal/volume"
)

const (
	componentImages = 2000    // maximum number of measured samples
	componentValues = 1 << 22 // maximum number of values of these samples
	componentRounds = 50      // maximum number of products of the power iteration
	componentChange = 1e-4    // relative change of the share along the direction at which it ends
)

// error_component says whether the error has structure that one more unit could take away: a model in a poor optimum, with too few units or
// with too few epochs leaves some, one whose error is noise leaves next to none. The direction is found on one half of the samples and measured
// on the other, so that noise, too, has the share that chance gives it: 1 divided by the number of values.
func init() {
	register("error_component", "share of the error that one more component would take", Description{
		Measures: []Measure{{Name: "error_component", Better: Lower, Doc: "share of the squared error along one direction, Σ (r·d)² / Σ \\|r\\|² of the residuals r = x - y of every second sample; " +
			"d, of length 1, is the first principal direction (about 0) of the residuals of the others. One more unit would take that share of the error; noise has about 1 / values. " +
			"Of at most 2000 samples, evenly spaced. Only of sums of atoms"}},
		Reads: ReadsImages | ReadsOutputs | ReadsSums, ScaleFree: true, Ordered: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		pixels := volume.Of(s.Shape)
		most := max(1, min(componentImages, componentValues/pixels))
		return &componentMeter{newSpaced(s, pixels, most), newSpaced(s, pixels, most)}, nil
	})
}

type componentMeter struct{ images, outputs spaced }

func (m *componentMeter) Add(b *Batch) error {
	m.images.add(b.Images)
	m.outputs.add(b.Outputs)
	return nil
}

func (m *componentMeter) Values(ctx context.Context) ([]Value, error) {
	x, y, d := vectors.Wide(m.images.rows), vectors.Wide(m.outputs.rows), m.images.width
	n := len(x) / d
	if n < 2 {
		return []Value{NotApplicable("there is one sample")}, nil
	}
	energy := blas64.Dot(vector(x), vector(x))
	blas64.Axpy(-1, vector(y), vector(x))
	// Every second row, one after the other in the memory of both.
	found := blas64.General{Rows: (n + 1) / 2, Cols: d, Stride: 2 * d, Data: x}
	held := blas64.General{Rows: n / 2, Cols: d, Stride: 2 * d, Data: x[d:]}
	total, largest, from := 0.0, 0.0, 0
	for i := range n {
		row := vector(x[i*d : (i+1)*d])
		switch square := blas64.Dot(row, row); {
		case i%2 == 1:
			total += square
		case !(square <= largest):
			largest, from = square, i
		}
	}
	switch {
	case math.IsNaN(total+largest) || math.IsInf(total+largest, 0):
		return []Value{Number(total + largest)}, nil
	case total <= 1e-12*energy || largest == 0:
		return []Value{NotApplicable("there is no error")}, nil
	}
	direction, along := append([]float64(nil), x[from*d:(from+1)*d]...), make([]float64, n)
	for round, before := 0, 0.0; round < componentRounds; round++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		blas64.Scal(1/blas64.Nrm2(vector(direction)), vector(direction))
		blas64.Gemv(blas.NoTrans, 1, found, vector(direction), 0, vector(along[:found.Rows]))
		now := blas64.Dot(vector(along[:found.Rows]), vector(along[:found.Rows]))
		if math.Abs(now-before) <= componentChange*now {
			break
		}
		before = now
		blas64.Gemv(blas.Trans, 1, found, vector(along[:found.Rows]), 0, vector(direction))
	}
	blas64.Scal(1/blas64.Nrm2(vector(direction)), vector(direction))
	blas64.Gemv(blas.NoTrans, 1, held, vector(direction), 0, vector(along[:held.Rows]))
	return []Value{Number(blas64.Dot(vector(along[:held.Rows]), vector(along[:held.Rows])) / total)}, nil
}

func vector(values []float64) blas64.Vector {
	return blas64.Vector{N: len(values), Inc: 1, Data: values}
}
