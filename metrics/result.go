package metrics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config/part/table"
)

// Value is one measured number, or the reason why it is missing.
type Value struct {
	Name    string
	Number  float64
	Missing string // why the metric is not applicable; "" if Number is valid

	Constant float64 // the same metric of a constant prediction, the mean of the target or the most frequent class; 0 for none
	Worse    string  // places, with spaces between them, of values of a sample that are predicted worse than by their means

	optional bool // omitted from the output if missing: the metric was not selected by name
}

// Number returns a measured value.
func Number(v float64) Value { return Value{Number: v} }

// noImages is the reason why a metric of no images is not applicable.
const noImages = "there are no samples"

// NotApplicable returns a missing value; why is the reason.
func NotApplicable(why string) Value { return Value{Missing: why} }

// notKnown is the reason for a value that was null in JSON.
const notKnown = "not applicable"

// Values is a list of named numbers, in order of output.
type Values []Value

// Find returns the value with that name; ok is false if there is none.
func (v Values) Find(name string) (value Value, ok bool) {
	i := slices.IndexFunc(v, func(one Value) bool { return one.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return v[i], true
}

// Number returns the number with that name; ok is false if it was not measured or is not applicable.
func (v Values) Number(name string) (number float64, ok bool) {
	value, ok := v.Find(name)
	return value.Number, ok && value.Missing == ""
}

// OrNaN returns the number with that name, NaN if it was not measured or is not applicable.
func (v Values) OrNaN(name string) float64 {
	if number, ok := v.Number(name); ok {
		return number
	}
	return math.NaN()
}

// Set sets the number with that name, or appends it.
func (v *Values) Set(name string, number float64) {
	value := Value{Name: name, Number: number}
	if i := slices.IndexFunc(*v, func(one Value) bool { return one.Name == name }); i >= 0 {
		(*v)[i] = value
		return
	}
	*v = append(*v, value)
}

// Lead moves the values of the named measures to the front, in the order of the names.
func (v Values) Lead(names []string) {
	place := func(one Value) int {
		if i := slices.Index(names, one.Name[strings.LastIndex(one.Name, ".")+1:]); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(v, func(a, b Value) int { return place(a) - place(b) })
}

// Shown returns the values that are applicable or were selected by name.
func (v Values) Shown() Values {
	return slices.DeleteFunc(slices.Clone(v), func(one Value) bool { return !one.shown() })
}

func (v Value) shown() bool { return v.Missing == "" || !v.optional }

// MarshalJSON writes one object in the order of the values, null for those that are not applicable.
func (v Values) MarshalJSON() ([]byte, error) {
	var o object
	(&Result{Values: v}).Each(o.member)
	return o.bytes()
}

// UnmarshalJSON reads the output of MarshalJSON and keeps the order. It ignores values that are neither numbers nor null.
func (v *Values) UnmarshalJSON(text []byte) error {
	*v = Values{}
	return eachMember(text, func(name string, raw json.RawMessage) error {
		v.read(name, raw)
		return nil
	})
}

func (v *Values) read(name string, raw json.RawMessage) {
	one := Value{Name: name}
	if string(raw) == "null" {
		one.Missing = notKnown
	} else if json.Unmarshal(raw, &one.Number) != nil {
		return
	}
	*v = append(*v, one)
}

// Result contains the values of one model on one set of images. In JSON it is one object.
type Result struct {
	Model   string // set by the caller
	Dataset string // set by the caller
	Split   string // the measured split, as [data.Split] names it; set by the caller
	Images  int    // number of measured images
	Vectors bool   // the samples are vectors, not images
	Values
	Tables  []*Table // tables of the metrics that have any
	PostHoc string   // the procedures fitted to the heads after the training, which the values include; "" for none; set by the caller

	given []given // settings that the user has set
}

// Counted returns the noun for the measured samples: "images", or "samples" for vectors.
func (r *Result) Counted() string {
	if r.Vectors {
		return "samples"
	}
	return "images"
}

// given is a setting that the user has set. The output contains it before the first value of its metric.
type given struct {
	before string // name of the value that the setting precedes in the output
	key    string
	value  any
}

// Whole returns a copy of the result whose output also contains the missing values of metrics that were not selected by name,
// so that a reader can tell which values were measured.
func (r *Result) Whole() *Result {
	whole := *r
	whole.Values = slices.Clone(r.Values)
	for i := range whole.Values {
		whole.Values[i].optional = false
	}
	return &whole
}

// MarshalJSON writes one object: model, dataset, split and images, post_hoc if a procedure was fitted after the training, then
// the values in order, with the settings that the user has set, then the tables by name.
func (r *Result) MarshalJSON() ([]byte, error) {
	var o object
	o.member("model", r.Model)
	o.member("dataset", r.Dataset)
	if r.Split != "" {
		o.member("split", r.Split)
	}
	o.member("images", r.Images)
	if r.PostHoc != "" {
		o.member("post_hoc", r.PostHoc)
	}
	r.Each(o.member)
	for _, t := range r.Tables {
		o.member(t.Name, t)
	}
	return o.bytes()
}

// Each calls f for every entry of the output after model, dataset, split and images, in order: the values (a float64, or nil
// if not applicable), and each setting that the user has set (a string or a number) before the values of its metric.
func (r *Result) Each(f func(key string, value any)) {
	done := map[string]bool{}
	for _, one := range r.Values {
		for _, g := range r.given {
			if g.before == one.Name && !done[g.key] {
				done[g.key] = true
				f(g.key, g.value)
			}
		}
		switch {
		case one.Missing == "":
			f(one.Name, one.Number)
		case one.shown():
			f(one.Name, nil)
		}
	}
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *Result) UnmarshalJSON(text []byte) error {
	*r = Result{}
	known := map[string]any{"model": &r.Model, "dataset": &r.Dataset, "split": &r.Split, "images": &r.Images, "post_hoc": &r.PostHoc}
	settings := map[string]bool{}
	for _, e := range Registry.All() {
		for _, s := range table.Fields(e.New()) {
			settings[s.Key] = true
		}
	}
	return eachMember(text, func(name string, raw json.RawMessage) error {
		if to, ok := known[name]; ok {
			return json.Unmarshal(raw, to)
		}
		if settings[name] {
			r.given = append(r.given, given{key: name})
			return json.Unmarshal(raw, &r.given[len(r.given)-1].value)
		}
		if t := (&Table{}); json.Unmarshal(raw, t) == nil && t.Of != "" {
			t.Name = name
			r.Tables = append(r.Tables, t)
			return nil
		}
		r.Values.read(name, raw)
		return nil
	})
}

// object collects the members of a JSON object in order.
type object struct {
	members [][]byte
	err     error // the first error of writing a member
}

func (o *object) member(name string, value any) {
	text, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		o.err = cmp.Or(o.err, fmt.Errorf("metrics: %s: %w", name, err))
		return
	}
	o.members = append(o.members, text[1:len(text)-1]) // without its braces
}

func (o *object) bytes() ([]byte, error) {
	return slices.Concat([]byte("{"), bytes.Join(o.members, []byte(",")), []byte("}")), o.err
}

// eachMember calls f for the members of a JSON object, in order.
func eachMember(text []byte, f func(name string, raw json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("metrics: want a JSON object, got %.20q", text)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := f(name.(string), raw); err != nil {
			return err
		}
	}
	return nil
}
