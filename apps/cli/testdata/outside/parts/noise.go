package parts

import (
	"fmt"
	"slices"

	"tessera/attack"
)

// Noise tries random points of the ball and keeps, for each sample, the one with the largest value of the objective.
type Noise struct {
	Tries int `toml:"tries" want:"in [1,1000]" doc:"number of random points"`
}

func init() {
	attack.Registry.Register("noise", "random points of the ball", func() attack.Attack { return &Noise{Tries: 10} })
}

func (n *Noise) Perturb(t *attack.Task, x []float32) error {
	var all []int
	for i := range t.Samples {
		all = append(all, i)
	}
	best, err := t.Outcomes(x, all)
	try := slices.Clone(x)
	for k := range n.Tries {
		for _, i := range all {
			t.Scatter(t.Sample(try, i), t.Sample(t.Clean, i), t.Pixels, t.Random(fmt.Sprint("noise/", k), i))
		}
		o, failed := t.Outcomes(try, all)
		for _, i := range all {
			if err == nil && failed == nil && !best.Wrong[i] && t.Value(o, i) > t.Value(best, i) {
				copy(t.Sample(x, i), t.Sample(try, i))
				best.Loss[i], best.Margin[i], best.Wrong[i] = o.Loss[i], o.Margin[i], o.Wrong[i]
			}
		}
	}
	return err
}
