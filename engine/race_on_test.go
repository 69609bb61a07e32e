//go:build race

package engine

// raceEnabled says that the race detector is on; it allocates.
const raceEnabled = true
