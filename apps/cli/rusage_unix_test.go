//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"
)

// maxResident returns the most memory that a process held, in bytes.
func maxResident(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) * 1024
}
