// Package folder manages the files of one run. After a crash at any moment every file is complete.
//
// A run's folder is created under a temporary name and then renamed: it exists completely or not at all. Its files are
// written under temporary names and renamed; only metrics.jsonl grows line by line. Only one process at a time can write to a
// run: it takes a kernel lock, which ends with the process.
package folder

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tessera/internal/atomicfile"
	"tessera/internal/regular"
	"tessera/internal/sealed"
)

var _ Disk = (*OS)(nil)

// The files of a run.
const (
	Config      = "config.toml"       // the model with every default written out
	Environment = "env.json"          // versions, CPU, BLAS, threads, data checksums, command line
	Metrics     = "metrics.jsonl"     // one object per epoch
	State       = "state.safetensors" // everything that an exact resume needs
	Model       = "model.safetensors" // the parameters, derived from the state
	Best        = "best.safetensors"  // the parameters of the best epoch, with early stopping
	Picture     = "atoms.png"         // picture of the atoms, drawn by the command
	PostHoc     = "posthoc.json"      // calibrations, which are fitted after the training
	Restarts    = "restarts.json"     // trainings from other seeds, of which this is the best
	measured    = "eval.json"         // metrics of a trial in a sweep
	tested      = "test.json"         // metrics of a selected trial on the test images
	Unfinished  = ".new"              // suffix of files that are being written
	temporary   = Unfinished + "-"    // infix of the names of folders that are being created
)

var (
	// ErrExists reports that the path of a new run already exists.
	ErrExists = errors.New("exists already")
	// ErrNotFolder reports that the path of a new run is an existing file. It wraps [ErrExists].
	ErrNotFolder = fmt.Errorf("%w, as a file", ErrExists)
	// ErrLocked reports a run that another process is using.
	ErrLocked = errors.New("another process is working on it")
	// ErrForeign reports a run that cannot be replaced because its folder contains files that do not belong to a run.
	ErrForeign = errors.New("contains files that tessera did not write")
	// ErrWorkingFolder reports a new run that would replace the current directory or one of its parents.
	ErrWorkingFolder = errors.New("is the current directory or contains it")
	// ErrMoved reports that another folder has taken the place of an open one.
	ErrMoved = errors.New("another folder is in its place since this process began; nothing was written into that one")
	// ErrNotRun reports a folder that is not a run.
	ErrNotRun = errors.New("is not a run: it contains no " + Config)
)

// NotRun returns the [ErrNotRun] of a path without a config.toml: a missing folder and a file are named as such.
func NotRun(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return notRun{"got no path, want the folder of a run"}
	case errors.Is(err, fs.ErrNotExist):
		return notRun{path + ": no such folder"}
	case err == nil && !info.IsDir():
		return notRun{path + ": is a file, not the folder of a run"}
	}
	return fmt.Errorf("%s: %w", path, ErrNotRun)
}

type notRun struct{ text string }

func (e notRun) Error() string { return e.text }
func (notRun) Unwrap() error   { return ErrNotRun }

// WriteError reports a file that could not be written, for example because the disk is full.
type WriteError struct {
	Path string
	Err  error
}

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
	Name    string
	Data    []byte
	Content io.WriterTo // writes the contents in place of Data; nil if Data contains them
}

func (f File) write(w io.Writer) (err error) {
	if f.Content != nil {
		_, err = f.Content.WriteTo(w)
	} else {
		_, err = w.Write(f.Data)
	}
	return err
}

// Folder is a run's folder, locked by this process until Close.
type Folder struct {
	path string
	disk Disk
	lock *os.File
}

// own lists the files of a run.
var own = []string{Config, Environment, Metrics, State, Model, Best, Picture, PostHoc, Restarts, measured, tested}

// Owned returns the folder of the run to which the file at a path belongs, also through symbolic links; "" for other files. The file
// need not exist.
func Owned(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	dir, name := filepath.Split(path)
	if _, err := os.Stat(filepath.Join(dir, Config)); err != nil || !slices.Contains(own, strings.TrimSuffix(name, Unfinished)) {
		return ""
	}
	return filepath.Clean(dir)
}

