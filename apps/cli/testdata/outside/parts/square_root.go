package parts

import (
	"math"

	"tessera/data"
)

// SquareRoot is the square root of counts; negative values count as 0.
type SquareRoot struct{}

func init() {
	data.Scalings.Register("square_root", "the square root of x", func() data.Scaler { return &SquareRoot{} })
}

// Fits implements [data.Scaler].
func (*SquareRoot) Fits() bool { return false }

// Fit implements [data.Scaler].
func (s *SquareRoot) Fit(m *data.Images) (*data.Scaling, error) {
	return data.NewSteps(m.Pixels(), s), nil
}

// FittedTo implements [data.Step].
func (*SquareRoot) FittedTo(int) bool { return true }

// Apply implements [data.Step].
func (*SquareRoot) Apply(_ []int32, values []float32) {
	for i, v := range values {
		values[i] = float32(math.Sqrt(float64(max(v, 0))))
	}
}

// Undo implements [data.Inverse].
func (*SquareRoot) Undo(values []float32) {
	for i, v := range values {
		values[i] = v * v
	}
}
