// Package atomicfile writes files atomically: to a temporary file next to the target, which is flushed to the disk and
// then renamed to the target. All packages of the module that write files, such as runs, sweeps, figures and arrays,
// use it.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"tessera/internal/regular"
)

var _ Disk = (*OS)(nil)

// File is one file to be written.
type File struct {
	Path      string
	Temporary string // path in the same folder; the contents are written to it before it is renamed
	Write     func(io.Writer) error
}

// Replace writes all temporary files and then renames them in the given order. A reader sees either the old or the new
// contents of a file. If a temporary file cannot be written, all old files remain. The files together are not replaced
// atomically: if a rename fails, or the process dies between two renames, the earlier files are new and the later ones
// are old. On failure Replace removes the temporary files and returns the path that could not be written: the path of a
// file or of its folder.
func Replace(disk Disk, files ...File) (path string, err error) {
	if path, err := writeTemporaries(disk, files); err != nil {
		return path, err
	}
	for i, file := range files {
		if err := disk.Rename(file.Temporary, file.Path); err != nil {
			for _, left := range files[i:] {
				_ = disk.Remove(left.Temporary)
			}
			return file.Path, err
		}
	}
	synced := ""
	for _, file := range files {
		folder := filepath.Dir(file.Path)
		if folder == synced {
			continue
		}
		if err := disk.Sync(folder); err != nil {
			return folder, err
		}
		synced = folder
	}
	return "", nil
}

// writeTemporaries writes all temporary files, or none if one of them fails.
func writeTemporaries(disk Disk, files []File) (path string, err error) {
	begun, whole := 0, false
	defer func() { // deferred, so that it also runs after a panic
		for _, written := range files[:begun] {
			if !whole {
				_ = disk.Remove(written.Temporary) // frees the space; the first error is returned
			}
		}
	}()
	for _, file := range files {
		begun++
		if err := disk.WriteFile(file.Temporary, file.Write); err != nil {
			return file.Path, err
		}
	}
	whole = true
	return "", nil
}

// Write replaces the file at path with the output of write. A reader sees either the old or the new file. On failure the
// old file remains and no temporary file is left. If several processes write the file, the last one wins.
//
// A symbolic link is followed, and its target is replaced. A pipe and a character device are written through: they are
// never replaced, and after an error a part of the output may have been written. For a block device and a socket Write
// returns an [*fs.PathError] with [regular.ErrNot].
//
// Write also removes the temporary files for the same path that killed processes have left.
func Write(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		if info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
			return &fs.PathError{Op: "write", Path: path, Err: regular.ErrNot}
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f, write), f.Close())
	}
	return replace(path, func(temporary string) (*os.File, error) {
		return os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}, func(f *os.File) error { return errors.Join(fill(f, write), f.Sync()) })
}

// WriteFolder creates the folder at path with the files that write creates in it. The folder exists completely or not at all.
// At path there must be nothing or an empty folder. Symbolic links and leftovers are handled as in [Write].
func WriteFolder(path string, write func(folder string) error) error {
	return replace(filepath.Clean(path), func(temporary string) (*os.File, error) {
		if err := os.Mkdir(temporary, 0o777); err != nil {
			return nil, err
		}
		return os.Open(temporary)
	}, func(f *os.File) error {
		if err := write(f.Name()); err != nil {
			return err
		}
		return OS{}.Sync(f.Name())
	})
}

