package metrics

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"tessera/config/part/table"
)

// Standard lists the metrics that every evaluation outputs, in this order; those that are not applicable are null. The other
// registered metrics follow by name if they are applicable and not [Description.OnRequest].
var Standard = []string{"mse", "mse_clipped", "hoyer", "hoyer_atoms", "max_approx", "dead_units", "negative_weights", "kl"}

// Choice is one selected metric.
type Choice struct {
	Metric   Metric
	Only     []string // the names of the selected measures; nil selects all
	Optional bool     // omitted if it is not applicable; otherwise it is output as not applicable, and missing labels are an error
	Unless   Reads    // omitted if the model has one of these inputs

	given []given
}

// Selection lists the selected metrics in the order of output. A nil selection means [Default].
type Selection []Choice

// Default returns the metrics for an empty selection.
func Default() Selection {
	var s Selection
	for _, name := range Standard {
		if e, ok := Registry.Lookup(name); ok {
			s = append(s, Choice{Metric: e.New()})
		}
	}
	for _, e := range Registry.All() {
		m := e.New()
		if d := m.Describe(); !slices.Contains(Standard, e.Name) && !d.OnRequest {
			s = append(s, Choice{Metric: m, Optional: true, Unless: d.InPlaceOf})
		}
	}
	return s
}

// HasDefault reports whether a selection contains every metric of [Default], like nil: nobody has chosen the metrics, at most added some.
func (s Selection) HasDefault() bool {
	return s == nil || !slices.ContainsFunc(Default(), func(d Choice) bool {
		return !slices.ContainsFunc(s, func(c Choice) bool { return c.first() == d.first() })
	})
}

// Check returns an error for a choice without a metric, or for a metric without measures.
func (s Selection) Check() error {
	for i, c := range s {
		if c.first() == "" {
			return fmt.Errorf("metrics: choice %d has no metric, or one without measures; use metrics.Select", i)
		}
	}
	return nil
}

// first returns the name of the metric's first measure, "" if it has none.
func (c Choice) first() string {
	if c.Metric == nil {
		return ""
	}
	if m := c.Metric.Describe().Measures; len(m) > 0 {
		return m[0].Name
	}
	return ""
}

// UnknownError is the error for a name or glob that matches no metric.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("metrics: unknown metric %q; metrics.Names lists the known names", e.Name)
}

// Select returns the named metrics in the given order. A name is the name of a measure ("mse_clipped"), the name of a metric
// ("svm"), which selects all of its measures, or a glob over measures ("max_approx*"). The matches of a glob are optional.
// The error is [*UnknownError].
func Select(names ...string) (Selection, error) {
	var s Selection
	for _, name := range names {
		found := false
		for _, e := range Registry.All() {
			m := e.New()
			for _, measure := range m.Describe().Measures {
				matched, _ := path.Match(name, measure.Name) // a malformed glob matches nothing
				if matched || name == e.Name {
					s.add(m, measure.Name, name != measure.Name && name != e.Name, 0)
					found = true
				}
			}
		}
		if !found {
			return nil, &UnknownError{Name: name}
		}
	}
	return s, nil
}

