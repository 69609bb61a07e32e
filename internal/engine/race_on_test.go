//go:build race

package engine

// raceEnabled is true if the race detector is on. The race detector allocates memory.
const raceEnabled = true
