package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/train/folder"
)

// foreign is the [folder.ErrForeign] of a folder that cannot become a sweep's folder.
type foreign struct{ path, problem string }

// Error implements error.
func (e *foreign) Error() string { return e.path + ": " + e.problem }

// Is makes it a [folder.ErrForeign].
func (e *foreign) Is(target error) bool { return target == folder.ErrForeign }

// place checks whether a folder may be a sweep's folder: it does not exist, is empty, or has files of a sweep only (also of
// one that was killed while writing its first files).
func place(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return fmt.Errorf("%s: %w", path, folder.ErrNotFolder)
		}
		return nil // it is not there, or making it says what is wrong
	}
	if _, err := os.Stat(filepath.Join(path, folder.Config)); !errors.Is(err, fs.ErrNotExist) {
		return &foreign{path, "is the folder of a run; a sweep needs its own folder"}
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, ofSweep) {
		return &foreign{path, "is not empty and holds no sweep: neither " + ResultsFile + " nor " + trialsDir + "/"}
	}
	return nil
}

// ofSweep reports whether only a sweep leaves such an entry in a folder.
func ofSweep(e fs.DirEntry) bool {
	switch name, begun := strings.CutSuffix(e.Name(), folder.Unfinished); name {
	case ResultsFile, ManifestFile:
		return true
	case TableFile, SummaryFile, TimingsFile:
		return begun // killed within the first files; whole ones of these names may be anybody's
	case trialsDir, FleetDir:
		return e.IsDir()
	}
	return false
}
