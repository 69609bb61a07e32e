//go:build amd64 || arm64

package kernel

// floatModes returns this thread's floating-point control register: rounding, and the treatment of denormals.
func floatModes() uint32

func setFloatModes(modes uint32)
