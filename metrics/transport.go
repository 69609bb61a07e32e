package metrics

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// choiceJSON is a [Choice] for another process: the metric by its name.
type choiceJSON struct {
	Metric   string         `json:"metric"`
	Only     []string       `json:"only,omitempty"`
	Optional bool           `json:"optional,omitempty"`
	Settings map[string]any `json:"settings,omitempty"` // that were given
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
		all[i] = choiceJSON{Metric: name, Only: c.Only, Optional: c.Optional}
		for _, g := range c.given {
			if all[i].Settings == nil {
				all[i].Settings = map[string]any{}
			}
			all[i].Settings[g.key] = g.value
		}
	}
	return json.Marshal(all)
}

// registered is the name under which the metric is registered, "" for none.
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
		c := Selection{{Metric: e.New(), Only: one.Only, Optional: one.Optional}}
		for _, setting := range Settings(c[0].Metric) {
			value, given := one.Settings[setting.Key]
			if !given {
				continue
			}
			if number, ok := value.(float64); ok && setting.field.CanInt() {
				value = reflect.ValueOf(int64(number)).Convert(setting.field.Type()).Interface()
			}
			if err := c.Set(setting.Key, value); err != nil {
				return err
			}
		}
		*s = append(*s, c...)
	}
	return nil
}
