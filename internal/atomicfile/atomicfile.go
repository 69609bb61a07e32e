// Package atomicfile writes files that are either the old ones or the new ones, never halves: beside the target,
// flushed to the disk, then renamed over it.
package atomicfile

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
)

// Write makes path hold what write writes. When anything fails, path is as it was and nothing is left beside it.
func Write(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // CreateTemp gives 0600, which other users could not read
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
