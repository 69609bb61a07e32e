package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tessera/internal/atomicfile"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/train"
	"tessera/train/folder"
)

// failedDir of a sweep's folder has a file for every trial that failed as a task of an array job.
const failedDir = "failed"

// failure is a file of failedDir.
type failure struct {
	Trial   string `json:"trial"`
	Problem string `json:"problem"` // as the results say it
	SHA256  string `json:"sha256"`  // of this file; see package sealed
}

// failurePath is the file of a trial's failure.
func (s *Sweep) failurePath(t *Trial) string { return filepath.Join(s.Path, failedDir, t.ID+".json") }

// Task does one trial as [Sweep.Do] does and records a failure in the sweep's folder, for [Sweep.Collect]. What may succeed when the
// same task is run again is no failure: an interruption, a full disk, a trial that another process works on.
func (s *Sweep) Task(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if err := os.Remove(s.failurePath(t)); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier try
		return nil, &folder.WriteError{Path: s.failurePath(t), Err: err}
	}
	measured, err := s.Do(ctx, t)
	var unwritten *folder.WriteError
	switch {
	case err == nil:
		return measured, nil
	case ctx.Err() != nil || errors.Is(err, train.ErrInterrupted):
		return nil, fmt.Errorf("%s: %w; run the same command again to resume", t.Path, train.ErrInterrupted)
	case errors.As(err, &unwritten), errors.Is(err, folder.ErrLocked):
		return nil, err
	}
	t.err = err
	return nil, errors.Join(err, s.recordFailure(t))
}

// recordFailure writes the failure of a trial.
func (s *Sweep) recordFailure(t *Trial) error {
	text, err := json.MarshalIndent(failure{t.ID, t.problem(), sealed.Open}, "", "  ")
	text = append(text, '\n')
	if err == nil {
		err = sealed.Seal(text)
	}
	if err != nil {
		return err
	}
	path := s.failurePath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	if err := atomicfile.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}

// failure returns the recorded problem of a trial, "" where there is none or it cannot be read.
func (s *Sweep) failure(t *Trial) string {
	text, err := regular.ReadFile(s.failurePath(t))
	if err != nil || sealed.Check(text) != nil {
		return ""
	}
	var f failure
	if json.Unmarshal(text, &f) != nil || f.Trial != t.ID {
		return ""
	}
	return f.Problem
}
