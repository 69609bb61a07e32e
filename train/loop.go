package train

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"time"

	"tessera/internal/sealed"
	"tessera/internal/volume"
	"tessera/parallel/team"
	"tessera/train/folder"
)

// reportEvery is the minimum time between two reports within an epoch.
const reportEvery = 100 * time.Millisecond

// train continues to the end of the run.
func (s *session) train(ctx context.Context) (*Result, error) {
	if err := s.processes.wait(); err != nil { // data and programs are ready
		return nil, err
	}
	now := time.Now()
	s.began, s.beganAt, s.saved = now, s.progress.Step, now
	defer func() { _ = s.writer.Wait() }() // a panic must not leave a file half written; other errors are returned below
	for !s.finished() {
		if err := s.epoch(ctx); err != nil {
			return nil, errors.Join(err, s.writer.Wait())
		}
	}
	if err := s.writer.Wait(); err != nil {
		return nil, err
	}
	if err := s.processes.wait(); err != nil { // the last checkpoint is written
		return nil, err
	}
	return s.result()
}

// epoch trains to the end of the current epoch.
func (s *session) epoch(ctx context.Context) error {
	s.epochFrom = time.Now()
	m, err := s.learner.epoch(ctx, s.within)
	if errors.Is(err, errHalted) {
		return s.interrupt(ctx)
	} else if err != nil {
		return err
	}
	return s.endEpoch(m)
}

// interrupt writes a checkpoint in the middle of an epoch.
func (s *session) interrupt(ctx context.Context) error {
	s.progress.Seconds = s.spent()
	files, err := s.checkpoint()
	if err != nil {
		return err
	}
	if s.processes.leads() {
		if err := s.folder.SyncMetrics(); err != nil {
			return err
		}
		if err := s.folder.Write(files...); err != nil {
			return err
		}
	}
	if err := s.processes.wait(); err != nil {
		return err
	}
	return &Interruption{Run: s.run, Step: s.progress.Step, Epoch: s.progress.Epoch + 1, Preempted: s.processes.preempted(ctx), Launcher: s.processes.launcher()}
}

// endEpoch writes a line of metrics and, when due, a checkpoint.
func (s *session) endEpoch(m Metrics) error {
	before := s.progress.Seconds
	s.progress.Seconds = 0
	if err := s.writer.Failed(); err != nil {
		return err
	}
	save, err := s.saves()
	if err != nil {
		return err
	}
	var files []folder.File
	if save {
		if files, err = s.checkpoint(); err != nil { // its time is this epoch's
			return err
		}
	}
	if !s.processes.leads() {
		return nil
	}
	m.Seconds = before + time.Since(s.epochFrom).Seconds()
	m.ImagesPerSecond = float64(s.epochImages()) / m.Seconds
	line, err := m.MarshalJSON()
	if err != nil {
		return err
	}
	if err := s.folder.Append(sealed.Line(line)); err != nil {
		return err
	}
	if save {
		s.saved = time.Now()
		if err := s.writer.Start(s.folder, files); err != nil {
			return err
		}
	}
	s.tell(m, true)
	return nil
}

// saves reports whether a checkpoint is due. The clock of rank 0 decides.
func (s *session) saves() (bool, error) {
	due := s.finished() || time.Since(s.saved).Seconds() >= s.spec.Train.CheckpointSeconds
	return s.processes.any(due && s.processes.leads())
}

// within reports the progress within an epoch, when due.
func (s *session) within(measure func() Metrics) {
	if s.options.Report != nil && time.Since(s.reported) >= reportEvery {
		s.tell(measure(), false)
	}
}

// tell reports.
func (s *session) tell(m Metrics, done bool) {
	if s.options.Report == nil {
		return
	}
	s.reported = time.Now()
	epochs := length(s.spec)
	steps := volume.Of([]int{s.stepsPerEpoch(), epochs})
	left := timeLeft(s.reported.Sub(s.began), s.progress.Step-s.beganAt, steps-s.progress.Step)
	if s.finished() {
		left = 0
	}
	s.options.Report(Progress{Run: s.run, Epochs: epochs, Steps: steps, Iterates: s.spec.Baseline != nil, Vectors: len(s.shape) == 1, EpochDone: done, Metrics: m, Left: left})
}

// timeLeft is the time that steps take at the pace so far, at most the longest duration.
func timeLeft(spent time.Duration, done, steps int) time.Duration {
	left := float64(spent) / float64(max(1, done)) * float64(steps)
	if left >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(left)
}

// writer writes checkpoints to the disk during training, one at a time. It gets encoded files, so training can continue to
// change the parameters.
type writer struct {
	done chan error // result of the checkpoint being written; nil if there is none
}

// Start waits for the last checkpoint and starts to write the next one: first its metrics, then its files in order.
func (w *writer) Start(f *folder.Folder, files []folder.File) error {
	if err := w.Wait(); err != nil {
		return err
	}
	done := make(chan error, 1)
	w.done = done
	go func() {
		defer func() {
			if cause := recover(); cause != nil { // it would end the process with the exit code of a usage error
				done <- &team.Panic{Value: cause, Stack: debug.Stack()}
			}
		}()
		if err := f.SyncMetrics(); err != nil {
			done <- err
			return
		}
		done <- f.Write(files...)
	}()
	return nil
}

// Wait waits until the last checkpoint is on the disk and returns its error.
func (w *writer) Wait() error {
	if w.done == nil {
		return nil
	}
	err := <-w.done
	w.done = nil
	return err
}

// Failed returns the error of the last checkpoint, if it is already known.
func (w *writer) Failed() error {
	select {
	case err := <-w.done:
		w.done = nil
		return err
	default:
		return nil
	}
}
