package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/train"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// keptMetrics are eval.json and test.json of a trial. They hold as long as the parameters that were measured are those of the
// trial, and not a bit of the file has changed.
type keptMetrics struct {
	Trial      string          `json:"trial"`
	Parameters string          `json:"parameters"` // SHA-256 of the file of the measured parameters
	Measured   *metrics.Result `json:"measured"`
	SHA256     string          `json:"sha256"` // of this file; see package sealed
}

// measure measures a trained trial on a split and writes the metrics into a file of its folder.
func (w *work) measure(ctx context.Context, t *Trial, backend graph.Backend, split data.Split, file string) (*metrics.Result, error) {
	parameters, err := train.ParametersOf(t.Path)
	if err != nil {
		return nil, err
	}
	measured, err := w.evaluate(ctx, t, backend, split)
	if err != nil {
		return nil, err
	}
	return measured, w.keep(t, file, keptMetrics{t.ID, parameters.SHA256, measured.Whole(), sealed.Open})
}

// keep writes the metrics of a trial into a file of its folder, those that are not applicable included.
func (w *work) keep(t *Trial, file string, kept keptMetrics) error {
	text, err := json.MarshalIndent(kept, "", "  ")
	text = append(text, '\n')
	if err == nil {
		err = sealed.Seal(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	held, err := folder.Open(t.Path, w.options.Disk)
	if err != nil {
		return err
	}
	defer held.Close()
	return held.Write(folder.File{Name: file, Data: text})
}

// kept returns the metrics of a finished trial on the sweep's images, nil if a requested metric is missing. Metrics that are
// unreadable, damaged or of other parameters are measured again.
func (s *Sweep) kept(t *Trial) *metrics.Result { return s.read(t, keptFile, s.split) }

// read returns the metrics that a file of a trial holds, nil if they are not those of its parameters on this split.
func (s *Sweep) read(t *Trial, file string, split data.Split) *metrics.Result {
	text, err := regular.ReadFile(filepath.Join(t.Path, file))
	if err != nil || sealed.Check(text) != nil {
		return nil
	}
	var kept keptMetrics
	if json.Unmarshal(text, &kept) != nil || kept.Trial != t.ID || kept.Measured == nil || kept.Measured.Images == 0 {
		return nil
	}
	if parameters, err := train.ParametersOf(t.Path); err != nil || parameters.SHA256 != kept.Parameters {
		return nil
	}
	if split == data.TestSplit && !t.tested.HasTest {
		split = data.AllSplit
	}
	picked, ok := s.options.Metrics.Of(kept.Measured)
	if !ok || picked.Split != string(split) {
		return nil
	}
	return picked
}

// verify refuses a trial whose folder declares another model than the one that its ID stands for.
func (t *Trial) verify() error {
	stored, err := train.ConfigOf(t.Path)
	if err != nil {
		return err
	}
	stored.About = t.Model.About // it is not part of the identity
	differing := config.Differences(t.Model.Resolved(t.fitted.Shape), stored.Resolved(t.fitted.Shape))
	if len(differing) == 0 {
		return nil
	}
	lines := make([]string, len(differing))
	for i, d := range differing {
		lines[i] = d.String()
	}
	return checkpoint.Mismatchf(filepath.Join(t.Path, folder.Config), "does not declare the model of this trial: %s; restore the file, or remove the folder to train the trial again",
		strings.Join(lines, "; "))
}
