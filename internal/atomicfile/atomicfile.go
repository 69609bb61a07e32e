// Package atomicfile writes files that are either the old ones or the new ones, never halves: beside the target,
// flushed to the disk, then renamed over it. It is the only writer of the module: runs, sweeps, figures and arrays use it.
package atomicfile

import (
	"crypto/rand"
	"io"
	"path/filepath"
	"strings"
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
	for i, file := range files {
		if err := disk.WriteFile(file.Beside, file.Write); err != nil {
			for _, written := range files[:i+1] {
				_ = disk.Remove(written.Beside) // gives the space back; the error stays the first
			}
			return file.Path, err
		}
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

// longestName is how much of a file's name the one beside it repeats: file systems limit names to 255 bytes.
const longestName = 200

// Write makes path hold what write writes; a link keeps pointing where it does. When anything fails, path is as it was and
// nothing is left beside it. Several processes may write the same file: the last one wins.
func Write(path string, write func(io.Writer) error) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	folder, name := filepath.Split(path)
	beside := folder + "." + name[:min(len(name), longestName)] + "." + strings.ToLower(rand.Text()[:10]) + ".tmp"
	_, err := Replace(OS{}, File{Path: path, Beside: beside, Write: write})
	return err
}
