//go:build unix && !solaris && !illumos && !aix

package folder

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the kernel's lock on a folder, which ends with the process. On a file system without locks it does nothing.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close() // nothing was written through it
		return nil, ErrLocked
	}
	return f, nil
}

// unlock releases a lock.
func unlock(f *os.File) error { return f.Close() }

// Held reports whether a process works on a run. For a moment it holds the run itself, shared with other callers of Held.
func Held(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
