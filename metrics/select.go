package metrics

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Standard names the metrics that every evaluation shows, in this order, null where one is not applicable. The other
// registered metrics that are not [Description.OnRequest] follow by name, where they are applicable.
var Standard = []string{"mse", "mse_clipped", "hoyer", "hoyer_atoms", "max_approx", "dead_units", "negative_weights", "kl"}

// Choice is one metric that is to be measured.
type Choice struct {
	Metric   Metric
	Only     []string // which of its measures; nil: all
	Optional bool     // it is left out where it is not applicable; else it is shown as such, and labels that it lacks are an error

	given []given
}

// Selection is what is to be measured, in the order in which it is shown. The zero value stands for [Default].
type Selection []Choice

// Default returns the metrics that are measured where nothing is chosen.
func Default() Selection {
	var s Selection
	for _, name := range Standard {
		if e, ok := Registry.Lookup(name); ok {
			s = append(s, Choice{Metric: e.New()})
		}
	}
	for _, e := range Registry.All() {
		if m := e.New(); !slices.Contains(Standard, e.Name) && !m.Describe().OnRequest {
			s = append(s, Choice{Metric: m, Optional: true})
		}
	}
	return s
}

// Check returns an error for a choice without a metric, or with one that has no measures.
func (s Selection) Check() error {
	for i, c := range s {
		if c.first() == "" {
			return fmt.Errorf("metrics: choice %d has no metric, or one without measures; take it from metrics.Select", i)
		}
	}
	return nil
}

// first is the name of the metric's first measure, "" where there is none.
func (c Choice) first() string {
	if c.Metric == nil {
		return ""
	}
	if m := c.Metric.Describe().Measures; len(m) > 0 {
		return m[0].Name
	}
	return ""
}

// UnknownError says that no metric has a name, or matches a glob.
type UnknownError struct{ Name string }

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("metrics: unknown metric %q; `tessera list metrics` shows all", e.Name)
}

// Select returns the metrics of these names in their order. A name is that of a measure ("mse_clipped"), that of a metric
// with all of its measures ("svm"), or a glob over measures ("max_approx*"); what a glob finds is optional. The error is
// [*UnknownError].
func Select(names ...string) (Selection, error) {
	var s Selection
	for _, name := range names {
		found := false
		for _, e := range Registry.All() {
			m := e.New()
			for _, measure := range m.Describe().Measures {
				matched, _ := path.Match(name, measure.Name) // a malformed glob matches nothing
				if matched || name == e.Name {
					s.add(m, measure.Name, name != measure.Name && name != e.Name)
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

// Names lists what can be selected: the measures, and the metrics that have another name, sorted.
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

// add chooses one measure; those of one metric are computed together.
func (s *Selection) add(m Metric, measure string, optional bool) {
	i := slices.IndexFunc(*s, func(c Choice) bool { return c.first() == Choice{Metric: m}.first() })
	if i < 0 {
		*s = append(*s, Choice{Metric: m, Only: []string{measure}, Optional: optional})
		return
	}
	c := &(*s)[i]
	c.Optional = c.Optional && optional
	if c.Only != nil && !slices.Contains(c.Only, measure) {
		c.Only = append(c.Only, measure)
	}
}

// Add returns the selection with the choices of another one that it does not hold yet.
func (s Selection) Add(others Selection) Selection {
	all := slices.Clone(s)
	for _, c := range others {
		for _, name := range c.names() {
			all.add(c.Metric, name, c.Optional)
		}
	}
	return all
}

// names are the measures that are chosen, in the metric's order.
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

// Set gives a setting to every chosen metric that has it, by its key, and shows it in the result. It is an error where
// none has it, or where the value is of another type.
func (s Selection) Set(key string, value any) error {
	found := false
	for i := range s {
		all := Settings(s[i].Metric)
		at := slices.IndexFunc(all, func(one Setting) bool { return one.Key == key })
		if at < 0 {
			continue
		}
		field, v := all[at].field, reflect.ValueOf(value)
		if !v.IsValid() || v.Kind() != field.Kind() {
			return fmt.Errorf("metrics: %s: got %T, want %s", key, value, field.Type())
		}
		field.Set(v.Convert(field.Type()))
		s[i].given = append(s[i].given, given{key: key, value: value})
		found = true
	}
	if !found {
		return fmt.Errorf("metrics: none of the chosen metrics has a setting %q", key)
	}
	return nil
}

// Setting is one setting of a metric.
type Setting struct {
	Key   string
	Want  string // the values that are valid, "" where all are
	Doc   string
	Value any // that it has now

	field reflect.Value
}

// Settings lists the settings of a metric: the fields of its struct that are tagged `toml`.
func Settings(m Metric) []Setting {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	var all []Setting
	for _, f := range reflect.VisibleFields(v.Elem().Type()) {
		if key := f.Tag.Get("toml"); key != "" && f.IsExported() {
			field := v.Elem().FieldByIndex(f.Index)
			all = append(all, Setting{Key: key, Want: f.Tag.Get("want"), Doc: f.Tag.Get("doc"), Value: field.Interface(), field: field})
		}
	}
	return all
}

// Of picks from an earlier result what is selected, in the order of the selection. ok is false where it lacks some value:
// then there is nothing for it but to measure again.
func (s Selection) Of(r *Result) (picked *Result, ok bool) {
	if s == nil {
		s = Default()
	}
	picked = &Result{Model: r.Model, Dataset: r.Dataset, Split: r.Split, Images: r.Images, Vectors: r.Vectors}
	for _, c := range s {
		for _, name := range c.names() {
			found := false
			for _, v := range r.Values {
				if v.Name == name || strings.HasSuffix(v.Name, "."+name) {
					v.optional = c.Optional
					picked.Values = append(picked.Values, v)
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

// MeasureOf returns what is known of a value by its name; "class.accuracy" is the accuracy of the head "class".
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
