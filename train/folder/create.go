package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tessera/internal/atomicfile"
)

// stale is the age after which an unlocked temporary folder is considered left over from a killed process.
const stale = time.Minute

// Create atomically creates and locks the folder of a new run with these files. The path must not exist or be an empty
// folder, else Create fails with [ErrExists]. With force an existing run is replaced in one step once the new one is
// complete. After an error the path is as it was before. Force never replaces a folder that is not a run ([ErrNotRun]), a run whose folder contains other files
// ([ErrForeign], which names them), or a run that another process works on ([ErrLocked]). The current directory and its
// parents are never replaced, not even if empty ([ErrWorkingFolder]): replacing one would leave the process in a deleted
// directory.
func Create(path string, force bool, disk Disk, files ...File) (*Folder, error) {
	place, err := filepath.Abs(path)
	if err != nil {
		return nil, &WriteError{Path: path, Err: err}
	}
	if resolved, err := filepath.EvalSymlinks(place); err == nil {
		place = resolved // a symbolic link stays unchanged
	}
	if holdsWorkingFolder(place) {
		return nil, fmt.Errorf("%s: %w", path, ErrWorkingFolder)
	}
	// Errors that are known in advance are returned before anything is written; install checks again.
	if _, err := vacant(place, force); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := prepare(place, disk, files)
	if err != nil {
		return nil, err
	}
	made := f.path
	if err := f.install(place, force); err != nil {
		_ = f.Close()
		_ = disk.RemoveAll(made)
		if errors.Is(err, ErrExists) || errors.Is(err, ErrLocked) || errors.Is(err, ErrNotRun) || errors.Is(err, ErrForeign) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, &WriteError{Path: path, Err: err}
	}
	f.path = path
	return f, nil
}

// holdsWorkingFolder reports whether an absolute path without links is the current directory or one of its parents.
func holdsWorkingFolder(place string) bool {
	here, err := os.Getwd()
	if err != nil {
		return false // it does not exist any more
	}
	if resolved, err := filepath.EvalSymlinks(here); err == nil {
		here = resolved
	}
	within, err := filepath.Rel(place, here)
	return err == nil && filepath.IsLocal(within)
}

// CreateNext is [Create] at the first free path of path, path-2, path-3, ...
func CreateNext(path string, disk Disk, files ...File) (*Folder, error) {
	for i := 1; ; i++ {
		place := path
		if i > 1 {
			place = fmt.Sprintf("%s-%d", path, i)
		}
		f, err := Create(place, false, disk, files...)
		if !errors.Is(err, ErrExists) {
			return f, err
		}
	}
}

// prepare creates the folder under a temporary name in the same parent, and locks it.
func prepare(place string, disk Disk, files []File) (*Folder, error) {
	parent, name := filepath.Split(place)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, &WriteError{Path: parent, Err: err}
	}
	sweep(parent, name, stale, disk)
	dir := filepath.Join(parent, inMaking(name)+strings.ToLower(rand.Text()[:8]))
	if err := disk.Mkdir(dir); err != nil {
		return nil, &WriteError{Path: place, Err: err}
	}
	held, err := lock(dir)
	if err != nil {
		return nil, &WriteError{Path: place, Err: err}
	}
	f := &Folder{path: dir, disk: disk, lock: held}
	for _, file := range files {
		if err := disk.WriteFile(f.Join(file.Name), file.write); err != nil {
			_ = f.Close()
			_ = disk.RemoveAll(dir)
			return nil, &WriteError{Path: filepath.Join(place, file.Name), Err: err}
		}
	}
	if err := disk.Sync(dir); err != nil {
		_ = f.Close()
		_ = disk.RemoveAll(dir)
		return nil, &WriteError{Path: place, Err: err}
	}
	return f, nil
}

