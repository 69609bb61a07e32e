package parts

import (
	"errors"

	"tessera/hooks"
)

// Wobble multiplies the learning rate of a step by 1 + Size m, where m is the mean of the batches so far. The state contains
// m.
type Wobble struct {
	Size float64 `toml:"size" want:">= 0" doc:"how much the mean of the images changes the learning rate"`
}

func init() {
	hooks.Registry.Register("wobble", "a learning rate that follows the brightness of the images", func() hooks.Hook { return &Wobble{Size: 0.5} })
}

// NeedsSteps implements [hooks.NeedsSteps].
func (*Wobble) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps whose learning rate could change", "remove the hook"
}

// Attach implements [hooks.Hook].
func (w *Wobble) Attach(hooks.Training) (*hooks.Active, error) {
	mean := []float32{0}
	var record struct{ Steps int }
	return &hooks.Active{
		BeforeStep: func(s *hooks.Step) error {
			var sum float32
			for _, v := range s.Images {
				sum += v
			}
			record.Steps++
			mean[0] += (sum/float32(len(s.Images)) - mean[0]) / float32(record.Steps)
			return nil
		},
		Rate: func() float64 { return 1 + w.Size*float64(mean[0]) },
		Save: func(s *hooks.State) {
			s.Put("mean", []int{1}, mean)
			s.PutRecord(record)
		},
		Restore: func(s *hooks.State) error { return errors.Join(s.Load("mean", []int{1}, mean), s.LoadRecord(&record)) },
	}, nil
}
