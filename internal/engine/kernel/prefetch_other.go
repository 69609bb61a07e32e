//go:build !amd64 && !arm64

package kernel

// Prefetch does nothing on this architecture, which relies on hardware prefetching.
func Prefetch([]uint8) {}

// PrefetchOwned does nothing on this architecture, which relies on hardware prefetching.
func PrefetchOwned([]float32) {}
