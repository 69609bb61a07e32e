//go:build race

package kernel

// raceEnabled is true if the race detector is on. It makes sync.Pool, which purego uses, drop objects at random.
const raceEnabled = true
