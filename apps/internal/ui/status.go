package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tessera/metrics"
	"tessera/sweep"
	"tessera/train"
	"tessera/train/folder"
)

// status is what the list shows of a run or a sweep.
type status struct {
	train.Status
	Dataset string
	stamp   string // of the files it was read from
}

// The states that matter to pages.
const (
	training = train.Training
	finished = train.Finished
)

// statusOf reads the status of a run; its Model is empty if there is none.
func statusOf(path string) status {
	s := status{Status: train.StatusOf(path)}
	if name, err := strconv.Unquote(s.Settings["dataset.name"]); err == nil {
		s.Dataset = name
	}
	return s
}

// sweepStatus summarises a sweep: its epochs are trials.
func sweepStatus(path string) status {
	r, err := sweep.Read(path)
	if err != nil {
		return status{Status: train.Status{Run: path, State: train.Damaged, Problem: err.Error()}}
	}
	s := status{Status: train.Status{Run: path, Model: r.Sweep, State: finished, Epochs: len(r.Trials), Metrics: metrics.Values{}}}
	for _, t := range r.Trials {
		if t.Metrics == nil {
			s.State = train.Interrupted
			continue
		}
		s.Epoch++
		s.Dataset = t.Metrics.Dataset
	}
	if s.State == train.Interrupted && folder.Held(path) {
		s.State = training
	}
	s.Modified = modified(path, sweep.ResultsFile)
	return s
}

// text describes the state in a line.
func (s status) text() string {
	text := fmt.Sprintf("%s: epoch %d of %d", s.State, s.Epoch, s.Epochs)
	if loss, ok := s.Metrics.Number("loss"); ok {
		text += fmt.Sprintf(", loss %.4g", loss)
	}
	if e, ok := s.Metrics.Number("val_mse"); ok {
		text += fmt.Sprintf(", error on the validation set %.4g", e)
	}
	return text
}

// modified is when a file was last written, the zero time if it is missing.
func modified(path, name string) (t time.Time) {
	if info, err := os.Stat(filepath.Join(path, name)); err == nil {
		t = info.ModTime()
	}
	return t
}
