//go:build !amd64

package kernel

import "runtime"

func simdBackends(string) ([]backend, string) {
	return nil, "there are assembly kernels for amd64 only, not for " + runtime.GOARCH
}

func hasAVX512() bool { return false }

// Go leaves the floating-point modes at their defaults, and only x86 libraries are known to change them.
func floatModes() uint32   { return 0 }
func setFloatModes(uint32) {}
