// Package fatal ends tests at errors that have nothing to do with what they test.
package fatal

import "testing"

// If ends a test, with the error as its message, unless err is nil.
func If(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
