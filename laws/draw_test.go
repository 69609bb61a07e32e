package laws_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/laws"
)

// wrongDraw is a drawn column with the behaviour that a test specifies.
type wrongDraw struct {
	Calls int
	kind  data.Type
	draw  *func(d *wrongDraw, dst []float32)
}

func (d *wrongDraw) Column(func(string) (data.Column, bool)) (data.Column, error) {
	return data.Column{Shape: []int{2}, Type: d.kind}, nil
}

func (d *wrongDraw) Draw(dst []float32, _ data.Drawing, _ *rand.Rand) { (*d.draw)(d, dst) }

// For every law of drawn columns there is an incorrect part that breaks exactly this law.
func TestTheLawsOfDrawnColumnsAreBroken(t *testing.T) {
	calls := float32(0)
	for _, c := range []struct {
		law  string
		kind data.Type
		draw func(d *wrongDraw, dst []float32)
	}{
		{"describes a shape and a type", "", func(_ *wrongDraw, dst []float32) { clear(dst) }},
		{"sets every value, whatever it was", data.Whole, func(_ *wrongDraw, dst []float32) { clear(dst[1:]) }},
		{"writes inside the values of its sample only", data.Whole, func(_ *wrongDraw, dst []float32) { clear(dst[:len(dst)+1]) }},
		{"is finite and of its type", data.Whole, func(_ *wrongDraw, dst []float32) { dst[0], dst[1] = 0.5, 1 }},
		{"is finite and of its type", data.Bytes, func(_ *wrongDraw, dst []float32) { dst[0], dst[1] = 2, 1 }},
		{"is finite and of its type", data.Float32, func(_ *wrongDraw, dst []float32) { dst[0], dst[1] = 2, float32(math.NaN()) }},
		{"gives the same bits for the same stream", data.Float32, func(_ *wrongDraw, dst []float32) {
			calls++
			dst[0], dst[1] = calls, 0
		}},
		{"never changes its settings", data.Float32, func(d *wrongDraw, dst []float32) {
			clear(dst)
			d.Calls++
		}},
	} {
		broken := laws.Broken(laws.Draw, func() data.Draw { return &wrongDraw{kind: c.kind, draw: &c.draw} })
		if !slices.Contains(broken, c.law) {
			t.Errorf("%q is not broken, but %q", c.law, broken)
		}
	}
	expect.Equal(t, len(laws.Draw.Names()), 6, "laws, of which 6 have a part that breaks them")
}

func TestEveryDrawnColumnObeysItsLaws(t *testing.T) {
	for _, e := range data.Draws.All() {
		t.Run(e.Name, func(t *testing.T) {
			laws.Check(t, laws.Draw, func() data.Draw {
				d := e.New()
				if w, ok := d.(*data.DrawWhole); ok {
					w.Below = 3 // a key that must be given
				}
				return d
			})
		})
	}
}
