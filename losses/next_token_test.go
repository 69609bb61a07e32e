package losses_test

import (
	"math"
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// Every token that has another one behind it counts once.
func TestNextTokensAreClassifiedOneByOne(t *testing.T) {
	const batch, n, k = 3, 7, 11
	z, x := make([]float64, batch*n*k), make([]float64, batch*n)
	for i := range z {
		z[i] = 3 * math.Sin(float64(i*i))
	}
	for i := range x {
		x[i] = float64((i*i + 3) % k)
	}
	for _, l := range []*losses.NextToken{{Shift: 1}, {Shift: 3}, {Shift: 0}} {
		want, count := 0.0, 0.0
		for i := range batch {
			for j := 0; j+l.Shift < n; j++ {
				row := z[(i*n+j)*k:][:k]
				_, sum := softmax(row)
				want += sum - row[int(x[i*n+j+l.Shift])]
				count++
			}
		}
		g, err := gradcheck.Compile(gradcheck.Loss(l, z, x, batch, n*k), true)
		fatal.If(t, err)
		defer g.Close()
		fatal.If(t, g.Run())
		if got := g.Output()[0]; differs(got, want/count) {
			t.Errorf("%+v: got %v, want %v", *l, got, want/count)
		}
	}
}
