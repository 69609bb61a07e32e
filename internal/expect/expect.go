// Package expect reports what tests find and did not expect, a line for each fact. The last arguments say where; [fmt.Sprintln] joins them.
package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Equal expects a value.
func Equal[T comparable](t testing.TB, got, want T, where ...any) {
	t.Helper()
	if got != want {
		t.Error(at(where) + differ(got, want))
	}
}

// Slice expects values.
func Slice[S ~[]E, E comparable](t testing.TB, got, want S, where ...any) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	if i := firstOther(got, want); len(got) == len(want) && len(got) > mostValues {
		t.Errorf("%svalue %d of %d: %s", at(where), i, len(got), differ(got[i], want[i]))
	} else if max(len(got), len(want)) > mostValues {
		t.Errorf("%sgot %d values, want %d; they differ from value %d on", at(where), len(got), len(want), i)
	} else {
		t.Errorf("%sgot %v, want %v", at(where), got, want)
	}
}

// mostValues is how many values a message shows.
const mostValues = 50

// firstOther is the first place at which two slices differ.
func firstOther[S ~[]E, E comparable](x, y S) int {
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i
		}
	}
	return min(len(x), len(y))
}

// Near expects a number up to a distance.
func Near[T ~float32 | ~float64](t testing.TB, got, want T, distance float64, where ...any) {
	t.Helper()
	if !(math.Abs(float64(got-want)) <= distance) && got != want {
		t.Errorf("%sgot %v, want %v within %v", at(where), got, want, distance)
	}
}

// Contains expects a part of a text.
func Contains(t testing.TB, text, part string, where ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%sgot a text without %q:\n%s", at(where), part, text)
	}
}

// NoError expects no error.
func NoError(t testing.TB, err error, where ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s%v", at(where), err)
	}
}

// AnyError expects an error.
func AnyError(t testing.TB, err error, where ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sgot no error, want one", at(where))
	}
}

// Error expects an error that says something.
func Error(t testing.TB, err error, says string, where ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%sgot the error %v, want one that says %q", at(where), err, says)
	}
}

// Is expects an error that is another, as [errors.Is] has it.
func Is(t testing.TB, err, want error, where ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%sgot the error %v, want %v", at(where), err, want)
	}
}

// As expects an error of a type, as [errors.As] has it, that says something.
func As[E error](t testing.TB, err error, says string, where ...any) {
	t.Helper()
	if _, ok := errors.AsType[E](err); !ok || !strings.Contains(err.Error(), says) {
		t.Errorf("%sgot the error %v, want a %T that says %q", at(where), err, *new(E), says)
	}
}

// Err is the error of a function that also returns a value.
func Err[T any](_ T, err error) error { return err }

// at is where something was found, as the beginning of a message.
func at(where []any) string {
	if len(where) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(where...), "\n") + ": "
}

// differ says that two values differ, texts of several lines one above the other.
func differ(got, want any) string {
	g, isText := got.(string)
	w, _ := want.(string)
	switch {
	case isText && strings.Contains(g+w, "\n"):
		return fmt.Sprintf("got\n%s\nwant\n%s", g, w)
	case isText:
		return fmt.Sprintf("got %q, want %q", g, w)
	}
	return fmt.Sprintf("got %v, want %v", got, want)
}
