//go:build unix && !solaris && !illumos && !aix

package folder

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// noFollow is the flag of open that refuses symbolic links.
const noFollow = syscall.O_NOFOLLOW

// lockTries bounds the number of attempts of lock while callers of [Held] lock the folder, each for microseconds.
const lockTries = 1000

// lock takes the kernel's exclusive lock on a folder, which ends with the process. On a file system without locks it does
// nothing. Callers of [Held], such as a list of runs that is refreshed, take a shared lock for a moment; lock then tries
// again.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, nil
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // two that wait must not wait for each other
		time.Sleep(time.Millisecond)
	}
	_ = f.Close() // nothing was written through it
	return nil, ErrLocked
}

// unlock releases a lock.
func unlock(f *os.File) error { return f.Close() }

// Held reports whether a process uses a run. To find out, it takes a shared lock for a moment.
func Held(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
