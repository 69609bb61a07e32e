package expect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
)

// recorder keeps what a test would report.
type recorder struct {
	testing.TB
	said []string
}

func (*recorder) Helper()                     {}
func (r *recorder) Error(args ...any)         { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }

func TestOnlyWhatIsNotExpectedIsReported(t *testing.T) {
	r := &recorder{}
	wrapped := fmt.Errorf("a file: %w", io.EOF)
	Equal(r, 3, 3)
	Slice(r, []int{1}, []int{1})
	Near(r, 1, 1.5, 0.5)
	Near(r, math.Inf(1), math.Inf(1), 0)
	Contains(r, "a text", "text")
	NoError(r, nil)
	AnyError(r, io.EOF)
	Error(r, wrapped, "file: EOF")
	Is(r, Err(0, wrapped), io.EOF)
	As[*fs.PathError](r, fmt.Errorf("a file: %w", &fs.PathError{Op: "open", Err: io.EOF}), "open")
	if len(r.said) > 0 {
		t.Errorf("reported without reason: %q", r.said)
	}
	many := slices.Repeat([]int{7}, 60)
	other := slices.Concat(many[:58], []int{8, 7})
	for want, check := range map[string]func(){
		"value 58 of 60: got 7, want 8":                                func() { Slice(r, many, other) },
		"got 60 values, want 59; they differ from value 58 on":         func() { Slice(r, many, other[:59]) },
		"units of a: got 3, want 4":                                    func() { Equal(r, 3, 4, "units of", "a") },
		`got "a", want "b"`:                                            func() { Equal(r, "a", "b") },
		"got\na\nb\nwant\nb":                                           func() { Equal(r, "a\nb", "b") },
		"got [1], want [2]":                                            func() { Slice(r, []int{1}, []int{2}) },
		"got NaN, want 1 within 0.5":                                   func() { Near(r, math.NaN(), 1, 0.5) },
		"got 1.6, want 1 within 0.5":                                   func() { Near(r, 1.6, 1, 0.5) },
		"got a text without \"b\":\na":                                 func() { Contains(r, "a", "b") },
		"x: EOF":                                                       func() { NoError(r, io.EOF, "x") },
		"x: got no error, want one":                                    func() { AnyError(r, nil, "x") },
		`got the error <nil>, want one that says "x"`:                  func() { Error(r, nil, "x") },
		`got the error EOF, want one that says "x"`:                    func() { Error(r, io.EOF, "x") },
		"got the error a file: EOF, want unexpected EOF":               func() { Is(r, wrapped, io.ErrUnexpectedEOF) },
		`got the error EOF, want a *fs.PathError that says "x"`:        func() { As[*fs.PathError](r, io.EOF, "x") },
		`got the error open : EOF, want a *fs.PathError that says "x"`: func() { As[*fs.PathError](r, &fs.PathError{Op: "open", Err: io.EOF}, "x") },
		"got the error <nil>, want " + errors.ErrUnsupported.Error():   func() { Is(r, nil, errors.ErrUnsupported) },
	} {
		r.said = nil
		if check(); strings.Join(r.said, ";") != want {
			t.Errorf("got %q, want %q", r.said, want)
		}
	}
}
