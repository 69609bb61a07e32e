package hugepages

import "golang.org/x/sys/unix"

// advise asks for huge pages. Memory that is not touched yet gets them at once; a refusal costs speed alone.
func advise(whole []byte) { _ = unix.Madvise(whole, unix.MADV_HUGEPAGE) }
