// Package samefiles compares the files of two sweeps, except for files that record times or the machine. Two sweeps
// with the same settings must have the same bytes, whether they run on one machine or several, interrupted or not.
package samefiles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// differing lists the files that depend on times or on the machine.
var differing = map[string]bool{"timings.csv": true, "metrics.jsonl": true, "env.json": true}

// Files returns the contents of the files of the sweep in a folder, by their paths relative to it.
func Files(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || differing[d.Name()] {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	return files, err
}

// Differ returns an error that names each file that differs, is missing or is superfluous. If unfinished is true,
// temporary files (.new) of killed processes are allowed.
func Differ(got, want map[string]string, unfinished bool) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := got[name]; !ok {
			all = append(all, fmt.Errorf("%s is missing", name))
		} else if text != want[name] {
			all = append(all, fmt.Errorf("%s differs:\n%.300q\nwant\n%.300q", name, text, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && !(unfinished && strings.HasSuffix(name, ".new")) {
			all = append(all, fmt.Errorf("%s should not be there", name))
		}
	}
	return errors.Join(all...)
}
