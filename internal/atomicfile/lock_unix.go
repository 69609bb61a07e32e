//go:build unix && !solaris && !illumos && !aix

package atomicfile

import (
	"os"
	"syscall"
)

// hold takes the kernel's exclusive lock on a file, which ends with the process.
func hold(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// abandoned takes the lock and reports whether it succeeds. On a file system without locks it never does.
func abandoned(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
