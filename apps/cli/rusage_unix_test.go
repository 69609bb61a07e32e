//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"
)

// maxResident returns the maximum resident memory of a process, in bytes.
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
