package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tessera/internal/machine"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// ManifestFile of a sweep's folder has the trials by the index that the tasks of an array job have.
const ManifestFile = "manifest.json"

// Manifest is a frozen sweep with all that its tasks need beside the data: manifest.json. The tasks of an array job, which may
// run on different machines, share the sweep's folder and take their trials from it by an index.
type Manifest struct {
	Program string   `json:"program"`  // version of the program that wrote it
	PerTask int      `json:"per_task"` // trials per index: index i has the trials from i·PerTask on
	PerJob  int      `json:"per_job"`  // most indices of one job of Slurm
	Metrics []string `json:"metrics"`  // measured of every trial, as --metrics names them; none: the default ones
	SVM     bool     `json:"svm"`      // whether the codes are classified too
	*Frozen
	SHA256 string `json:"sha256"` // of this file; see package sealed
}

// Tasks is the number of indices, from 0.
func (m *Manifest) Tasks() int { return (len(m.Trials) + m.PerTask - 1) / m.PerTask }

// Task returns the places of an index's trials. An index that the manifest does not have is an error.
func (m *Manifest) Task(index int) ([]int, error) {
	if index < 0 || index >= m.Tasks() {
		return nil, fmt.Errorf("sweep %q: there is no task %d (want 0 to %d)", m.Sweep, index, m.Tasks()-1)
	}
	var places []int
	for i := index * m.PerTask; i < min((index+1)*m.PerTask, len(m.Trials)); i++ {
		places = append(places, i)
	}
	return places, nil
}

// ReadManifest reads the manifest of a sweep's folder. A folder without one is [fs.ErrNotExist]; one that is damaged is a
// [*checkpoint.Error].
func ReadManifest(path string) (*Manifest, error) {
	at := filepath.Join(path, ManifestFile)
	text, err := regular.ReadFile(at)
	if err != nil {
		return nil, err
	}
	err = sealed.Check(text)
	m := &Manifest{}
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err == nil && (m.Frozen == nil || m.PerTask < 1 || m.PerJob < 1 || len(m.Trials) == 0) {
		err = errors.New("it has no trials")
	}
	if err != nil {
		return nil, checkpoint.Errorf(at, "%s; copy it again, or write it again with `tessera sweep NAME --emit`", damage(err))
	}
	return m, nil
}

// Emit writes the manifest of the sweep and further files, such as job scripts, into the sweep's folder, where trials may be
// done already. The manifest of other trials, whose tasks may still be waiting, is not replaced: [folder.ErrForeign].
func (s *Sweep) Emit(m Manifest, files ...folder.File) error {
	if err := s.labelled(); err != nil {
		return err
	}
	m.Program, m.Frozen = machine.Version(), s.Freeze()
	text, err := m.text()
	if err != nil {
		return err
	}
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := s.Replaces(); err != nil && !s.options.Clean {
		return err
	}
	if err := s.replacesManifest(m); err != nil {
		return err
	}
	for _, dir := range []string{trialsDir, failedDir} {
		if err := os.MkdirAll(filepath.Join(s.Path, dir), 0o777); err != nil {
			return &folder.WriteError{Path: s.Path, Err: err}
		}
	}
	return held.Write(append([]folder.File{{Name: ManifestFile, Data: text}}, files...)...)
}

// text is the file.
func (m Manifest) text() ([]byte, error) {
	m.SHA256 = sealed.Open
	text, err := json.MarshalIndent(m, "", "  ")
	text = append(text, '\n')
	if err == nil {
		err = sealed.Seal(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return text, nil
}

// replacesManifest refuses to replace the manifest of other trials. A damaged one is of no use to any task.
func (s *Sweep) replacesManifest(m Manifest) error {
	old, err := ReadManifest(s.Path)
	if err != nil {
		return nil
	}
	m.Program = old.Program // another version of the program may have written the same trials
	was, err := old.text()
	if err != nil {
		return err
	}
	if now, err := m.text(); err != nil || bytes.Equal(was, now) {
		return err
	}
	return &foreign{s.Path, "has the " + ManifestFile +
		" of other trials or settings, whose tasks may still be waiting or running; if none is, remove that file"}
}

// Matches returns an error for a sweep, declared from some trials of the manifest or from all, that has other trials: other data, or
// other defaults in another version of the program.
func (m *Manifest) Matches(s *Sweep, places ...int) error {
	if len(places) == 0 {
		for i := range m.Trials {
			places = append(places, i)
		}
	}
	for i, place := range places {
		if i >= len(s.Trials) || s.Trials[i].ID != m.Trials[place].ID {
			const problem = "the trial of place %d is not the one that was declared (%s): the data have other checksums, or another version of " +
				"the program wrote it (%s, this is %s); restore them, or write the manifest again with `tessera sweep NAME --emit` into another folder"
			return checkpoint.Mismatchf(filepath.Join(s.Path, ManifestFile), problem, place, m.Trials[place].ID, m.Program, machine.Version())
		}
	}
	return nil
}
