package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tessera/config/part/table"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// State is the state of a run.
type State string

// The states.
const (
	Finished    State = "finished"
	Interrupted State = "interrupted" // can be resumed
	Training    State = "training"    // a process is training it
	Damaged     State = "damaged"     // cannot be resumed
)

// Status describes a run without reading its parameters.
type Status struct {
	Run      string            `json:"run"`
	State    State             `json:"state"`
	Problem  string            `json:"problem,omitempty"` // description of the damage, for a damaged run
	Model    string            `json:"model"`
	Epoch    int               `json:"epoch"`           // number of complete epochs, after which a resume continues; for a baseline, of iterations
	Epochs   int               `json:"epochs"`          // maximum number; 0 if unknown
	Metrics  metrics.Values    `json:"metrics"`         // values of the last line of metrics.jsonl
	Modified time.Time         `json:"modified"`        // when a checkpoint or a line of metrics was last written
	Shape    []int             `json:"shape,omitempty"` // shape of one sample
	Settings map[string]string `json:"-"`               // settings of config.toml, by dotted key, as TOML
}

// StatusOf returns the status of a run. It reads config.toml, the header of the state and the end of metrics.jsonl. It
// detects missing, truncated and unreadable files, but, unlike [Open] and [Resume], not every changed bit of the parameters.
func StatusOf(run string) Status {
	s := Status{Run: run, State: Damaged}
	if err := s.declared(); err != nil {
		s.Problem = err.Error()
		return s
	}
	s.history(math.MaxInt)
	if err := s.stored(); err != nil {
		s.Problem = err.Error()
		return s
	}
	return s
}

// declared reads config.toml.
func (s *Status) declared() error {
	path := filepath.Join(s.Run, folder.Config)
	text, err := regular.ReadUnlinked(path)
	if err != nil {
		return err
	}
	root, found := table.Parse(table.NewSource(path, string(text)))
	models := root.Child("model")
	if len(found) > 0 || !models.IsTable() || len(models.Keys) != 1 {
		return checkpoint.Errorf(path, "is not the declaration of one model")
	}
	s.Model, s.Settings = models.Keys[0], map[string]string{}
	models.Child(s.Model).Leaves("", func(key, value string) { s.Settings[key] = value })
	return nil
}

// stored reads the header of the state and compares it with the declaration.
func (s *Status) stored() error {
	path := filepath.Join(s.Run, folder.State)
	s.touched(path)
	metadata, err := checkpoint.ReadMetadata(path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint.Errorf(path, "is missing")
	} else if err != nil {
		return err
	}
	if err := readable(path, metadata); err != nil {
		return err
	}
	var at progress
	if err := json.Unmarshal([]byte(metadata[progressKey]), &at); err != nil {
		return checkpoint.Errorf(path, "damaged: %s: %v", progressKey, err)
	}
	if s.Shape, err = storedShape(path, &checkpoint.File{Metadata: metadata}); err != nil {
		return err
	}
	s.Epoch = at.Epoch
	if s.Epochs, err = s.length(); err != nil {
		return err
	}
	switch {
	case at.Stopped || at.Epoch >= s.Epochs:
		s.State = Finished
	case folder.Held(s.Run):
		s.State = Training
		if epoch, ok := s.Metrics.Number("epoch"); ok { // its checkpoint is older
			s.Epoch = max(s.Epoch, int(epoch))
		}
	default:
		s.State, s.Metrics = Interrupted, nil
		s.history(s.Epoch) // later epochs are not kept
	}
	return nil
}

// length returns the maximum number of epochs, or of iterations for a baseline.
func (s *Status) length() (int, error) {
	if text, ok := s.Settings["train.epochs"]; ok && s.Settings["kind"] == "" {
		return strconv.Atoi(text)
	}
	spec, err := ConfigOf(s.Run)
	if err != nil {
		return 0, err
	}
	return spec.Training().Most, nil
}

// mostLine is the maximum length in bytes of the last line of metrics.jsonl.
const mostLine = 1 << 16

// history reads the last complete line of metrics.jsonl up to an epoch. Damaged or missing lines do not count as damage of the run.
func (s *Status) history(most int) {
	path := filepath.Join(s.Run, folder.Metrics)
	s.touched(path)
	f, err := regular.OpenUnlinked(path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	end, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-mostLine), mostLine))
	if err != nil {
		return
	}
	rest, _, more := cutLast(end)
	for line := []byte(nil); more; {
		rest, line, more = cutLast(rest)
		var at struct{ Epoch int }
		if sealed.CheckLine(line) == nil && json.Unmarshal(line, &at) == nil && at.Epoch <= most {
			_ = json.Unmarshal(line, &s.Metrics)
			return
		}
		if most == math.MaxInt {
			return
		}
	}
}

// cutLast cuts text at its last line feed.
func cutLast(text []byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, '\n')
	if i < 0 {
		return nil, text, false
	}
	return text[:i], text[i+1:], true
}

// touched updates the time of the last change of the run by the modification time of a file.
func (s *Status) touched(path string) {
	if info, err := os.Stat(path); err == nil && info.ModTime().After(s.Modified) {
		s.Modified = info.ModTime()
	}
}

// Text returns the state in words.
func (s Status) Text() string {
	switch s.State {
	case Interrupted, Training:
		return fmt.Sprintf("%s at %d of %d", s.State, s.Epoch, s.Epochs)
	case Damaged:
		return string(s.State)
	}
	return strings.TrimSpace(fmt.Sprintf("%s at %d", s.State, s.Epoch))
}
