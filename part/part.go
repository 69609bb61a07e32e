// Package part contains registries of named parts: layers, losses, constraints, optimizers, data sets, ...
//
// A part is one file: a struct whose tagged fields are its settings, and one call of Register in init. The tags are
// read by config (to decode a table strictly and to write the defaults out) and by lists of parts:
//
//	toml:"units"      the key
//	want:"> 0"        the values that are valid: "> 0", ">= 0", "in (0,1)", "in [0,1)", "in [0,1]", ...; checked when the key is given
//	oneof:"a b"       the texts that are valid
//	doc:"outputs"     one line for people
//	required:"true"   the key must be given
//
// The value that a part's constructor returns contains the defaults.
package part

import (
	"fmt"
	"slices"
)

// Entry is one registered part.
type Entry[T any] struct {
	Name  string   // the TOML value, file name and test name
	About string   // one line: what it computes, with its formula
	New   func() T // returns a pointer to a struct with the defaults
}

// Registry maps names to parts. Parts are registered in init functions; afterwards it is only read.
type Registry[T any] struct {
	what    string
	entries map[string]Entry[T]
}

// New returns an empty registry; what names one part in messages, such as "layer".
func New[T any](what string) *Registry[T] {
	return &Registry[T]{what: what, entries: map[string]Entry[T]{}}
}

// What names one part of this registry, such as "layer".
func (r *Registry[T]) What() string { return r.what }

// Register adds a part. It panics when the name is taken or empty, or when new is nil: these are programming errors.
func (r *Registry[T]) Register(name, about string, new func() T) {
	if name == "" || new == nil {
		panic(fmt.Sprintf("part: %s %q is registered without a name or a function that makes it", r.what, name))
	}
	if _, taken := r.entries[name]; taken {
		panic(fmt.Sprintf("part: %s %q is registered twice", r.what, name))
	}
	r.entries[name] = Entry[T]{Name: name, About: about, New: new}
}

// Lookup returns the part of that name.
func (r *Registry[T]) Lookup(name string) (Entry[T], bool) {
	e, ok := r.entries[name]
	return e, ok
}

// Names returns all names, sorted.
func (r *Registry[T]) Names() []string {
	names := make([]string, 0, len(r.entries))
	for name := range r.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All returns all entries, sorted by name.
func (r *Registry[T]) All() []Entry[T] {
	all := make([]Entry[T], 0, len(r.entries))
	for _, name := range r.Names() {
		all = append(all, r.entries[name])
	}
	return all
}

// KeyError reports an invalid setting of a part. A part whose settings depend on each other returns it from
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
