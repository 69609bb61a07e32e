package parts

import "tessera/hooks"

// Shrink multiplies the weights of the encoder by a factor at the end of every epoch.
type Shrink struct {
	By float64 `toml:"by" want:"in (0,1)" doc:"factor of the encoder's weights"`
}

func init() {
	hooks.Registry.Register("shrink", "decays the encoder's weights", func() hooks.Hook { return &Shrink{By: 0.9} })
}

// NeedsSteps implements [hooks.NeedsSteps].
func (*Shrink) NeedsSteps() (problem, hint string) {
	return "%s does not continue from changed parameters", "remove the hook"
}

// Attach implements [hooks.Hook].
func (s *Shrink) Attach(t hooks.Training) (*hooks.Active, error) {
	weights := t.Parameters("encoder.*.weight")
	return &hooks.Active{EndEpoch: func(*hooks.Epoch) error {
		for _, p := range weights {
			t.Rewrite(p, func(values []float32) {
				for i := range values {
					values[i] *= float32(s.By)
				}
			})
			t.Project(p)
		}
		return nil
	}}, nil
}
