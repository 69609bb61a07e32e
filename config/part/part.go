// Package part contains registries of named parts: layers, losses, constraints, optimizers, data sets, ...
//
// A part is one file: a struct whose tagged fields are its settings, and one call of Register in init. Package config
// reads the tags to decode a table strictly and to write the defaults. Lists of parts read them, too:
//
//	toml:"units"      the key
//	want:"> 0"        the values that are valid: "> 0", ">= 0", "in (0,1)", "in [0,1)", "in [0,1]", ...; checked when the key is given
//	oneof:"a b"       the texts that are valid
//	doc:"outputs"     a description in one line
//	required:"true"   the key must be given
//
// The constructor of a part returns a pointer to a struct that contains the defaults.
package part

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tessera/internal/lists"
)

// Entry is one registered part.
type Entry[T any] struct {
	Name  string   // name in TOML, which is also the name of its file and its tests
	About string   // one line: what the part computes, with its formula
	New   func() T // returns a pointer to a struct with the defaults
}

// Registry maps names to parts. Parts are registered in init functions. Afterwards the registry is only read.
type Registry[T any] struct {
	what    string
	entries map[string]Entry[T]
	sorted  []Entry[T] // by name
}

// New returns an empty registry. The text what is the word for one part in messages, such as "layer".
func New[T any](what string) *Registry[T] {
	return &Registry[T]{what: what, entries: map[string]Entry[T]{}}
}

// What returns the word for one part of this registry, such as "layer".
func (r *Registry[T]) What() string { return r.what }

// Register adds a part. It panics if the name is taken or empty, or if new is nil, because these are programming
// errors.
func (r *Registry[T]) Register(name, about string, new func() T) {
	if name == "" || new == nil {
		panic(fmt.Sprintf("part: %s %q is registered without a name or a function that makes it", r.what, name))
	}
	if _, taken := r.entries[name]; taken {
		panic(fmt.Sprintf("part: %s %q is registered twice", r.what, name))
	}
	e := Entry[T]{Name: name, About: about, New: new}
	r.entries[name] = e
	at, _ := slices.BinarySearchFunc(r.sorted, name, func(e Entry[T], name string) int { return strings.Compare(e.Name, name) })
	r.sorted = slices.Insert(r.sorted, at, e)
}

// Lookup returns the part with the given name; ok is false if there is none.
func (r *Registry[T]) Lookup(name string) (Entry[T], bool) {
	e, ok := r.entries[name]
	return e, ok
}

// NameOf returns the first name under which the type of a part is registered, "" if there is none.
func (r *Registry[T]) NameOf(p T) string {
	if named, ok := any(p).(interface{ PartName() string }); ok {
		return named.PartName()
	}
	for _, e := range r.sorted {
		if reflect.TypeOf(e.New()) == reflect.TypeOf(p) {
			return e.Name
		}
	}
	return ""
}

// Names returns all names, sorted.
func (r *Registry[T]) Names() []string {
	return lists.Map(r.sorted, func(e Entry[T]) string { return e.Name })
}

// All returns all entries, sorted by name.
func (r *Registry[T]) All() []Entry[T] {
	return slices.Clone(r.sorted)
}

// KeyError reports an invalid setting of a part. A part whose settings depend on each other returns it from the method
//
//	Check() error
//
// so that the message can point at the key.
type KeyError struct {
	Key     string // key in TOML
	Problem string // "got 2, want > low (3)"
}

func (e KeyError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Problem) }

// KeyErrorf returns a [KeyError] whose problem is formatted by [fmt.Sprintf].
func KeyErrorf(key, format string, args ...any) error {
	return KeyError{Key: key, Problem: fmt.Sprintf(format, args...)}
}
