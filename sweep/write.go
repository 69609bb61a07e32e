package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/train/folder"
)

// A sweep of more than manyTrials trials writes its results after a trial only if the last write was so long ago that writing
// takes at most one part in writingPart of the time: each write covers all trials.
const (
	manyTrials  = 200
	writingPart = 10
)

// record writes the results after a trial, or leaves that to the next one.
func (w *work) record() error {
	w.stale = len(w.Trials) > manyTrials && time.Since(w.written) < writingPart*w.writing
	if w.stale {
		return nil
	}
	began := time.Now()
	err := w.write()
	w.written = time.Now()
	w.writing = w.written.Sub(began)
	return err
}

// write writes the known results if they differ from the files.
func (w *work) write() error {
	files, err := w.results().files()
	if err != nil {
		return err
	}
	files = append(files, folder.File{Name: TimingsFile, Data: w.timings()})
	var differing []folder.File
	for _, f := range files {
		if !w.folder.Holds(f) {
			differing = append(differing, f)
		}
	}
	if len(differing) == 0 {
		return nil
	}
	return w.folder.Write(differing...)
}

// timings are the epochs and the seconds of every trial, evaluation excluded.
func (w *work) timings() []byte {
	rows := [][]string{{"trial", "epochs", "seconds"}}
	for _, t := range w.Trials {
		text, err := regular.ReadFile(filepath.Join(t.Path, folder.Metrics))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || t.measured == nil && t.err == nil {
			continue
		}
		epochs, seconds := spent(text)
		rows = append(rows, []string{t.ID, fmt.Sprint(epochs), fmt.Sprintf("%.3f", seconds)})
	}
	return table(rows)
}

// spent adds up the epochs and seconds of a run's metrics.jsonl.
func spent(text []byte) (epochs int, seconds float64) {
	for line := range bytes.Lines(text) {
		var epoch struct {
			Seconds float64 `json:"seconds"`
		}
		if json.Unmarshal(line, &epoch) == nil && sealed.CheckLine(bytes.TrimSpace(line)) == nil { // the last line of a killed run may be cut
			epochs++
			seconds += epoch.Seconds
		}
	}
	return epochs, seconds
}