// replace creates a temporary file or folder next to path, calls write for it and renames it to path. The temporary file is locked
// until it has its final name, so that [Tidy] does not remove it.
func replace(path string, create func(temporary string) (*os.File, error), write func(*os.File) error) error {
	path = target(path)
	folder, name := filepath.Split(path)
	f, err := locked(func() (*os.File, error) {
		return create(folder + prefix(name) + strings.ToLower(rand.Text()[:random]) + extension)
	})
	if err != nil {
		return err
	}
	placed := false
	defer func() { // deferred, so that it also runs after a panic
		_ = f.Close()
		if !placed {
			_ = os.RemoveAll(f.Name()) // frees the space; the first error is returned
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // where an open file cannot be renamed
		_ = f.Close()
	}
	if isFolder(f.Name()) && isFolder(path) { // os.Rename replaces no folder
		if err := os.Remove(path); err != nil { // it is not empty any more
			return err
		}
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	placed = true
	Tidy(filepath.Dir(path), name)
	return OS{}.Sync(filepath.Dir(path))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// target returns the path to which symbolic links lead; the file there need not exist.
func target(path string) string {
	for range mostLinks {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			return resolved
		}
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// mostLinks bounds the number of links that are followed.
const mostLinks = 40

// locked returns a new file, or folder, which it locks. [Tidy] of another process may remove the file before it is locked;
// then locked creates another one.
func locked(create func() (*os.File, error)) (*os.File, error) {
	for {
		f, err := create()
		if err != nil {
			return nil, err
		}
		hold(f)
		is, err := f.Stat()
		if at, found := os.Lstat(f.Name()); err == nil && found == nil && os.SameFile(is, at) {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// The name of a temporary file begins with a dot and the name of the file, and ends with random letters and digits, random
// of them, and an extension. It repeats at most longestName bytes of the name, because file systems limit names to 255 bytes.
const (
	longestName = 200
	random      = 10
	extension   = ".tmp"
)

func prefix(name string) string { return "." + name[:min(len(name), longestName)] + "." }

// Tidy removes temporary files and folders that killed processes left in a folder. They are those of [Write] and
// [WriteFolder] for the given names.
func Tidy(folder string, names ...string) {
	entries, _ := os.ReadDir(folder) // if the folder does not exist, there is nothing to remove
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if !IsTemporary(e.Name(), names...) || !e.Type().IsRegular() && !e.IsDir() {
			continue
		}
		if f := Abandoned(path); f != nil {
			_ = os.RemoveAll(path) // a file that cannot be removed does no harm
			_ = f.Close()
		}
	}
}

// Abandoned opens and locks a file or folder that no process has locked. It returns nil if a process has, or may have. The
// lock ends when the file is closed.
func Abandoned(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	if !abandoned(f) {
		_ = f.Close()
		return nil
	}
	return f
}

// IsTemporary reports whether name is the name of a temporary file of [Write] for one of the given file names.
func IsTemporary(name string, of ...string) bool {
	for _, whole := range of {
		middle, ok := strings.CutPrefix(name, prefix(whole))
		middle, ends := strings.CutSuffix(middle, extension)
		if ok && ends && len(middle) == random && strings.Trim(middle, alphabet) == "" {
			return true
		}
	}
	return false
}

// alphabet contains the characters of [rand.Text] in lower case.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// Disk is the part of a file system that this package uses. Tests replace it by a disk that is full, fails or stops.
type Disk interface {
	// WriteFile creates or replaces a file with the output of write. It returns when the contents are on the disk.
	WriteFile(path string, write func(io.Writer) error) error
	// Sync returns when the contents of a file, or the entries of a folder, are on the disk.
	Sync(path string) error
	// Rename renames old to new. It replaces a file, but not a folder, with the new name.
	Rename(old, new string) error
	Remove(path string) error
}

// OS is the operating system's disk.
type OS struct{}

// WriteFile implements [Disk]. A link, a pipe or a device at path is removed: nothing is written to its target.
func (OS) WriteFile(path string, write func(io.Writer) error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(fill(f, write), f.Sync(), f.Close())
}

// fill writes the output of write to an open file.
func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// Sync implements [Disk]. Windows cannot flush a file that is open for reading, and some network file systems cannot flush a folder;
// these errors are ignored.
func (OS) Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && runtime.GOOS != "windows" && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

func (OS) Rename(old, new string) error { return os.Rename(old, new) }
func (OS) Remove(path string) error     { return os.Remove(path) }
