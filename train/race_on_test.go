//go:build race

package train

// raceEnabled: the race detector makes sync.Pool, which purego and the morphological ops use, drop objects at random.
const raceEnabled = true
