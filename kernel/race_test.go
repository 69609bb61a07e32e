//go:build race

package kernel

// raceEnabled: the race detector makes sync.Pool, which purego uses, drop objects at random.
const raceEnabled = true