// Open opens and locks an existing run. It returns [ErrNotRun] if there is none, [ErrLocked] if another process uses it, and
// [regular.ErrLink] if one of its files is a symbolic link.
func Open(path string, disk Disk) (*Folder, error) {
	for _, name := range own {
		if err := regular.CheckUnlinked(filepath.Join(path, name)); errors.Is(err, regular.ErrLink) {
			return nil, fmt.Errorf("run: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(path, Config)); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil, NotRun(path)
		}
		return nil, fmt.Errorf("run: %w", err)
	}
	held, err := lock(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Folder{path: path, disk: disk, lock: held}, nil
}

// Hold opens and locks a folder that is not a run, such as the folder of a sweep. It creates the folder if necessary. Its
// files are written like the files of a run. Hold returns [ErrLocked] if another process uses the folder.
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

// moved returns [ErrMoved] if the path of the run refers to another folder than the locked one.
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

// Write replaces the files in the given order. Each replacement is atomic: a reader sees either the old or the new file. The
// set is not atomic: if a rename fails, earlier files are new and later files are old. If a file cannot be written because
// the disk is full, all old files remain.
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
	if err := regular.CheckUnlinked(f.Join(Metrics)); err != nil {
		return fmt.Errorf("run: %w", err)
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

// CutMetrics truncates the metrics to their first lines, without an incomplete last line. It does not change a file with
// fewer lines.
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

// MetricsProblem returns a description of damage in the first lines of the metrics, "" if there is none.
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

// Holds reports whether the run contains this file with the same bytes.
func (f *Folder) Holds(file File) bool {
	b, err := f.read(file.Name)
	rest := expected(b)
	return err == nil && file.write(&rest) == nil && len(rest) == 0
}

// expected contains the bytes that a writer has not received yet. A Write with other bytes is an error.
type expected []byte

var errOther = errors.New("other bytes")

func (e *expected) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(*e, b) {
		return 0, errOther
	}
	*e = (*e)[len(b):]
	return len(b), nil
}

// read reads one of the run's files.
func (f *Folder) read(name string) ([]byte, error) {
	return regular.ReadUnlinked(f.Join(name))
}

// Create atomically creates and locks the folder of a new run with these files. The path must not exist or must be an empty
// folder, else Create returns [ErrExists]. With force, Create replaces an existing run in one step, when the new one is
// complete. After an error the path is as it was before. Even with force, Create does not replace a folder that is not a run
// ([ErrNotRun]), a run whose folder contains other files ([ErrForeign], which names the files), or a run that another process
// uses ([ErrLocked]). It never replaces the current directory or one of its parents, even if empty ([ErrWorkingFolder]): the
// process would be left in a deleted directory.
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

// holdsWorkingFolder reports whether an absolute path without symbolic links is the current directory or one of its parents.
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

// CreateNext creates the run like [Create], at the first unused path among path, path-2, path-3, ...
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
	sweep(parent, inMaking(name), disk)
	dir, held, err := makeTemporary(filepath.Join(parent, inMaking(name)), disk)
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

// makeTemporary creates and locks a folder whose name begins with prefix. [sweep] of another process may remove the folder before it is
// locked; then makeTemporary creates another one.
func makeTemporary(prefix string, disk Disk) (dir string, held *os.File, err error) {
	for {
		dir = prefix + strings.ToLower(rand.Text()[:8])
		if err := disk.Mkdir(dir); err != nil {
			return "", nil, err
		}
		held, err = lock(dir)
		if err == nil {
			if is, gone := os.Stat(dir); gone == nil && (held == nil || sameFolder(is, held)) {
				return dir, held, nil
			}
		}
		if err == nil {
			_ = unlock(held)
		} else if !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
	}
}

// sameFolder reports whether an open folder is the one with this information.
func sameFolder(is fs.FileInfo, held *os.File) bool {
	was, err := held.Stat()
	return err == nil && os.SameFile(is, was)
}

// install renames the new folder to its path. If this fails, the path is as it was before, with any old run.
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

// vacant returns an error if a new run cannot be created at a path, and reports whether an old run exists there.
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

// foreign returns the names in a run's folder that do not belong to a run; names of folders end in a slash.
func foreign(entries []fs.DirEntry) []string {
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

// Tidy removes temporary folders in parent that killed processes have left.
func Tidy(parent string, disk Disk) { sweep(parent, "", disk) }

// longestName is the maximum number of bytes of a run's name in the name of its temporary folder: file systems limit names to
// 255 bytes.
const longestName = 200

// inMaking returns the prefix of the temporary name that a run's folder has until it is complete.
func inMaking(name string) string { return "." + name[:min(len(name), longestName)] + temporary }

// sweep removes the temporary folders of runs that killed processes have left, if their names begin with prefix.
func sweep(parent, prefix string, disk Disk) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || !strings.HasPrefix(name, ".") || !strings.HasPrefix(name, prefix) || !strings.Contains(name, temporary) {
			continue
		}
		dir := filepath.Join(parent, name)
		if held := atomicfile.Abandoned(dir); held != nil {
			_ = disk.RemoveAll(dir) // a folder that remains does no harm
			_ = held.Close()
		}
	}
}

// Disk gives a run's folder access to the file system. Tests replace it by a disk that fills up, fails or stops working.
type Disk interface {
	atomicfile.Disk
	Mkdir(path string) error
	// Append appends to a file and creates it if necessary. It does not follow a symbolic link.
	Append(path string, data []byte) error
	// Exchange swaps two folders atomically. It returns errors.ErrUnsupported if the system has no such operation.
	Exchange(a, b string) error
	RemoveAll(path string) error
}

// OS is the [Disk] of the operating system.
type OS struct{ atomicfile.OS }

func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o777) }

func (OS) Append(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|noFollow, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (OS) Exchange(a, b string) error  { return exchange(a, b) }
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }

// Replaceable reports whether [Create] with force could create a new run at path, provided that no other process uses the
// folder there.
func Replaceable(path string) bool {
	_, err := vacant(path, true)
	return err == nil
}

// searchDepth bounds [Search]: DIR/SWEEP/trials/ID has depth 3.
const searchDepth = 4

// Search calls leaf for a folder and for its sub-folders, sorted by name, with numbers in numerical order. It does not
// descend into folders for which leaf returns true, hidden folders, and folders that are being created.
func Search(dir string, leaf func(path string) bool) { search(dir, searchDepth, leaf) }

func search(dir string, depth int, leaf func(path string) bool) {
	if leaf(dir) || depth == 0 {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return byNumber(a.Name(), b.Name()) })
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.Contains(e.Name(), Unfinished) {
			search(filepath.Join(dir, e.Name()), depth-1, leaf)
		}
	}
}

// byNumber compares names with numbers in numerical order: small, small-2, small-10.
func byNumber(a, b string) int {
	nameA, a1 := Numbered(a)
	nameB, b1 := Numbered(b)
	return cmp.Or(strings.Compare(nameA, nameB), cmp.Compare(a1, b1), strings.Compare(a, b))
}

// Numbered splits the name of a model's second or later run, such as small-2, into name and number; for other names the
// number is 0.
func Numbered(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i], n
		}
	}
	return name, 0
}