// install renames the new folder to its path. If it fails, the path is as it was before: an old run stays.
func (f *Folder) install(place string, force bool) error {
	old, err := vacant(place, force)
	if err != nil {
		return err
	}
	if old {
		return f.replace(place)
	}
	// Remove fails for a non-empty folder, and Rename for an existing one: files that were created meanwhile are safe.
	if err = f.disk.Remove(place); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = f.disk.Rename(f.path, place)
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	} else if err != nil {
		return err
	}
	if err := f.disk.Sync(filepath.Dir(place)); err != nil {
		return errors.Join(err, f.disk.Rename(place, f.path))
	}
	return nil
}

// replace replaces an old run by the new folder. The old run exists until the new one is in place and on the disk.
func (f *Folder) replace(place string) error {
	held, err := lock(place)
	if err != nil {
		return err
	}
	defer unlock(held)
	old, undo := f.path, func() error { return f.disk.Exchange(f.path, place) }
	err = f.disk.Exchange(f.path, place)
	if errors.Is(err, errors.ErrUnsupported) {
		at := strings.LastIndex(f.path, temporary) // parent folders, and the run's name, may hold the same text
		old = f.path[:at] + ".old-" + f.path[at+len(temporary):]
		undo = func() error {
			if err := f.disk.Rename(place, f.path); err != nil {
				return err
			}
			return f.disk.Rename(old, place)
		}
		if err := f.disk.Rename(place, old); err != nil {
			return err
		}
		if err = f.disk.Rename(f.path, place); err != nil {
			return errors.Join(err, f.disk.Rename(old, place))
		}
	}
	if err != nil {
		return err
	}
	if err := f.disk.Sync(filepath.Dir(place)); err != nil {
		return errors.Join(err, undo())
	}
	_ = f.disk.RemoveAll(old) // what remains of the old run does no harm: the new one is complete
	return nil
}

// vacant returns an error if no new run may be created at a path, and reports whether an old run is there.
func vacant(place string, force bool) (old bool, err error) {
	entries, err := os.ReadDir(place)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return false, nil
	case err != nil:
		if info, statErr := os.Stat(place); statErr == nil && !info.IsDir() {
			return false, ErrNotFolder
		}
		return false, &WriteError{Path: place, Err: err}
	case !force:
		return false, ErrExists
	}
	if _, err := os.Stat(filepath.Join(place, Config)); err != nil {
		return false, ErrNotRun
	}
	if others := foreign(entries); len(others) > 0 {
		return false, fmt.Errorf("%w: %s", ErrForeign, strings.Join(others, ", "))
	}
	return true, nil
}

// foreign returns the names in a run's folder that no run writes; names of folders end in a slash.
func foreign(entries []fs.DirEntry) []string {
	own := []string{Config, Environment, Metrics, State, Model, Best, Picture, measured, tested}
	var others []string
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir():
			others = append(others, name+"/")
		case atomicfile.IsTemporary(name, Picture): // a killed process left it
		case !slices.Contains(own, strings.TrimSuffix(name, Unfinished)):
			others = append(others, name)
		}
	}
	return others
}

// Tidy removes temporary folders in parent that killed processes left. No other process may create runs there.
func Tidy(parent string, disk Disk) { sweep(parent, "", 0, disk) }

// TidyPictures removes the half-drawn pictures that killed processes left in the run's folder.
func (f *Folder) TidyPictures() {
	atomicfile.Tidy(f.disk, f.path, Picture)
}

// longestName is how much of a run's name the name of its folder in the making repeats: file systems limit names to 255
// bytes.
const longestName = 200

// inMaking begins the name of a folder until it is renamed to that name.
func inMaking(name string) string { return "." + name[:min(len(name), longestName)] + temporary }

// sweep removes stale temporary folders of that name, or of any name for "".
func sweep(parent, name string, age time.Duration, disk Disk) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		of := strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), temporary)
		if name != "" {
			of = strings.HasPrefix(e.Name(), inMaking(name))
		}
		if err != nil || !e.IsDir() || !of || time.Since(info.ModTime()) < age {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if held, err := lock(dir); err == nil {
			_ = disk.RemoveAll(dir) // a folder that remains does no harm
			_ = unlock(held)
		}
	}
}
