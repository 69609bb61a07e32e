package laws

import (
	"math"
	"testing"

	"tessera/internal/expect"
)

// A value that is not finite changes the tolerance of no other value, and the message names the value itself.
func TestNearNamesTheValueThatIsNotFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		got, want []float64
		problem   string
	}{
		{[]float64{0, 1, nan}, []float64{0, 1, nan}, ""},
		{[]float64{0, inf}, []float64{0, inf}, ""},
		{[]float64{0, 1, 2}, []float64{0, 1, nan}, "element 2 is 2, want NaN"},
		{[]float64{0, nan}, []float64{0, 1}, "element 1 is NaN, want 1"},
		{[]float64{0, inf}, []float64{5, inf}, "element 0 is 0, want 5: off by 5.0e+00"},
		{[]float64{0, -inf}, []float64{0, inf}, "element 1 is -Inf, want +Inf"},
	} {
		text := ""
		if err := near(c.got, c.want, 1e-9); err != nil {
			text = err.Error()
		}
		expect.Equal(t, text, c.problem, c.got, "want", c.want)
	}
}
