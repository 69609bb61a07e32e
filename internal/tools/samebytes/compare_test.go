package main

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	base := values{"same": "1", "number": "1e-3", "text": "a", "gone": "x", "null": "null", evalNote: "images"}
	now := values{"same": "1", "number": "0.001", "text": "b", "null": "0", "more": "5", evalNote: "samples"}
	different, added := compare(base, now)
	want := []difference{{"gone", "x", missing}, {"null", "null", "0"}, {"text", "a", "b"}}
	if !slices.Equal(different, want) || !slices.Equal(added, []string{"more"}) {
		t.Errorf("got %v and %v, want %v and more", different, added, want)
	}
}

func TestEqualNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0.1", "0.10", true},
		{"1", "1.0", true},
		{"0.1", "0.1000000000000001", false}, // the next float64 but three
		{"NaN", "NaN", true},
		{"true", "1", false},
		{"", "0", false},
	} {
		if got := equal(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
