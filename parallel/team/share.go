package team

// shareAlign is to how many elements the borders of shares are rounded: a cache line of float32, so that two threads
// do not write to one line. shareLong is how many elements a share must have for that not to make shares unequal.
const (
	shareAlign = 16
	shareLong  = 128
)

// Share returns the range of n things (rows or columns of a tensor) that belong to one of several threads. Who reads and
// writes them asks here, so that what one processor computed stays in its cache until it needs it again.
func Share(n, thread, threads int) (from, to int) {
	return border(n, thread, threads), border(n, thread+1, threads)
}

func border(n, thread, threads int) int {
	at := n * thread / threads
	if thread == threads || n < shareLong*threads {
		return at
	}
	return (at + shareAlign/2) / shareAlign * shareAlign
}

// EvenShare returns the range of n things that belong to one of several threads. All ranges are as equal as can be.
func EvenShare(n, thread, threads int) (from, to int) {
	return n * thread / threads, n * (thread + 1) / threads
}
