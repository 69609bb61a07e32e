package hooks

import (
	"slices"
	"testing"

	"tessera/attack"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Perturbed values stay in [0,1] only if the training samples do.
func TestPerturbedValuesStayInTheRangeOfTheSamples(t *testing.T) {
	for _, c := range []struct{ images, want []float32 }{
		{[]float32{0, 0.2, 0.9, 1}, []float32{0.5, 0.7, 1, 1}},
		{[]float32{-2, 0.2, 1.5, 3}, []float32{-1.5, 0.7, 2, 3}},
	} {
		f := newFake(t, c.images)
		copy(f.parameters[3].Data, []float32{1, 1, 1, 1}) // all derivatives are 1
		active, err := (&Adversarial{Attack: &attack.FGSM{}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.5}, Share: 1}).Attach(f)
		fatal.If(t, err)
		fatal.If(t, active.Begin())
		s := &Step{Images: slices.Clone(c.images), Clean: c.images, Size: 1}
		fatal.If(t, active.BeforeStep(s))
		expect.Slice(t, s.Images, c.want, c.images)
	}
}
