package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"tessera/config"
	"tessera/data"
	"tessera/train"
)

// Frozen is a sweep as data: every trial with every default in place. Other processes and machines declare the same trials
// from it, without the file and the flags that the sweep was declared by.
type Frozen struct {
	Sweep   string             `json:"sweep"`
	Keys    []string           `json:"keys"`    // that vary
	Split   data.Split         `json:"split"`   // what the trials are measured on
	Changes []string           `json:"changes"` // flags that changed the declaration
	Select  []config.Criterion `json:"select,omitempty"`
	Trials  []FrozenTrial      `json:"trials"` // in the order of the sweep
}

// FrozenTrial is one trial of a [Frozen] sweep.
type FrozenTrial struct {
	ID       string `json:"trial"`    // [Trial.ID]: the hash of the model and its data
	Values   values `json:"values"`   // of the sweep's keys, null where a key is not of this model
	Declared string `json:"declared"` // the model, as [config.Fill] writes it
}

// values are JSON values that keep integers apart from other numbers: tables print them differently.
type values []any

// MarshalJSON implements [json.Marshaler]: the number 1e6 is not written as an integer.
func (v values) MarshalJSON() ([]byte, error) {
	all := append([]any{}, v...)
	for i, one := range all {
		switch f, ok := one.(float64); {
		case !ok:
		case math.IsInf(f, 0): // which JSON cannot say
			all[i] = text(f)
		case f == math.Trunc(f):
			all[i] = json.RawMessage(strconv.FormatFloat(f, 'e', -1, 64))
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *values) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var read []any
	if err := d.Decode(&read); err != nil {
		return err
	}
	for i := range read {
		read[i] = numbered(read[i])
	}
	*v = read
	return nil
}

// numbered replaces the numbers in a JSON value by int64 or float64.
func numbered(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range: infinite
		return f
	case []any:
		for i := range v {
			v[i] = numbered(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbered(v[key])
		}
	}
	return v
}

// Freeze returns the sweep as data.
func (s *Sweep) Freeze() *Frozen {
	f := &Frozen{Sweep: s.Name, Keys: append([]string{}, s.Keys...), Split: s.split, Changes: append([]string{}, s.changes...), Select: s.criteria}
	for _, t := range s.Trials {
		f.Trials = append(f.Trials, FrozenTrial{ID: t.ID, Values: append(values{}, t.Values...), Declared: string(config.Fill(t.Model))})
	}
	return f
}

// Declare returns the declaration of some trials of a frozen sweep; without indices, of all. An index outside of the trials, and
// a model that this version of the program refuses, are errors.
func (f *Frozen) Declare(indices ...int) (*config.Sweep, error) {
	if len(indices) == 0 {
		for i := range f.Trials {
			indices = append(indices, i)
		}
	}
	s := &config.Sweep{Name: f.Sweep, Keys: f.Keys, Split: f.Split, Select: f.Select, Changes: f.Changes}
	for _, i := range indices {
		if i < 0 || i >= len(f.Trials) {
			return nil, fmt.Errorf("sweep %q: no trial has the index %d; want 0 to %d", f.Sweep, i, len(f.Trials)-1)
		}
		t := f.Trials[i]
		if len(t.Values) != len(f.Keys) {
			return nil, fmt.Errorf("sweep %q: trial %s has %d values, want %d", f.Sweep, t.ID, len(t.Values), len(f.Keys))
		}
		m, err := train.Declared("trial "+t.ID, []byte(t.Declared))
		if err != nil {
			return nil, err
		}
		s.Trials = append(s.Trials, config.Trial{Model: m, Values: t.Values})
	}
	return s, nil
}
