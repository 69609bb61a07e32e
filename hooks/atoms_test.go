package hooks

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestTangentLeavesWhatIsOrthogonalToTheAtoms(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const atoms, width = 5, 7
	a, g, got := make([]float32, atoms*width), make([]float32, atoms*width), make([]float32, atoms*width)
	for i := range a {
		a[i], g[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
	}
	clear(a[width : 2*width])
	tangents(got, g, a, width)
	for i := 0; i < len(a); i += width {
		var product, square float64
		for j := i; j < i+width; j++ {
			product, square = product+float64(a[j])*float64(g[j]), square+float64(a[j])*float64(a[j])
		}
		for j := i; j < i+width; j++ {
			want := float64(g[j])
			if square > 0 {
				want -= product / square * float64(a[j])
			}
			if math.Abs(float64(got[j])-want) > 1e-5 {
				t.Errorf("atom %d: got %v, want %v", i/width, got[j], want)
			}
		}
	}
}

// The model's outputs for samples of their mean are that mean, and the units read differences from it.
func TestMeanBiasBeginsWithTheMean(t *testing.T) {
	f := newFake(t, []float32{1, 2, 3, 4}, []float32{3, 2, 1, 0})
	random := rand.New(rand.NewPCG(7, 8))
	for _, p := range f.parameters[:2] {
		for i := range p.Data {
			p.Data[i] = float32(random.NormFloat64())
		}
	}
	before := append([]float32(nil), f.parameters[1].Data...)
	active, err := (&MeanBias{}).Attach(f)
	fatal.If(t, err)
	fatal.If(t, active.Initialise())
	mean := []float32{2, 2, 2, 2}
	for j, v := range f.parameters[3].Data {
		expect.Equal(t, v, mean[j], "bias of pixel", j)
	}
	for u, b := range f.parameters[1].Data {
		at := b
		for j, m := range mean {
			at += m * f.parameters[0].Data[j*3+u]
		}
		expect.Near(t, at, before[u], 1e-5, "unit", u, "of the mean")
	}
	f.parameters[3].Started, f.parameters[3].Data[0] = true, 9
	if err := active.Initialise(); err != nil || f.parameters[3].Data[0] != 9 {
		t.Errorf("a bias from another run became %v, %v", f.parameters[3].Data[0], err)
	}
}
