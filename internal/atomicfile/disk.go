package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

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
