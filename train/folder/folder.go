// Package folder manages the files of one run. After a crash at any moment every file is complete.
//
// A run's folder is created under a temporary name and then renamed: it exists completely or not at all. Files in it are
// written under temporary names and renamed; only metrics.jsonl grows line by line. Only one process at a time holds a run:
// the kernel's lock ends with the process.
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
	"tessera/internal/regular"
	"tessera/internal/sealed"
)

// The files of a run.
const (
	Config      = "config.toml"       // the model with every default written out
	Environment = "env.json"          // versions, CPU, BLAS, threads, data checksums, command line
	Metrics     = "metrics.jsonl"     // one object per epoch
	State       = "state.safetensors" // everything for an exact resume
	Model       = "model.safetensors" // the parameters, derived from the state
	Best        = "best.safetensors"  // the parameters of the best epoch, with early stopping
	Picture     = "atoms.png"         // the atoms, drawn by the command
	measured    = "eval.json"         // metrics of a sweep's trial
	tested      = "test.json"         // those on the test images of a selected trial
	Unfinished  = ".new"              // suffix of a file that is being written
	temporary   = Unfinished + "-"    // infix of the name of a folder that is being created
)

var (
	// ErrExists is the error of a new run whose path already exists.
	ErrExists = errors.New("exists already")
	// ErrNotFolder is the [ErrExists] of a path that is a file.
	ErrNotFolder = fmt.Errorf("%w, as a file", ErrExists)
	// ErrLocked is the error of a run that another process works on.
	ErrLocked = errors.New("another process is working on it")
	// ErrForeign is the error of replacing a run whose folder contains files that no run writes.
	ErrForeign = errors.New("contains files that tessera did not write")
	// ErrWorkingFolder is the error of a new run that would replace the current directory or one of its parents.
	ErrWorkingFolder = errors.New("is the current directory or contains it")
	// ErrMoved says that another folder has taken the place of the one that this process holds.
	ErrMoved = errors.New("another folder is in its place since this process began; nothing was written into that one")
	// ErrNotRun is the error of a folder that is not a run.
	ErrNotRun = errors.New("is not a run: it contains no " + Config)
)

// WriteError is the error of a file that could not be written, for example because the disk is full.
type WriteError struct {
	Path string
	Err  error
}

// Error implements error: `cannot write PATH: CAUSE`.
func (e *WriteError) Error() string { return "cannot write " + e.Path + ": " + cause(e.Err).Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// cause removes the operation and the path that package os adds to an error.
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

// Open opens and locks an existing run. It fails with [ErrNotRun] if there is none and with [ErrLocked] if another process
// holds it.
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

// Hold opens and locks a folder that is not a run: the folder of a sweep. It creates the folder if necessary. Its files are
// written like the files of a run. Hold fails with [ErrLocked] if another process holds the folder.
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

// Path returns the path of the run.
func (f *Folder) Path() string { return f.path }

// Join returns the path of one of the run's files.
func (f *Folder) Join(name string) string { return filepath.Join(f.path, name) }

// Close unlocks the run.
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

// Write replaces the files in that order. Each replacement is atomic: a reader sees either the old or the new file. The set
// is not: if a rename fails, the files before it are new and those after it are old. If a file cannot be written (a full
// disk), all old files remain.
func (f *Folder) Write(files ...File) error {
	if err := f.moved(); err != nil {
		return err
	}
	all := make([]atomicfile.File, len(files))
	for i, file := range files {
		path := f.Join(file.Name)
		all[i] = atomicfile.File{Path: path, Temporary: path + Unfinished, Write: file.write}
	}
	if path, err := atomicfile.Replace(f.disk, all...); err != nil {
		return &WriteError{Path: path, Err: err}
	}
	return nil
}

// Remove removes one of the run's files, if it exists.
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

// SyncMetrics waits until the appended lines are on the disk.
func (f *Folder) SyncMetrics() error {
	if err := f.disk.Sync(f.Join(Metrics)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &WriteError{Path: f.Join(Metrics), Err: err}
	}
	return nil
}

// CutMetrics truncates the metrics after the first lines and also removes an incomplete line. It does not touch a file
// without such lines.
func (f *Folder) CutMetrics(lines int) error {
	old, err := f.read(Metrics)
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
	text, err := f.read(Metrics)
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

// Holds reports whether the run contains this file, byte for byte.
func (f *Folder) Holds(file File) bool {
	b, err := f.read(file.Name)
	return err == nil && bytes.Equal(b, file.Data)
}

// read reads one of the run's files.
func (f *Folder) read(name string) ([]byte, error) {
	return regular.ReadFile(f.Join(name))
}
