package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"tessera/layers"
)

// Missing returns an error for the first place of a model that should hold a part and holds nil, or that names nothing to act on; nil
// where there is none. A model of a file, of [Complete] or of [File.Model] has no such place; one that was put together by hand may.
func (m *Model) Missing() error {
	f := missing{model: m.Name}
	f.layers("encoder", m.Encoder)
	f.layers("decoder", m.Decoder)
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		f.layers(headPart(name)+".layers", m.Heads[name].Layers)
	}
	for i, v := range m.Views {
		for k, a := range v.Augment {
			f.part(fmt.Sprintf("view[%d].augment[%d]", i, k), "augmentation", a)
		}
	}
	for i, l := range m.Losses {
		at := fmt.Sprintf("loss[%d]", i)
		f.part(at, "loss", l.Loss)
		f.part(at+".weight", "weight", l.Weight)
		f.key(at, "on", l.On)
	}
	for i, c := range m.Constraints {
		at := fmt.Sprintf("constraint[%d]", i)
		f.part(at, "constraint", c.Constraint)
		f.key(at, "on", c.On)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Hooks)) {
		f.part(hookPart(name), "hook", m.Hooks[name])
	}
	f.typed("dataset", "data set", m.Dataset.Source)
	f.typed("baseline", "baseline", m.Baseline)
	f.typed("optimizer", "optimizer", m.Optimizer.Optimizer)
	f.typed("optimizer.schedule", "schedule", m.Optimizer.Schedule.Schedule)
	return f.err
}

// missing collects the first place of a model that holds nothing.
type missing struct {
	model string
	err   error
}

func (f *missing) fail(at, problem string) {
	if f.err == nil {
		f.err = fmt.Errorf("model %q: %s: %s", f.model, at, problem)
	}
}

// part refuses nil and a nil pointer.
func (f *missing) part(at, what string, part any) {
	if isNil(part) {
		f.fail(at, fmt.Sprintf("there is no %s (got %s); give its settings, or leave the element out", what, nilText(part)))
	}
}

// typed refuses a nil pointer alone: nil stands for a part that the model does not have.
func (f *missing) typed(at, what string, part any) {
	if part != nil {
		f.part(at, what, part)
	}
}

func (f *missing) key(at, key, value string) {
	if value == "" {
		f.fail(at, fmt.Sprintf("missing key %q", key))
	}
}

func (f *missing) layers(at string, list []Layer) {
	for i, l := range list {
		f.layer(fmt.Sprintf("%s[%d]", at, i), l.Layer)
	}
}

// layer refuses a layer, and a block that holds nil.
func (f *missing) layer(at string, l layers.Layer) {
	if f.part(at, "layer", l); isNil(l) {
		return
	}
	if b, ok := l.(layers.Block); ok {
		for i, inner := range b.Inner() {
			f.layer(fmt.Sprintf("%s.layers[%d]", at, i), inner)
		}
	}
}

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(part any) bool {
	v := reflect.ValueOf(part)
	return part == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// nilText is nil with the type of the pointer, where there is one.
func nilText(part any) string {
	if part == nil {
		return "nil"
	}
	return fmt.Sprintf("a nil %T", part)
}
