// Package atomicfile writes files atomically: to a temporary file next to the target, which is flushed to the disk and then renamed
// over the target. It is the only writer of the module: runs, sweeps, figures and arrays use it.
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
	Temporary string // in the same folder, to which it is written before it is renamed
	Write     func(io.Writer) error
}

// Replace writes all temporary files and then renames them, in the given order. A reader sees every file either old or new, never half.
// If a temporary file cannot be written, all old files remain. The files together are not atomic: if a rename fails, or the process
// dies between two, those before are new and those after are old. On failure Replace removes the temporary files and also returns
// the path that could not be written: that of a file, or of its folder.
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

// writeTemporaries writes all temporary files or none.
func writeTemporaries(disk Disk, files []File) (path string, err error) {
	begun, whole := 0, false
	defer func() { // also after a panic
		for _, written := range files[:begun] {
			if !whole {
				_ = disk.Remove(written.Temporary) // gives the space back; the error stays the first
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

// longestName is the number of bytes of a file's name that its temporary file repeats: file systems limit names to 255 bytes.
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

// The end of the name of a temporary file: this many random letters and digits, and an extension.
const (
	random    = 10
	extension = ".tmp"
)

// stale is the age after which a temporary file is that of a killed process.
const stale = time.Minute

// Tidy removes the temporary files of [Write] for files of these names that killed processes left in a folder.
func Tidy(disk Disk, folder string, names ...string) {
	entries, _ := os.ReadDir(folder) // without a folder there is nothing to tidy
	for _, e := range entries {
		if !IsTemporary(e.Name(), names...) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > stale {
			_ = disk.Remove(filepath.Join(folder, e.Name())) // a file that remains does no harm
		}
	}
}

// IsTemporary reports whether name is that of a temporary file of [Write] for one of these files.
func IsTemporary(name string, of ...string) bool {
	for _, whole := range of {
		middle, ok := strings.CutPrefix(name, "."+whole[:min(len(whole), longestName)]+".")
		if ok && strings.HasSuffix(middle, extension) && len(middle) == random+len(extension) {
			return true
		}
	}
	return false
}

// Disk is the part of a file system that this package uses. Tests replace it by one that fills up, fails or dies.
type Disk interface {
	// WriteFile creates or replaces a file with what write writes, and returns when its contents are on the disk.
	WriteFile(path string, write func(io.Writer) error) error
	// Sync returns when the contents of a file, or the entries of a folder, are on the disk.
	Sync(path string) error
	// Rename replaces a file, not a folder, of the new name.
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
