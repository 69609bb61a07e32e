//go:build !unix || solaris || illumos || aix

package atomicfile

import (
	"os"
	"time"
)

func hold(*os.File) {}

// abandoned reports whether a file has not been changed for a minute: the system has no lock that ends with the process.
func abandoned(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && time.Since(info.ModTime()) > time.Minute
}
