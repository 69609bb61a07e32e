package hooks

import "slices"

// EarlyStopping selects the parameters of the epoch with the lowest validation error. It ends the training after patience
// epochs without a decrease of the error by more than min_delta. The error is val_mse. Without a decoder it is val_loss, the
// objective on the validation images, if measured, or else the sum of the heads' negative log-likelihoods on these images. If
// none of these is measured, it is the training loss. The training loss usually decreases to the end: the hook then neither
// stops the training nor prevents overfitting, and `check` warns.
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

func (*EarlyStopping) Stage() Stage             { return Evaluate }
func (*EarlyStopping) Replicated() (state bool) { return false }

func (e *EarlyStopping) Attach(t Training) (*Active, error) {
	s := &stopping{EarlyStopping: e, training: t, of: t.Parameters("*")}
	for _, p := range s.of {
		s.values = append(s.values, make([]float32, len(p.Data)))
	}
	return &Active{EndEpoch: s.endEpoch, Best: s.bestEpoch, Save: s.save, Restore: s.restore}, nil
}

// stopping is the hook's state in a training.
type stopping struct {
	*EarlyStopping
	training Training
	of       []*Parameter
	best     *bestRecord // the best epoch; nil before the first epoch is complete
	values   [][]float32 // parameters of the best epoch
}

// bestRecord describes the epoch with the lowest error so far.
type bestRecord struct {
	Epoch int     `json:"epoch"`
	Step  int     `json:"step"`
	Error float64 `json:"error"`
}

// endEpoch stores the parameters of a better epoch and stops after patience epochs without an improvement.
func (s *stopping) endEpoch(e *Epoch) error {
	measure := e.error()
	if s.best == nil || measure < s.best.Error-s.MinDelta {
		s.best = &bestRecord{e.Epoch, e.Step, measure}
		for i, p := range s.of {
			copy(s.values[i], s.training.Evaluated(p))
		}
	} else if e.Epoch-s.best.Epoch >= s.Patience {
		s.training.Stop()
	}
	return nil
}

func (s *stopping) bestEpoch() *BestEpoch {
	if s.best == nil {
		return nil
	}
	return &BestEpoch{Epoch: s.best.Epoch, Step: s.best.Step, Error: s.best.Error, Values: slices.Clone(s.values)}
}

func (s *stopping) save(to *State) {
	if s.best != nil {
		to.PutRecord(s.best)
		to.putAll(s.of, s.values)
	}
}

// restore loads the saved state. If early stopping was enabled after the checkpoint, it begins with the next epoch.
func (s *stopping) restore(from *State) error {
	if err := from.LoadRecord(&s.best); err != nil || s.best == nil {
		return err
	}
	return from.loadAll(s.of, s.values)
}
