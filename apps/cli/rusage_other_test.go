//go:build !unix

package cli

import "os"

// maxResident returns 0: the value is unknown on this system.
func maxResident(*os.ProcessState) int64 { return 0 }

// forgetPeak does nothing where the memory of a process is not measured.
func forgetPeak() {}
