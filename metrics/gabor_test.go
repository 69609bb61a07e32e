package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
)

func TestGaborFunctionsAreFoundAndOthersAreNot(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	const side = 12
	draw := func(g gabor, phase float64) []float32 {
		out := make([]float32, side*side)
		for i := range out {
			y, x := float64(i/side)-g.row, float64(i%side)-g.column
			u, v := x*math.Cos(g.angle)+y*math.Sin(g.angle), y*math.Cos(g.angle)-x*math.Sin(g.angle)
			out[i] = float32(3 * math.Exp(-u*u/(2*g.along*g.along)-v*v/(2*g.across*g.across)) * math.Cos(2*math.Pi*g.wave*u+phase))
		}
		return out
	}
	for range 20 {
		want := gabor{row: 3 + 5*r.Float64(), column: 3 + 5*r.Float64(), along: 1.5 + r.Float64(), across: 1.5 + 2*r.Float64(), angle: math.Pi * r.Float64(), wave: 0.15 + 0.2*r.Float64()}
		g, ok := fitGabor(draw(want, 6*r.Float64()), side, side)
		if turn := math.Mod(g.angle-want.angle+9.5*math.Pi, math.Pi) - math.Pi/2; !ok || !g.describes() || g.fit < 0.99 ||
			math.Abs(g.wave-want.wave) > 0.03 || math.Abs(turn) > 0.2 || math.Hypot(g.row-want.row, g.column-want.column) > 0.5 {
			t.Errorf("got %+v, want %+v", g, want)
		}
	}
	noise, empty := make([]float32, side*side), make([]float32, side*side)
	for i := range noise {
		noise[i] = float32(r.NormFloat64())
	}
	centre := gabor{row: 5.5, column: 5.5, along: 2, across: 2}
	wide := gabor{row: 5.5, column: 5.5, along: 30, across: 30, wave: 0.2}
	atoms := map[string][]float32{"noise": noise, "a blob": draw(centre, 0), "a grating": draw(wide, 0)}
	for name, atom := range atoms {
		if g, ok := fitGabor(atom, side, side); !ok || g.describes() {
			t.Errorf("%s counts as a Gabor function: %+v", name, g)
		}
	}
	c := newAffine(r, []int{side, side}, 3)
	c.atoms.Values = append(append(draw(gabor{row: 5, column: 6, along: 2, across: 2, wave: 0.25}, 1), noise...), empty...)
	result := measured(t, c, make([]float32, side*side), selected(t, "gabor")...)
	expect.Equal(t, number(t, result, "gabor_atoms"), 1, "gabor_atoms")
	if got := number(t, result, "gabor_fit"); got < 0.5 || got > 0.9 {
		t.Errorf("gabor_fit: got %v, want the mean of 1 and the fit of noise", got)
	}
}
