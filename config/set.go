package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/table"
)

// Set is one change of a model: --set PATH=VALUE.
type Set struct {
	table.Change
	passes int // of Passes, else 0
}

// ParseSet reads PATH=VALUE; see [table.ParseChange].
func ParseSet(argument string) (Set, error) {
	change, err := table.ParseChange(argument)
	return Set{Change: change}, err
}

// Passes is a change that a sweep makes by the kind of each of its models: auto-encoders are trained for n epochs, baselines that
// iterate do n iterations, and the others stay as they are.
func Passes(n int) Set { return Set{passes: n} }

// The keys that Passes sets.
const (
	epochsKey     = "train.epochs"
	iterationsKey = "iterations"
)

// suited appends the --set arguments to the changes of a trial, Passes as the key of what the model then is.
func (f *File) suited(model string, changes []table.Change, sets []Set) []table.Change {
	for _, s := range sets {
		if s.passes == 0 {
			changes = append(changes, s.Change)
		}
	}
	for _, s := range sets {
		if s.passes == 0 {
			continue
		}
		m, _ := f.build(model, changes)
		if key := passesOf(m); key != "" {
			change, _ := table.ParseChange(key + "=" + strconv.Itoa(s.passes)) // which is well formed
			changes = append(changes, change)
		}
	}
	return changes
}

// passesOf is the key by which a model is trained for longer, "" where it has none.
func passesOf(m *Model) string {
	switch {
	case m == nil || m.Baseline == nil:
		return epochsKey
	case reflect.TypeOf(m.Baseline).Kind() == reflect.Pointer && slices.Contains(table.Keys(m.Baseline, ""), iterationsKey):
		return iterationsKey
	}
	return ""
}

// sets reports whether a change is of a key.
func (s Set) sets(key string) bool {
	return strings.Join(s.Path(), ".") == key || s.passes > 0 && (key == epochsKey || key == iterationsKey)
}
