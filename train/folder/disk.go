package folder

import (
	"errors"
	"os"

	"tessera/internal/atomicfile"
)

// Disk is the interface of a run's folder to the file system. Tests replace it by a disk that fills up, fails or dies.
type Disk interface {
	atomicfile.Disk
	Mkdir(path string) error
	// Append appends to a file and creates it if necessary.
	Append(path string, data []byte) error
	// Exchange swaps two folders atomically; errors.ErrUnsupported if the system cannot.
	Exchange(a, b string) error
	RemoveAll(path string) error
}

// OS is the operating system's disk.
type OS struct{ atomicfile.OS }

// Mkdir implements [Disk].
func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o777) }

// Append implements [Disk].
func (OS) Append(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Exchange implements [Disk].
func (OS) Exchange(a, b string) error { return exchange(a, b) }

// RemoveAll implements [Disk].
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }
