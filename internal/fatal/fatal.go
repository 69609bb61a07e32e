// Package fatal ends tests at errors that have nothing to do with what they test.
package fatal

import "testing"

// If ends a test, with the error as its message, unless err is nil. The last arguments say where.
func If(t testing.TB, err error, where ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(where, err)...)
	}
}
