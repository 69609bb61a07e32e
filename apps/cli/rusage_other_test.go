//go:build !unix

package cli

import "os"

// maxResident is not known here.
func maxResident(*os.ProcessState) int64 { return 0 }