// Names returns all names that [Select] accepts, sorted: the names of measures and metrics.
func Names() []string {
	var names []string
	for _, e := range Registry.All() {
		names = append(names, e.Name)
		for _, m := range e.New().Describe().Measures {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// add selects one measure. The measures of one metric are computed together.
func (s *Selection) add(m Metric, measure string, optional bool, unless Reads) {
	i := slices.IndexFunc(*s, func(c Choice) bool { return c.first() == Choice{Metric: m}.first() })
	if i < 0 {
		*s = append(*s, Choice{Metric: m, Only: []string{measure}, Optional: optional, Unless: unless})
		return
	}
	c := &(*s)[i]
	c.Optional, c.Unless = c.Optional && optional, c.Unless&unless
	if c.Only != nil && !slices.Contains(c.Only, measure) {
		c.Only = append(c.Only, measure)
	}
}

// Add returns the selection, followed by the choices of others that it does not contain.
func (s Selection) Add(others Selection) Selection {
	all := slices.Clone(s)
	for _, c := range others {
		for _, name := range c.names() {
			all.add(c.Metric, name, c.Optional, c.Unless)
		}
	}
	return all
}

// Names returns the names of the selected measures, in the order of output.
func (s Selection) Names() (names []string) {
	for _, c := range s {
		names = append(names, c.names()...)
	}
	return names
}

// Given returns the settings that [Selection.Set] has set, as KEY=VALUE in their order.
func (s Selection) Given() (texts []string) {
	values := map[string]any{}
	var keys []string
	for _, c := range s {
		for _, g := range c.given {
			if _, known := values[g.key]; !known {
				keys = append(keys, g.key)
			}
			values[g.key] = g.value // the last one holds
		}
	}
	for _, key := range keys {
		texts = append(texts, fmt.Sprintf("%s=%v", key, values[key]))
	}
	return texts
}

// names returns the names of the selected measures, in the metric's order.
func (c Choice) names() []string {
	var names []string
	if c.Metric == nil {
		return nil
	}
	for _, m := range c.Metric.Describe().Measures {
		if c.Only == nil || slices.Contains(c.Only, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// Parted is a metric with a part that one of its keys names.
type Parted interface {
	// Part returns the part, whose keys are settings too.
	Part() any
}

// Settings lists the settings of a metric: its keys, and those of its part.
func Settings(m Metric) []table.Field {
	fields := table.Fields(m)
	if p, ok := m.(Parted); ok {
		fields = append(fields, table.Fields(p.Part())...)
	}
	return fields
}

// Set sets a key of every selected metric that has it, and adds the setting to the result. It is an error if no metric has
// the key, or if the value has the wrong type. The keys of a metric are those of [Settings].
func (s Selection) Set(key string, value any) error {
	found := false
	for i, c := range s {
		for _, f := range Settings(c.Metric) {
			if f.Key != key {
				continue
			}
			v := reflect.ValueOf(value)
			if !v.IsValid() || v.Kind() != f.Value.Kind() {
				return fmt.Errorf("metrics: %s: got %T, want %s", key, value, f.Value.Type())
			}
			f.Value.Set(v.Convert(f.Value.Type()))
			s[i].given = append(s[i].given, given{key: key, value: value})
			found = true
		}
	}
	if !found {
		return fmt.Errorf("metrics: none of the selected metrics has a setting %q", key)
	}
	return nil
}

// SetText is like [Selection.Set], for text of the form KEY=VALUE.
func (s Selection) SetText(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("got %q, want KEY=VALUE", text)
	}
	for _, c := range s {
		for _, f := range Settings(c.Metric) {
			if f.Key != key {
				continue
			}
			if err := f.SetText(value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			return s.Set(key, f.Value.Interface())
		}
	}
	return fmt.Errorf("none of the selected metrics has a setting %q", key)
}

// Of returns the selected values from an earlier result, in the order of the selection. ok is false if one of them is missing
// and has to be measured.
func (s Selection) Of(r *Result) (picked *Result, ok bool) {
	if s == nil {
		s = Default()
	}
	picked = &Result{Model: r.Model, Dataset: r.Dataset, Split: r.Split, Images: r.Images, Vectors: r.Vectors}
	for _, c := range s {
		for k, name := range c.names() {
			found := false
			for _, v := range r.Values {
				if v.Name == name || strings.HasSuffix(v.Name, "."+name) {
					v.optional = c.Optional
					picked.Values = append(picked.Values, v)
					if k == 0 {
						picked.given = append(picked.given, c.settings(strings.TrimSuffix(v.Name, name))...)
					}
					found = true
				}
			}
			if !found {
				return nil, false
			}
		}
	}
	return picked, true
}

// SameSettings reports whether an earlier result was measured with the settings of the selection.
func (s Selection) SameSettings(r *Result) bool {
	texts := func(all []given) map[string]string {
		m := map[string]string{}
		for _, g := range all {
			text, _ := json.Marshal(g.value) // strings, bools and numbers have a text
			m[g.key] = string(text)
		}
		return m
	}
	earlier := texts(r.given)
	for _, c := range s {
		now := texts(c.given)
		for _, f := range Settings(c.Metric) {
			if now[f.Key] != earlier[f.Key] {
				return false
			}
		}
	}
	return true
}

// MeasureOf returns the measure with that name; "class.accuracy" is the accuracy of the head "class".
func MeasureOf(name string) (Measure, bool) {
	last := name[strings.LastIndex(name, ".")+1:]
	for _, e := range Registry.All() {
		for _, m := range e.New().Describe().Measures {
			if m.Name == name || m.Name == last {
				return m, true
			}
		}
	}
	return Measure{}, false
}

// OnRequest reports whether the metric with this measure is measured only if it is selected by name.
func OnRequest(name string) bool {
	chosen, err := Select(name)
	return err == nil && len(chosen) > 0 && chosen[0].Metric.Describe().OnRequest
}

// variants are the ends of the names of metrics that vary another metric.
var variants = []string{"_clipped", "_bias_dilated", "_reconstructed", "_contribution"}

// IsVariant reports whether a metric varies another one, as mse_clipped varies mse: where nobody has chosen metrics, it stands behind the others.
func IsVariant(name string) bool {
	return slices.ContainsFunc(variants, func(end string) bool { return strings.HasSuffix(name, end) })
}

// choiceJSON is the JSON form of a [Choice]; it contains the name of the metric.
type choiceJSON struct {
	Metric   string         `json:"metric"`
	Only     []string       `json:"only,omitempty"`
	Optional bool           `json:"optional,omitempty"`
	Unless   Reads          `json:"unless,omitempty"`
	Settings map[string]any `json:"settings,omitempty"` // settings that the user has set
}

// MarshalJSON implements [json.Marshaler]. A metric that is not registered is an error.
func (s Selection) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	all := make([]choiceJSON, len(s))
	for i, c := range s {
		name := c.registered()
		if name == "" {
			return nil, fmt.Errorf("metrics: %q is not registered", c.first())
		}
		all[i] = choiceJSON{Metric: name, Only: c.Only, Optional: c.Optional, Unless: c.Unless}
		for _, g := range c.given {
			if all[i].Settings == nil {
				all[i].Settings = map[string]any{}
			}
			all[i].Settings[g.key] = g.value
		}
	}
	return json.Marshal(all)
}

// registered returns the name under which the metric is registered, "" if it is not registered.
func (c Choice) registered() string {
	for _, e := range Registry.All() {
		if first := (Choice{Metric: e.New()}).first(); first != "" && first == c.first() {
			return e.Name
		}
	}
	return ""
}

// UnmarshalJSON implements [json.Unmarshaler]. An unknown metric is an [*UnknownError].
func (s *Selection) UnmarshalJSON(text []byte) error {
	var all []choiceJSON
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*s = nil
	for _, one := range all {
		e, ok := Registry.Lookup(one.Metric)
		if !ok {
			return &UnknownError{Name: one.Metric}
		}
		c := Selection{{Metric: e.New(), Only: one.Only, Optional: one.Optional, Unless: one.Unless}}
		done := map[string]bool{}
		for { // a setting may choose a part, whose settings follow
			fields := Settings(c[0].Metric)
			i := slices.IndexFunc(fields, func(f table.Field) bool { return !done[f.Key] && one.Settings[f.Key] != nil })
			if i < 0 {
				break
			}
			f := fields[i]
			done[f.Key] = true
			value := one.Settings[f.Key]
			if number, ok := value.(float64); ok && f.Value.CanInt() {
				value = reflect.ValueOf(int64(number)).Convert(f.Value.Type()).Interface()
			}
			if err := c.Set(f.Key, value); err != nil {
				return err
			}
		}
		*s = append(*s, c...)
	}
	return nil
}
