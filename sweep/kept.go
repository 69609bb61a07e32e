package sweep

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"tessera/config"
	"tessera/data"
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
