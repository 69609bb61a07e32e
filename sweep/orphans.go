package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/train/folder"
)

// Orphans lists the trials in the sweep's folder that are not trials of the sweep: of an earlier declaration, or of other data.
// A folder that is not a run, or holds somebody's files, is not listed.
func (s *Sweep) Orphans() (ids []string) {
	entries, _ := os.ReadDir(filepath.Join(s.Path, trialsDir)) // a new sweep has no folder
	for _, e := range entries {
		id := e.Name()
		known := strings.HasPrefix(id, ".") || slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.ID == id })
		if !known && e.IsDir() && folder.Replaceable(filepath.Join(s.Path, trialsDir, id)) && !isEmpty(TrialPath(s.Path, id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isEmpty reports whether a folder is empty or cannot be read.
func isEmpty(path string) bool {
	entries, _ := os.ReadDir(path)
	return len(entries) == 0
}

// clean removes the orphans. One that another process works on stays.
func (w *work) clean() error {
	for _, id := range w.Orphans() {
		path := TrialPath(w.Path, id)
		held, err := folder.Open(path, w.options.Disk)
		if err != nil {
			continue
		}
		err = w.options.Disk.RemoveAll(path)
		_ = held.Close()
		if err != nil {
			return &folder.WriteError{Path: path, Err: err}
		}
	}
	return nil
}

// Replaces returns a [folder.ErrForeign] if the folder has results of finished trials that a run of the sweep would drop from
// its tables: those of another sweep, or of this one with other changes ([config.Sweep.Changes]). Values that were added to
// a declaration drop nothing, and a declaration that was edited replaces its own results: the trials that it no longer has are
// [Sweep.Orphans]. Results of earlier versions do not record changes; they are replaced if one of their trials remains.
func (s *Sweep) Replaces() error {
	old, err := Read(s.Path)
	if err != nil || old.Sweep == s.Name && old.Changes != nil && slices.Equal(old.Changes, s.changes) {
		return nil
	}
	finished, dropped := 0, 0
	for _, row := range old.Trials {
		if row.Metrics == nil {
			continue
		}
		finished++
		if !slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.ID == row.Trial }) {
			dropped++
		}
	}
	if dropped == 0 || old.Changes == nil && old.Sweep == s.Name && dropped < finished {
		return nil
	}
	return &foreign{s.Path, fmt.Sprintf("holds the results of %d finished trials of sweep %q%s, which sweep %q%s does not have; --clean removes these trials",
		dropped, old.Sweep, made(old.Changes), s.Name, with(s.changes))}
}

// made says with which changes results were made; those of earlier versions do not tell.
func made(changes []string) string {
	if changes == nil {
		return ", made by an earlier version with unknown flags"
	}
	return with(changes)
}

// with names the changes of a sweep.
func with(changes []string) string {
	if len(changes) == 0 {
		return ""
	}
	return " with " + strings.Join(changes, " ")
}
