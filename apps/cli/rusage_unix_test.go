//go:build unix

package cli

import (
	"os"
	"runtime"
	"runtime/debug"
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

// forgetPeak sets the peak of this process back to what it uses now, where the system can. On Linux a process begins with the peak of the
// one that started it, whose memory it shares until exec, so that other tests would count in [maxResident].
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}
