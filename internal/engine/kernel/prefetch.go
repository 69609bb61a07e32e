//go:build amd64 || arm64

package kernel

//go:noescape
func prefetch(first *byte, lines int)

// Prefetch loads a slice into the cache before it is read. Gathering scattered rows of a large array then does not wait
// for memory at every row. It has no other effect.
func Prefetch(a []uint8) {
	if len(a) > 0 {
		prefetch(&a[0], (len(a)+63)/64)
	}
}

//go:noescape
func prefetchOwned(first *float32, lines int)

// PrefetchOwned loads a slice into the cache before it is written, exclusively for this processor. Otherwise every
// write would have to invalidate the copies in the caches of other processors. It has no other effect.
func PrefetchOwned(a []float32) {
	if len(a) > 0 {
		prefetchOwned(&a[0], (4*len(a)+63)/64)
	}
}
