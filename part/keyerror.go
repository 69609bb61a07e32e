package part

import "fmt"

// KeyError is what is wrong with one setting of a part. A part whose settings depend on each other returns it from
//
//	Check() error
//
// so that the message can point at the key.
type KeyError struct {
	Key     string // as in TOML
	Problem string // "got 2, want > low (3)"
}

// Error implements error.
func (e KeyError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Problem) }

// KeyErrorf returns a [KeyError] whose problem is formatted as by [fmt.Sprintf].
func KeyErrorf(key, format string, args ...any) error {
	return KeyError{Key: key, Problem: fmt.Sprintf(format, args...)}
}
