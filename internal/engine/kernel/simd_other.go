//go:build !amd64 && !arm64

package kernel

import "runtime"

func hasAssembly() bool { return false }

func simdBackends(string) selection {
	return selection{note: "there are assembly kernels for amd64 and arm64 only, not for " + runtime.GOARCH}
}

// floatModes returns 0. Go leaves the floating-point modes at their defaults, and only x86 libraries are known to
// change them.
func floatModes() uint32   { return 0 }
func setFloatModes(uint32) {}
