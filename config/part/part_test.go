package part_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tessera/config/part"
)

// colour is a part for tests.
type colour struct{ name string }

func colours(names ...string) *part.Registry[*colour] {
	r := part.New[*colour]("colour")
	for _, name := range names {
		r.Register(name, "the colour "+name, func() *colour { return &colour{name} })
	}
	return r
}

func TestARegistryListsItsPartsByName(t *testing.T) {
	r := colours("red", "blue", "green")
	want := []string{"blue", "green", "red"}
	if got := r.Names(); !slices.Equal(got, want) || r.What() != "colour" {
		t.Errorf("%s: got %q, want %q", r.What(), got, want)
	}
	for i, e := range r.All() {
		if e.Name != want[i] || e.About != "the colour "+want[i] || e.New().name != want[i] {
			t.Errorf("part %d is %+v, want %s", i, e, want[i])
		}
	}
	e, ok := r.Lookup("red")
	if !ok {
		t.Fatal("red is not found")
	}
	if one, other := e.New(), e.New(); one == other {
		t.Error("two parts are the same pointer")
	}
	if _, ok := r.Lookup("black"); ok {
		t.Error("black is found")
	}
}

func TestAPartThatCannotBeMadeIsNotRegistered(t *testing.T) {
	one := func() int { return 1 }
	r := part.New[int]("number")
	r.Register("one", "the number 1", one)
	for says, register := range map[string]func(){
		`number "one" is registered twice`: func() { r.Register("one", "again", one) },
		`number "two" is registered`:       func() { r.Register("two", "without a function", nil) },
		`number "" is registered`:          func() { r.Register("", "without a name", one) },
	} {
		func() {
			defer func() {
				if cause, _ := recover().(string); !strings.Contains(cause, says) {
					t.Errorf("got %q, want %q", cause, says)
				}
			}()
			register()
		}()
	}
	if names := r.Names(); len(names) != 1 || r.All()[0].New() != 1 {
		t.Errorf("the registry holds %q", names)
	}
}

func TestAKeyErrorNamesItsKey(t *testing.T) {
	err := fmt.Errorf("step 1: %w", part.KeyErrorf("high", "got %d, want > %d", 2, 3))
	if key, ok := errors.AsType[part.KeyError](err); !ok || key.Key != "high" || err.Error() != "step 1: high: got 2, want > 3" {
		t.Errorf("got %v of key %q", err, key.Key)
	}
}
