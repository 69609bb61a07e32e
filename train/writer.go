package train

import "tessera/train/folder"

// writer puts checkpoints on the disk during training. What it writes was encoded before, so nothing changes
// under its hands; one checkpoint is written at a time.
type writer struct {
	done chan error // of the checkpoint in work; nil when there is none
}

// Start waits for the last checkpoint and begins to write the next: first the metrics that it stands for, then its
// files in order.
func (w *writer) Start(f *folder.Folder, files []folder.File) error {
	if err := w.Wait(); err != nil {
		return err
	}
	done := make(chan error, 1)
	w.done = done
	go func() {
		if err := f.SyncMetrics(); err != nil {
			done <- err
			return
		}
		done <- f.Write(files...)
	}()
	return nil
}

// Wait returns when the last checkpoint is on the disk, or what prevented that.
func (w *writer) Wait() error {
	if w.done == nil {
		return nil
	}
	err := <-w.done
	w.done = nil
	return err
}

// Failed returns what prevented the last checkpoint, as far as that is known by now.
func (w *writer) Failed() error {
	select {
	case err := <-w.done:
		w.done = nil
		return err
	default:
		return nil
	}
}
