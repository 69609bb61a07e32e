package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/internal/random"
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

// Check returns an error for a logarithmic range that contains 0.
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

// isSpread reports whether a table is a range. A range has single values for at least two keys of a range, and no kind.
// Other tables contain keys to set, such as the keys from and to of a schedule.
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

// spreadOut returns the distinct values of a range, rounded to six significant digits, or to integers if both ends are
// integers.
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

// value returns the i-th value of the range.
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

// rounded returns v rounded to six significant digits.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // cannot fail, because the text is a formatted number
	return r
}

// integers reports whether both ends of a range are integers.
func integers(n *table.Node) bool {
	_, from := n.Child("from").Leaf.(int64)
	_, to := n.Child("to").Leaf.(int64)
	return from && to
}

// axesTable contains the keys of [sweep.NAME] that define the axes. [sweep.NAME.for.MODEL] has the same keys, and seeds.
type axesTable struct {
	Set    *table.Node `toml:"set" doc:"swept keys, named as in --set; each has a value, a list of values or a range"`
	Zip    *table.Node `toml:"zip" doc:"paired keys: lists or ranges of the same length; the first values belong together, the second values, and so on"`
	Random *table.Node `toml:"random" doc:"randomly drawn settings: set, count, seed, sampling"`
}

// randomTable is [sweep.NAME.random].
type randomTable struct {
	Set      *table.Node `toml:"set" doc:"drawn keys; each has a range { from, to, scale } or a list of values"`
	Count    int         `toml:"count" want:"in [2,10000]" required:"true" doc:"number of settings"`
	Seed     uint64      `toml:"seed" doc:"seed of the draws"`
	Sampling string      `toml:"sampling" oneof:"independent latin_hypercube" doc:"independent draws, or a Latin hypercube: every key has one value in each of count equal parts of its range"`
}

// The values of the key sampling.
const (
	independent = "independent"
	latin       = "latin_hypercube"
)

// Defaults sets independent draws with seed 1.
func (t *randomTable) Defaults() { t.Seed, t.Sampling = 1, independent }

// interval is a range from which values are drawn.
type interval struct {
	From  float64 `toml:"from" required:"true" doc:"one end"`
	To    float64 `toml:"to" required:"true" doc:"the other end"`
	Scale string  `toml:"scale" oneof:"log linear" doc:"distribution of the values: uniform on a logarithmic or a linear scale"`
}

// Defaults sets a logarithmic scale.
func (s *interval) Defaults() { s.Scale = "log" }

// Check returns an error for a logarithmic range that contains 0.
func (s *interval) Check() error { return (&spread{From: s.From, To: s.To, Scale: s.Scale}).Check() }

// draw maps u in [0,1) to a value of the range, rounded to six significant digits, or to an integer if whole is true.
// In a linear range every integer is equally probable.
func (s *interval) draw(u float64, whole bool) any {
	switch {
	case whole && s.Scale == "linear":
		low, high := math.Min(s.From, s.To), math.Max(s.From, s.To)
		return int64(math.Min(high, low+math.Floor(u*(high-low+1))))
	case s.Scale == "linear":
		return rounded(s.From + u*(s.To-s.From))
	}
	v := s.From * math.Pow(s.To/s.From, u)
	if whole {
		return int64(math.Round(v))
	}
	return rounded(v)
}

// zip reads the keys of `zip`, which vary together.
func (r *axesReader) zip(n *table.Node) {
	columns := r.columns("zip", n, r.values)
	for _, c := range columns[min(1, len(columns)):] {
		if got, want := len(c.values), len(columns[0].values); got != want {
			r.Report(r.at("zip"), c.values[0], fmt.Sprintf("%s has %d values, but %s has %d", c.key, got, columns[0].key, want), "paired keys have equally many values")
			return
		}
	}
	switch {
	case n.IsTable() && len(columns) == 1:
		r.Report(r.at("zip"), columns[0].values[0], "only "+columns[0].key+": nothing is paired with it", "pair another key with it, or move it to set")
	case len(columns) > 1:
		r.add("zip", axis(columns).distinct())
	}
}

func (r *axesReader) random(n *table.Node) {
	if n == nil {
		return
	}
	t := &randomTable{}
	before := len(r.Found)
	if r.Decode(n, t, r.at("random")); len(r.Found) > before {
		return
	}
	if t.Set == nil {
		r.Report(r.at("random"), n, "no key is drawn", "write [sweep.NAME.random.set]")
		return
	}
	columns := r.columns("random.set", t.Set, func(part, key string, n *table.Node) []*table.Node { return r.drawn(t, part, key, n) })
	if len(columns) > 0 && len(r.Found) == before {
		r.add("random", axis(columns).distinct())
	}
}

// drawn draws the values of a key from its range or list.
func (r *axesReader) drawn(t *randomTable, part, key string, n *table.Node) []*table.Node {
	var s interval
	switch before := len(r.Found); {
	case n.IsTable():
		if r.Decode(n, &s, r.at(part)+"."+key); len(r.Found) > before {
			return nil
		}
	case !n.IsArray(), len(n.Items) == 0:
		r.Report(r.at(part), n, fmt.Sprintf("%s: got %s, want a range { from, to } or a list of values", key, n.Describe()), "a key with one value belongs to set")
		return nil
	}
	var values []*table.Node
	for _, u := range t.numbers(key) {
		if n.IsArray() {
			values = append(values, n.Items[int(u*float64(len(n.Items)))])
		} else {
			values = append(values, n.NewScalar(s.draw(u, integers(n))))
		}
	}
	return values
}

// numbers draws a number in [0,1) for each setting. The numbers of a key do not depend on other keys. Independent
// numbers do not depend on the count either, so a larger count keeps the settings and adds new ones. A Latin hypercube
// (M. D. McKay et al., Technometrics 21, 1979) divides [0,1) into count equal parts, draws one number in each, and
// shuffles the numbers.
func (t *randomTable) numbers(key string) []float64 {
	numbers := make([]float64, t.Count)
	stream := random.Stream(t.Seed, "sweep/"+key, 0)
	for i := range numbers {
		numbers[i] = stream.Float64()
	}
	if t.Sampling == latin {
		for i, part := range random.Stream(t.Seed, "sweep/"+key, 1).Perm(t.Count) {
			numbers[i] = (float64(part) + numbers[i]) / float64(t.Count)
		}
	}
	return numbers
}
