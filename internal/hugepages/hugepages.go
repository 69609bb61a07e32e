// Package hugepages allocates large slices whose memory the operating system may map in pages of 2 MiB. A matrix
// product reads every row of a wide weight from another page. With pages of 4 KiB most loads would wait for an address
// translation.
package hugepages

import "unsafe"

// page is the size of a huge page in bytes, for all processors for which this project has assembly.
const page = 2 << 20

// Make returns make([]T, n) in huge pages, if the system provides them.
func Make[T float32 | float64](n int) []T {
	s := make([]T, n)
	if n == 0 {
		return s
	}
	first := unsafe.Pointer(unsafe.SliceData(s))
	bytes := unsafe.Slice((*byte)(first), n*int(unsafe.Sizeof(s[0])))
	if skip := int(-uintptr(first) % page); skip+page <= len(bytes) { // the slice contains at least one whole page
		advise(bytes[skip : skip+(len(bytes)-skip)/page*page])
	}
	return s
}
