package hooks

import (
	"math/rand/v2"
	"slices"
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
			expect.Near(t, float64(got[j]), want, 1e-5, "atom", i/width)
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

// Every unit begins with its own atom, of length 1; weights from another run keep their values.
func TestTransposeBeginsWithTheAtoms(t *testing.T) {
	f := newFake(t, []float32{1, 2, 3, 4})
	encoder, decoder := f.parameters[0], f.parameters[2]
	for i := range decoder.Data {
		decoder.Data[i] = float32(i%5) - 1.5
	}
	before := append([]float32(nil), decoder.Data...)
	decoder.Started = true
	active, err := (&Transpose{}).Attach(f)
	fatal.If(t, err)
	fatal.If(t, active.Initialise())
	for u := range 3 {
		var square float64
		for j := range 4 {
			v := encoder.Data[j*3+u]
			square += float64(v) * float64(v)
			expect.Near(t, v*before[u*4], before[u*4+j]*encoder.Data[u], 1e-6, "direction of unit", u)
		}
		expect.Near(t, square, 1, 1e-6, "length of unit", u)
	}
	if !slices.Equal(decoder.Data, before) {
		t.Errorf("a decoder from another run became %v", decoder.Data)
	}
	decoder.Started = false
	fatal.If(t, active.Initialise())
	for i, v := range decoder.Data {
		expect.Equal(t, v, encoder.Data[i%4*3+i/4], "value", i, "of the decoder")
	}
	encoder.Started, encoder.Data[0] = true, 9
	if err := active.Initialise(); err != nil || encoder.Data[0] != 9 {
		t.Errorf("a weight from another run became %v, %v", encoder.Data[0], err)
	}
}
