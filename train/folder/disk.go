package folder

import (
	"errors"
	"os"
	"runtime"
)

// Disk is what a run's folder asks of a file system. Tests put one in its place that fills up, fails or dies.
type Disk interface {
	Mkdir(path string) error
	// WriteFile makes or replaces a file and returns when its contents are on the disk.
	WriteFile(path string, data []byte) error
	// Append adds to a file, which it makes when there is none.
	Append(path string, data []byte) error
	// Sync returns when what was written to a file, or the entries of a folder, are on the disk.
	Sync(path string) error
	// Rename replaces a file, not a folder, of the new name.
	Rename(old, new string) error
	// Exchange swaps two folders in one step; errors.ErrUnsupported where the system cannot.
	Exchange(a, b string) error
	Remove(path string) error
	RemoveAll(path string) error
}

// OS is the operating system's disk.
type OS struct{}

// Mkdir implements [Disk].
func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o777) }

// WriteFile implements [Disk].
func (OS) WriteFile(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Append implements [Disk].
func (OS) Append(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Sync implements [Disk].
func (OS) Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && runtime.GOOS != "windows" { // which cannot sync what is open for reading
		return err
	}
	return nil
}

// Rename implements [Disk].
func (OS) Rename(old, new string) error { return os.Rename(old, new) }

// Exchange implements [Disk].
func (OS) Exchange(a, b string) error { return exchange(a, b) }

// Remove implements [Disk].
func (OS) Remove(path string) error { return os.Remove(path) }

// RemoveAll implements [Disk].
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }
