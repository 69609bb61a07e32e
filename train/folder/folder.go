// Package folder keeps the files of one run so that a crash at any moment leaves whole ones.
//
// A run's folder is made complete under another name beside its place and then renamed: it exists whole or not at all.
// Files in it are written beside and renamed; only metrics.jsonl grows, line by line. One process at a time holds a
// run: the lock is the kernel's, so that a killed process leaves none behind.
package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tessera/internal/atomicfile"
	"tessera/internal/sealed"
)

// The files of a run.
const (
	Config      = "config.toml"       // the model with every default written out
	Environment = "env.json"          // versions, CPU, BLAS, threads, data checksums, command line
	Metrics     = "metrics.jsonl"     // one object per epoch
	State       = "state.safetensors" // all that an exact resume needs
	Model       = "model.safetensors" // the parameters, derived from the state
	Best        = "best.safetensors"  // those of the best epoch, where early stopping looks for it
	Picture     = "atoms.png"         // the atoms, drawn by the command
	measured    = "eval.json"         // of a sweep's trial: its metrics
	Unfinished  = ".new"              // the ending of a file that is being written
	temporary   = Unfinished + "-"    // what follows the name of a folder that is being made
)

var (
	// ErrExists says that a new run's place is taken.
	ErrExists = errors.New("exists already")
	// ErrNotFolder is the [ErrExists] of a place that no run can be in.
	ErrNotFolder = fmt.Errorf("%w, as a file", ErrExists)
	// ErrLocked says that another process works on the run.
	ErrLocked = errors.New("another process is working on it")
	// ErrForeign says that a run's folder holds what no run writes, so that it cannot be replaced.
	ErrForeign = errors.New("contains files that tessera did not write")
	// ErrWorkingFolder says that a new run would take the place of the folder that the process works in, or of one above it.
	ErrWorkingFolder = errors.New("is the current directory or contains it")
	// ErrMoved says that another folder has taken the place of the one that this process holds.
	ErrMoved = errors.New("another folder is in its place since this process began; nothing was written into that one")
	// ErrNotRun says that a folder is not a run.
	ErrNotRun = errors.New("is not a run: it contains no " + Config)
)

// WriteError says what could not be written: a full disk, a missing permission.
type WriteError struct {
	Path string
	Err  error
}

// Error implements error: `cannot write PATH: CAUSE`.
func (e *WriteError) Error() string { return "cannot write " + e.Path + ": " + cause(e.Err).Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// cause strips the operation and the path that the os package puts before an error.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// File is one file to be written.
type File struct {
	Name string
	Data []byte
}

func (f File) write(w io.Writer) error {
	_, err := w.Write(f.Data)
	return err
}

// Folder is a run's folder, held by this process until Close.
type Folder struct {
	path string
	disk Disk
	lock *os.File
}

// Open takes hold of an existing run. It fails with [ErrNotRun] where there is none and with [ErrLocked] where another
// process holds it.
func Open(path string, disk Disk) (*Folder, error) {
	if _, err := os.Stat(filepath.Join(path, Config)); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("%s: %w", path, ErrNotRun)
		}
		return nil, fmt.Errorf("run: %w", err)
	}
	held, err := lock(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Folder{path: path, disk: disk, lock: held}, nil
}

// Hold takes hold of a folder that is not a run, which it makes where there is none: the folder of a sweep, in which one
// process works and whose files are written as those of a run are. It fails with [ErrLocked] where another process holds
// it.
func Hold(path string, disk Disk) (*Folder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, &WriteError{Path: path, Err: err}
	}
	held, err := lock(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Folder{path: path, disk: disk, lock: held}, nil
}

// Path returns where the run is.
func (f *Folder) Path() string { return f.path }

// Join returns the path of one of the run's files.
func (f *Folder) Join(name string) string { return filepath.Join(f.path, name) }

// Close lets go of the run.
func (f *Folder) Close() error { return unlock(f.lock) }

// moved returns [ErrMoved] if the path of the run names another folder than the locked one.
func (f *Folder) moved() error {
	if f.lock == nil {
		return nil
	}
	held, err := f.lock.Stat()
	if err != nil {
		return &WriteError{Path: f.path, Err: err}
	}
	if is, err := os.Stat(f.path); err == nil && !os.SameFile(is, held) { // that it is gone is said by the write
		return &WriteError{Path: f.path, Err: ErrMoved}
	}
	return nil
}

// Write puts the files in place, in that order, each whole: at any moment a reader sees an old one or the new one. When
// one cannot be written, all old ones stay.
func (f *Folder) Write(files ...File) error {
	if err := f.moved(); err != nil {
		return err
	}
	all := make([]atomicfile.File, len(files))
	for i, file := range files {
		path := f.Join(file.Name)
		all[i] = atomicfile.File{Path: path, Beside: path + Unfinished, Write: file.write}
	}
	if path, err := atomicfile.Replace(f.disk, all...); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	return nil
}

// Remove removes one of the run's files, where it has it.
func (f *Folder) Remove(name string) error {
	if _, err := os.Stat(f.Join(name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := f.moved(); err != nil {
		return err
	}
	if err := f.disk.Remove(f.Join(name)); err != nil {
		return &WriteError{Path: f.Join(name), Err: err}
	}
	return nil
}

// Append adds one line to the run's metrics.
func (f *Folder) Append(line []byte) error {
	if err := f.moved(); err != nil {
		return err
	}
	if err := f.disk.Append(f.Join(Metrics), append(line, '\n')); err != nil {
		return &WriteError{Path: f.Join(Metrics), Err: err}
	}
	return nil
}

// SyncMetrics returns when the appended lines are on the disk.
func (f *Folder) SyncMetrics() error {
	if err := f.disk.Sync(f.Join(Metrics)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &WriteError{Path: f.Join(Metrics), Err: err}
	}
	return nil
}

// CutMetrics removes what follows the first lines of the metrics, a line that was cut off in the middle included. It
// leaves a file alone that has nothing to remove.
func (f *Folder) CutMetrics(lines int) error {
	old, err := os.ReadFile(f.Join(Metrics))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	end := 0
	for range lines {
		next := bytes.IndexByte(old[end:], '\n')
		if next < 0 {
			break
		}
		end += next + 1
	}
	if end == len(old) {
		return nil
	}
	return f.Write(File{Name: Metrics, Data: old[:end]})
}

// MetricsProblem says what is wrong with the first lines of the metrics, "" where nothing is.
func (f *Folder) MetricsProblem(lines int) string {
	text, err := os.ReadFile(f.Join(Metrics))
	if errors.Is(err, fs.ErrNotExist) && lines > 0 {
		return "is missing"
	}
	found := 0
	for line := range bytes.Lines(text) {
		if found++; sealed.CheckLine(bytes.TrimSuffix(line, []byte("\n"))) != nil {
			return fmt.Sprintf("line %d is damaged", found)
		}
	}
	if found < lines {
		return fmt.Sprintf("has %d lines, want %d", found, lines)
	}
	return ""
}

// Holds reports whether the run holds this file, byte for byte.
func (f *Folder) Holds(file File) bool {
	b, err := os.ReadFile(f.Join(file.Name))
	return err == nil && bytes.Equal(b, file.Data)
}
