// Package random derives a separate random stream for every purpose from the seed of the run.
//
// A stream is identified by a path (of a parameter or a noise layer, or "shuffle") and a counter (the step or the
// epoch). Adding a layer therefore does not change the other streams. A resumed run needs no saved generator: the seed
// and the counters determine everything.
package random

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Stream returns the generator for a path and a counter, derived from a seed. Equal arguments give equal streams on
// every machine.
func Stream(seed uint64, path string, counter uint64) *rand.Rand {
	return rand.New(rand.NewPCG(Seeds(seed, path, counter)))
}

// Seeds returns the first state of [Stream], for a generator that draws the same numbers.
func Seeds(seed uint64, path string, counter uint64) (hi, lo uint64) {
	var buf [16]byte
	binary.LittleEndian.PutUint64(buf[:8], seed)
	binary.LittleEndian.PutUint64(buf[8:], counter)
	sum := sha256.Sum256(append(buf[:], path...))
	return binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])
}
