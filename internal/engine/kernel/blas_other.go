//go:build !((linux || darwin) && (amd64 || arm64) && !android && !static)

package kernel

import "errors"

// library is a loaded BLAS. It is never used on this system or in a static build.
type library struct{ path, core, threading string }

func openBLAS(string) (*library, error) {
	return nil, errors.New("loading OpenBLAS is not supported on this system, or by this build (tag static)")
}

func (*library) gemm32(bool, bool, int, int, int, float32, []float32, int, []float32, int, float32, []float32, int) {
}

func (*library) gemm64(bool, bool, int, int, int, float64, []float64, int, []float64, int, float64, []float64, int) {
}
