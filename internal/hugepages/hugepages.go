// Package hugepages allocates large slices whose memory the operating system may map in pages of 2 MiB. A matrix product reads every row of
// a wide weight from another page; with pages of 4 KiB most loads would wait for the translation of an address.
package hugepages

import "unsafe"

// page is the size of a huge page on every processor that this project has kernels for.
const page = 2 << 20

// Make returns make([]T, n), in huge pages if the system provides them.
func Make[T float32 | float64](n int) []T {
	s := make([]T, n)
	if n == 0 {
		return s
	}
	first := unsafe.Pointer(unsafe.SliceData(s))
	bytes := unsafe.Slice((*byte)(first), n*int(unsafe.Sizeof(s[0])))
	if skip := int(-uintptr(first) % page); skip+page <= len(bytes) { // a whole page is inside
		advise(bytes[skip : skip+(len(bytes)-skip)/page*page])
	}
	return s
}
