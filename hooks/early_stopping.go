package hooks

import "slices"

// EarlyStopping keeps the parameters of the epoch with the lowest validation error. It ends the training after patience
// epochs without a decrease by more than min_delta. The error is val_mse; without a decoder the negative log-likelihoods of
// the heads on the validation images, added; loss if neither is measured.
//
// Source: Prechelt, Early Stopping, but when?, 1998.
type EarlyStopping struct {
	Patience int     `toml:"patience" want:"> 0" doc:"epochs without an improvement after which the training stops"`
	MinDelta float64 `toml:"min_delta" want:">= 0" doc:"smallest decrease that counts as an improvement"`
}

func init() {
	Registry.Register("early_stopping", "stops when the validation error stops decreasing, and keeps the best epoch",
		func() Hook { return &EarlyStopping{Patience: 10} })
}

// Stage implements [Staged].
func (*EarlyStopping) Stage() Stage { return Judge }

// Replicated implements [Replicated].
func (*EarlyStopping) Replicated() (state bool) { return false }

// Attach implements [Hook].
func (e *EarlyStopping) Attach(t Training) (*Active, error) {
	s := &stopping{EarlyStopping: e, training: t, of: t.Parameters("*")}
	for _, p := range s.of {
		s.values = append(s.values, make([]float32, len(p.Data)))
	}
	return &Active{EndEpoch: s.judge, Kept: s.kept, Save: s.save, Restore: s.restore}, nil
}

// stopping is the running form.
type stopping struct {
	*EarlyStopping
	training Training
	of       []*Parameter
	best     *bestEpoch  // nil before the first epoch is complete
	values   [][]float32 // of the best epoch
}

// bestEpoch is the epoch with the lowest error so far.
type bestEpoch struct {
	Epoch int     `json:"epoch"`
	Step  int     `json:"step"`
	Error float64 `json:"error"`
}

// judge keeps the parameters of a better epoch and stops after patience epochs without an improvement.
func (s *stopping) judge(e *Epoch) error {
	measure := e.error()
	if s.best == nil || measure < s.best.Error-s.MinDelta {
		s.best = &bestEpoch{e.Epoch, e.Step, measure}
		for i, p := range s.of {
			copy(s.values[i], s.training.Shown(p))
		}
	} else if e.Epoch-s.best.Epoch >= s.Patience {
		s.training.Stop()
	}
	return nil
}

func (s *stopping) kept() *Kept {
	if s.best == nil {
		return nil
	}
	return &Kept{Epoch: s.best.Epoch, Step: s.best.Step, Error: s.best.Error, Values: slices.Clone(s.values)}
}

func (s *stopping) save(to *State) {
	if s.best == nil {
		return
	}
	to.PutRecord(s.best)
	for i, p := range s.of {
		to.Put(p.Path, p.Shape, s.values[i])
	}
}

// restore loads the saved state. If early stopping was enabled after the checkpoint, it begins with the next epoch.
func (s *stopping) restore(from *State) error {
	if err := from.LoadRecord(&s.best); err != nil || s.best == nil {
		return err
	}
	for i, p := range s.of {
		if err := from.Load(p.Path, p.Shape, s.values[i]); err != nil {
			return err
		}
	}
	return nil
}
