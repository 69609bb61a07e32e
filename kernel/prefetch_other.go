//go:build !amd64

package kernel

// Prefetch asks for a slice that is read soon; this architecture's own guesses have to do.
func Prefetch([]uint8) {}

// PrefetchOwned asks for a slice that is written soon; this architecture's own guesses have to do.
func PrefetchOwned([]float32) {}
