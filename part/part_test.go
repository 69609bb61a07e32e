package part

import (
	"strings"
	"testing"
)

func TestAPartThatCannotBeMadeIsNotRegistered(t *testing.T) {
	one := func() int { return 1 }
	r := New[int]("number")
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
