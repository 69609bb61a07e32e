// Package atomicfile writes files that are either the old ones or the new ones, never halves: beside the target,
// flushed to the disk, then renamed over it. It is the only writer of the module: runs, sweeps, figures and arrays use it.
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
	Path   string
	Beside string // where it is written before it is renamed, in the same folder
	Write  func(io.Writer) error
}

// Replace puts the files in place, in that order, each whole: at any moment a reader sees an old one or the new one. When one
// cannot be written, all old ones stay and nothing is left beside them. With an error comes the path that could not be
// written: that of a file, or of its folder.
func Replace(disk Disk, files ...File) (path string, err error) {
	if path, err := writeBeside(disk, files); err != nil {
		return path, err
	}
	for i, file := range files {
		if err := disk.Rename(file.Beside, file.Path); err != nil {
			for _, left := range files[i:] {
				_ = disk.Remove(left.Beside)
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

// writeBeside writes the new files beside the old ones, all or none.
func writeBeside(disk Disk, files []File) (path string, err error) {
	begun, whole := 0, false
	defer func() { // also after a panic
		for _, written := range files[:begun] {
			if !whole {
				_ = disk.Remove(written.Beside) // gives the space back; the error stays the first
			}
		}
	}()
	for _, file := range files {
		begun++
		if err := disk.WriteFile(file.Beside, file.Write); err != nil {
			return file.Path, err
		}
	}
	whole = true
	return "", nil
}

// longestName is how much of a file's name the one beside it repeats: file systems limit names to 255 bytes.
const longestName = 200

// Write makes path hold what write writes; a link keeps pointing where it does. When anything fails, path is as it was and
// nothing is left beside it. Several processes may write the same file: the last one wins.
func Write(path string, write func(io.Writer) error) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	folder, name := filepath.Split(path)
	beside := folder + "." + name[:min(len(name), longestName)] + "." + strings.ToLower(rand.Text()[:random]) + half
	_, err := Replace(OS{}, File{Path: path, Beside: beside, Write: write})
	return err
}

// The end of the name beside a file: this many random letters and digits, and an extension.
const (
	random = 10
	half   = ".tmp"
)

// stale is the age after which a half-written file is that of a killed process.
const stale = time.Minute

// Tidy removes what processes that were killed within [Write] left in a folder beside the files of these names.
func Tidy(disk Disk, folder string, names ...string) {
	entries, _ := os.ReadDir(folder) // without a folder there is nothing to tidy
	for _, e := range entries {
		if !IsHalf(e.Name(), names...) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > stale {
			_ = disk.Remove(filepath.Join(folder, e.Name())) // what stays does no harm
		}
	}
}

// IsHalf reports whether [Write] of one of these files gives a file this name until it is whole.
func IsHalf(name string, of ...string) bool {
	for _, whole := range of {
		middle, ok := strings.CutPrefix(name, "."+whole[:min(len(whole), longestName)]+".")
		if ok && strings.HasSuffix(middle, half) && len(middle) == random+len(half) {
			return true
		}
	}
	return false
}

// Disk is what whole files need of a file system. Tests put one in its place that fills up, fails or dies.
type Disk interface {
	// WriteFile makes or replaces a file, which holds what write writes, and returns when its contents are on the disk.
	WriteFile(path string, write func(io.Writer) error) error
	// Sync returns when what was written to a file, or the entries of a folder, are on the disk.
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

// Sync implements [Disk]. Windows cannot flush what is open for reading, nor some network file systems a folder.
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
