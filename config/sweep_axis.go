package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/part"
)

// axis is one key of a sweep and the values that it takes.
type axis struct {
	key    string // "loss.1.weight"
	steps  []step
	values []*node
}

// step is one part of a key.
type step struct {
	name string
	at   span
}

// seedKey is the key that a sweep's seeds set.
const seedKey = "train.seed"

// isKey reports whether the key is one of the sweep's keys: it varies, and not as the seed.
func (a axis) isKey() bool { return len(a.values) > 1 && a.key != seedKey }

// change is the --set that gives the key its i-th value, with the places of the file.
func (a axis) change(i int) Set {
	value := *a.values[i]
	value.key = a.steps[len(a.steps)-1].at
	n := &value
	for i := len(a.steps) - 1; i >= 0; i-- {
		table := newTable()
		table.owner, table.path = n.owner, true
		if i > 0 {
			table.key, table.at = a.steps[i-1].at, a.steps[i-1].at
		}
		table.put(a.steps[i].name, n)
		n = table
	}
	return Set{source: value.at.src, root: n, at: value.at}
}

// path is the key that a --set argument sets.
func (s Set) path() []string {
	var path []string
	for n := s.root; n != nil && n.path && len(n.keys) == 1; n = n.table[n.keys[0]] {
		path = append(path, n.keys[0])
	}
	return path
}

// readAxes reads the keys of `set`, then the seeds: these vary fastest.
func (p *sweepPlan) readAxes(d *decoder) {
	if set := p.node.child("set"); set != nil && set.table != nil {
		p.readKeys(d, set, nil)
	}
	seeds := p.node.child("seeds")
	if seeds == nil || d.doubt(place{}).about(func(f field) bool { return f.key == "seeds" }) {
		return
	}
	if len(seeds.items) == 0 {
		d.report(place{}, seeds.at, seeds.owner, "seeds: got an empty list, want at least one seed", "")
		return
	}
	refuseRepeated(d, place{}, "seeds", seeds.items)
	p.axes = append(p.axes, axis{key: seedKey, steps: []step{{"train", seeds.key}, {"seed", seeds.key}}, values: seeds.items})
}

// readKeys reads the keys of a table, which may lead to other tables.
func (p *sweepPlan) readKeys(d *decoder, n *node, before []step) {
	for _, k := range n.keys {
		c := n.table[k]
		a := axis{steps: append(before[:len(before):len(before)], step{k, c.key})}
		names := make([]string, len(a.steps))
		for i, s := range a.steps {
			names[i] = s.name
		}
		a.key = strings.Join(names, ".")
		switch {
		case strings.Contains(k, "."):
			d.report(place{part: "set"}, c.key, c.owner, fmt.Sprintf("unknown key %q", k), "write the path without quotes")
			continue
		case a.key == seedKey:
			d.report(place{part: "set"}, c.key, c.owner, `the seed is set by the sweep's key "seeds"`, "write seeds = [1, 2, 3] above")
			continue
		case isSpread(c):
			a.values = spreadOut(d, c, "set."+a.key)
		case c.table != nil:
			p.readKeys(d, c, a.steps)
			continue
		case c.array:
			a.values = c.items
			if len(c.items) == 0 {
				d.report(place{part: "set"}, c.at, c.owner, a.key+": got an empty list, want at least one value", "")
			}
			refuseRepeated(d, place{part: "set"}, a.key, c.items)
		default:
			a.values = []*node{c}
		}
		if len(a.values) > 0 {
			p.axes = append(p.axes, a)
		}
	}
}

// refuseRepeated reports values that a list has before: their trials would be the same.
func refuseRepeated(d *decoder, p place, key string, list []*node) {
	for i, v := range list {
		same := func(w *node) bool { return reflect.DeepEqual(v.plain(), w.plain()) }
		if first := slices.IndexFunc(list, same); 0 <= first && first < i { // of nan there is none
			d.report(p, v.at, v.owner, fmt.Sprintf("%s[%d]: %s is given before, as %s[%d]", key, i, describe(v), key, first), "leave it out")
		}
	}
}

// spread is a range of values, evenly spaced in their logarithms or as they are, both ends included.
type spread struct {
	From  float64 `toml:"from" required:"true" doc:"the first value"`
	To    float64 `toml:"to" required:"true" doc:"the last value"`
	Count int     `toml:"count" want:"in [2,1000]" required:"true" doc:"how many values"`
	Scale string  `toml:"scale" oneof:"log linear" doc:"what is evenly spaced: the logarithms, or the values"`
}

func (s *spread) defaults() { s.Scale = "log" }

// Check refuses a logarithmic range that reaches zero.
func (s *spread) Check() error {
	for _, end := range []struct {
		key   string
		value float64
	}{{"from", s.From}, {"to", s.To}} {
		if math.IsInf(end.value, 0) {
			return part.KeyError{Key: end.key, Problem: "got an infinity, want a number"}
		}
		if s.Scale == "log" && end.value <= 0 {
			return part.KeyError{Key: end.key, Problem: fmt.Sprintf(`got %v, want > 0, or scale = "linear"`, end.value)}
		}
	}
	return nil
}

// isSpread tells a range from a table that leads to other keys: no key of a model is called from or to.
func isSpread(n *node) bool { return n.child("from") != nil || n.child("to") != nil }

// spreadOut returns the values of a range. They are rounded to six digits, and to whole numbers where both ends are
// written as such; what is rounded to the same value is one.
func spreadOut(d *decoder, n *node, part string) []*node {
	s := &spread{}
	before := len(d.found)
	at := place{part: part}
	d.table(n, reflect.ValueOf(s).Elem(), at)
	if len(d.found) == before {
		fields, _ := tableOf(reflect.ValueOf(s).Elem(), "")
		d.check(n, s, fields, at)
	}
	if len(d.found) > before {
		return nil
	}
	_, whole := n.child("from").leaf.(int64)
	if whole {
		_, whole = n.child("to").leaf.(int64)
	}
	var values []*node
	for i := range s.Count {
		var leaf any = s.value(i)
		if whole {
			leaf = int64(math.Round(s.value(i)))
		}
		if len(values) > 0 && values[len(values)-1].leaf == leaf {
			continue
		}
		values = append(values, &node{key: n.key, at: n.at, owner: n.owner, leaf: leaf})
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
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // its own text cannot fail
	return rounded
}
