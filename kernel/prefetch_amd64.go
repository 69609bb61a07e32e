package kernel

//go:noescape
func prefetch(first *byte, lines int)

// Prefetch asks for a slice that is read soon, so that a gather of rows from all over a large array does not wait for
// the memory at each of them. It changes nothing else.
func Prefetch(a []uint8) {
	if len(a) > 0 {
		prefetch(&a[0], (len(a)+63)/64)
	}
}

//go:noescape
func prefetchOwned(first *float32, lines int)

// PrefetchOwned asks for a slice that is written soon, for this processor alone: other processors that have read it would
// otherwise be notified at every write. It changes nothing else.
func PrefetchOwned(a []float32) {
	if len(a) > 0 {
		prefetchOwned(&a[0], (4*len(a)+63)/64)
	}
}
