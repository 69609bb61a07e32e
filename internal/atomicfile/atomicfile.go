// Package atomicfile writes files atomically: to a temporary file next to the target, which is flushed to the disk and
// then renamed to the target. All packages of the module that write files, such as runs, sweeps, figures and arrays,
// use it.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

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

// longestName is the maximum number of bytes of a file's name that the name of its temporary file repeats. File systems
// limit names to 255 bytes.
const longestName = 200

// Write atomically replaces the file at path with the output of write. If path is a symbolic link, its target is replaced. On failure the
// old file remains and no temporary file is left. If several processes write the file, the last one wins.
func Write(path string, write func(io.Writer) error) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	folder, name := filepath.Split(path)
	temporary := folder + "." + name[:min(len(name), longestName)] + "." + strings.ToLower(rand.Text()[:random]) + extension
	_, err := Replace(OS{}, File{Path: path, Temporary: temporary, Write: write})
	return err
}

// The name of a temporary file ends with random letters and digits, random of them, and an extension.
const (
	random    = 10
	extension = ".tmp"
)

// stale is the age from which a temporary file is assumed to belong to a killed process.
const stale = time.Minute

// Tidy removes temporary files that killed processes left in a folder. They are the temporary files of [Write] for
// files with the given names.
func Tidy(disk Disk, folder string, names ...string) {
	entries, _ := os.ReadDir(folder) // if the folder does not exist, there is nothing to remove
	for _, e := range entries {
		if !IsTemporary(e.Name(), names...) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > stale {
			_ = disk.Remove(filepath.Join(folder, e.Name())) // a file that cannot be removed does no harm
		}
	}
}

// IsTemporary reports whether name is the name of a temporary file of [Write] for one of the given file names.
func IsTemporary(name string, of ...string) bool {
	for _, whole := range of {
		middle, ok := strings.CutPrefix(name, "."+whole[:min(len(whole), longestName)]+".")
		if ok && strings.HasSuffix(middle, extension) && len(middle) == random+len(extension) {
			return true
		}
	}
	return false
}

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

// WriteFile implements [Disk].
func (OS) WriteFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(w.Flush(), f.Sync(), f.Close())
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

// Rename implements [Disk].
func (OS) Rename(old, new string) error { return os.Rename(old, new) }

// Remove implements [Disk].
func (OS) Remove(path string) error { return os.Remove(path) }
