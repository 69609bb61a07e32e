package config

import (
	"math"
	"slices"
	"strconv"

	"tessera/part"
	"tessera/part/table"
)

// spread is a range of values with logarithmic or linear spacing, including both ends.
type spread struct {
	From  float64 `toml:"from" required:"true" doc:"the first value"`
	To    float64 `toml:"to" required:"true" doc:"the last value"`
	Count int     `toml:"count" want:"in [2,1000]" required:"true" doc:"number of values"`
	Scale string  `toml:"scale" oneof:"log linear" doc:"spacing of the values, logarithmic or linear"`
}

// Defaults sets a logarithmic spacing.
func (s *spread) Defaults() { s.Scale = "log" }

// Check returns an error for a logarithmic range that includes 0.
func (s *spread) Check() error {
	for _, end := range []struct {
		key   string
		value float64
	}{{"from", s.From}, {"to", s.To}} {
		if math.IsInf(end.value, 0) {
			return part.KeyError{Key: end.key, Problem: "got an infinity, want a number"}
		}
		if s.Scale == "log" && end.value <= 0 {
			return part.KeyErrorf(end.key, `got %v, want > 0, or scale = "linear"`, end.value)
		}
	}
	return nil
}

// isSpread reports whether a table is a range and not a table of keys, such as the keys from and to of a schedule: it has single values
// for at least two of a range's keys, and no kind.
func isSpread(n *table.Node) bool {
	if !n.IsTable() || n.Child("kind") != nil {
		return false
	}
	given := n.Only(func(key string) bool {
		c := n.Child(key)
		return slices.Contains(table.Keys(&spread{}, ""), key) && !c.IsTable() && !c.IsArray()
	})
	return len(given.Keys) >= 2
}

// spreadOut returns the distinct values of a range, rounded to six digits, or to integers if both ends are integers.
func spreadOut(d *table.Decoder, n *table.Node, part string) []*table.Node {
	s := &spread{}
	before := len(d.Found)
	if d.Decode(n, s, part); len(d.Found) > before {
		return nil
	}
	whole := integers(n)
	var values []*table.Node
	for i := range s.Count {
		var leaf any = s.value(i)
		if whole {
			leaf = int64(math.Round(s.value(i)))
		}
		if len(values) > 0 && values[len(values)-1].Leaf == leaf {
			continue
		}
		values = append(values, n.NewScalar(leaf))
	}
	return values
}

// value is the i-th value of the range.
func (s *spread) value(i int) float64 {
	switch i {
	case 0:
		return s.From
	case s.Count - 1:
		return s.To
	}
	t := float64(i) / float64(s.Count-1)
	v := s.From + t*(s.To-s.From)
	if s.Scale == "log" {
		v = s.From * math.Pow(s.To/s.From, t)
	}
	return rounded(v)
}

// rounded rounds to six digits.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // formatted text always parses
	return r
}

// integers reports whether both ends of a range are integers.
func integers(n *table.Node) bool {
	_, from := n.Child("from").Leaf.(int64)
	_, to := n.Child("to").Leaf.(int64)
	return from && to
}
