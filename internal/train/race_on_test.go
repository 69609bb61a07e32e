//go:build race

package train

// raceEnabled reports whether the race detector is enabled. It makes sync.Pool, which purego and the morphological ops use,
// drop objects at random.
const raceEnabled = true
