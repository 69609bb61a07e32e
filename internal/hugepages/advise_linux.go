package hugepages

import "golang.org/x/sys/unix"

// advise asks for huge pages. Memory that has not been touched yet gets them at once. If the system refuses, only speed
// is lost.
func advise(whole []byte) { _ = unix.Madvise(whole, unix.MADV_HUGEPAGE) }
