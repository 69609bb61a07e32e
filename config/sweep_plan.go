package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/part"
	"tessera/table"
)

// sweepPlan is a parsed sweep before its trials are built.
type sweepPlan struct {
	name   string
	node   *table.Node
	table  sweepTable
	models []string
	axes   []axis

	criteria []Criterion
}

// subject names the sweep in messages.
func (p *sweepPlan) subject() string { return table.Subject("sweep", p.name) }

// plan reads a sweep's table.
func (f *File) plan(name string) (*sweepPlan, []table.Diagnostic) {
	p := &sweepPlan{name: name, node: f.sweeps.Child(name)}
	d := &table.Decoder{Language: language, Subject: p.subject(), Path: []string{"sweep", name}}
	if p.node.IsTable() {
		d.Decode(p.node, &p.table, "")
		p.models = f.known(d, p.node, p.table.Model)
		p.readAxes(d)
		p.readSelect(d)
	} else {
		d.ReportKey("", p.node, fmt.Sprintf("got %s, want a table: [sweep.%s]", p.node.Describe(), table.KeyText(name)), "")
	}
	return p, d.Found
}

// known returns the named models, one or a list; it reports unknown and repeated names.
func (f *File) known(d *table.Decoder, n, given *table.Node) (models []string) {
	list := []*table.Node{given}
	switch {
	case given == nil && d.Origin.Doubt("").About("model"):
		return nil
	case given == nil:
		d.Report("", n, `missing key "model"`, "want the name of a model, or a list of names")
		return nil
	case given.IsArray():
		list = given.Items
	}
	if len(list) == 0 {
		d.Report("", given, "model: got an empty list, want at least one model", "")
	}
	seen := map[string]bool{}
	for _, at := range list {
		name, ok := at.Text()
		switch {
		case !ok:
			d.Report("", given, fmt.Sprintf("model: got %s, want the name of a model", at.Describe()), "")
		case seen[name]:
			d.Report("", given, fmt.Sprintf("model: %q is given twice", name), "")
		case f.owner(name) == nil:
			d.Report("", at, fmt.Sprintf("model: unknown model %q", name), f.suggest(name, name))
		default:
			models, seen[name] = append(models, name), true
		}
	}
	return models
}

// size is the number of settings of one model, at most mostTrials + 1.
func (p *sweepPlan) size() int {
	n := 1
	for _, a := range p.axes {
		n = min(n*len(a.values), mostTrials+1) // the number is never 0
	}
	return n
}

// tooMany reports a sweep with more than mostTrials trials.
func (p *sweepPlan) tooMany() []table.Diagnostic {
	if len(p.models)*p.size() <= mostTrials {
		return nil
	}
	return []table.Diagnostic{table.Diagnostic{At: p.node.Key, Subject: p.subject(), Problem: fmt.Sprintf("gives more than %d trials", mostTrials)}.In(p.node)}
}

// choice is the n-th combination: the index of the chosen value on each axis, the last axis varying fastest.
func (p *sweepPlan) choice(n int) []int {
	choice := make([]int, len(p.axes))
	for i, a := range slices.Backward(p.axes) {
		choice[i] = n % len(a.values)
		n /= len(a.values)
	}
	return choice
}

// singly lists the combination of all first values and the combinations that differ from it in one value.
func (p *sweepPlan) singly() [][]int {
	list := [][]int{make([]int, len(p.axes))}
	for i, a := range p.axes {
		for j := 1; j < len(a.values); j++ {
			choice := make([]int, len(p.axes))
			choice[i] = j
			list = append(list, choice)
		}
	}
	return list
}

// values are the chosen values of the keys.
func (p *sweepPlan) values(choice []int) []any {
	values := []any{}
	for i, a := range p.axes {
		if a.isKey() {
			values = append(values, a.values[choice[i]].Plain())
		}
	}
	return values
}

// override removes the keys that --set arguments set.
func (p *sweepPlan) override(sets []Set) {
	p.axes = slices.DeleteFunc(p.axes, func(a axis) bool {
		return slices.ContainsFunc(sets, func(s Set) bool { return s.sets(a.key) })
	})
}

// axis is one key of a sweep and the values that it takes.
type axis struct {
	key    string   // "loss.1.weight"
	names  []string // of the key
	at     []table.Span
	values []*table.Node
}

// seedKey is the key that a sweep's seeds set.
const seedKey = "train.seed"

// isKey reports whether the key is one of the sweep's keys: it has several values and is not the seed.
func (a axis) isKey() bool { return len(a.values) > 1 && a.key != seedKey }

// change is the change of the key to its i-th value, with the positions in the file.
func (a axis) change(i int) table.Change { return table.NewChange(a.names, a.at, a.values[i]) }

// readAxes reads the keys of `set`, then the seeds: these vary fastest.
func (p *sweepPlan) readAxes(d *table.Decoder) {
	if set := p.table.Set; set.IsTable() {
		p.readKeys(d, set, axis{})
	} else if set != nil {
		d.Report("", set, "set: want a table: [sweep.NAME.set]", "")
	}
	seeds := p.node.Child("seeds")
	if seeds == nil || d.Origin.Doubt("").About("seeds") {
		return
	}
	if len(seeds.Items) == 0 {
		d.Report("", seeds, "seeds: got an empty list, want at least one seed", "")
		return
	}
	refuseRepeated(d, "", "seeds", seeds.Items)
	p.axes = append(p.axes, axis{key: seedKey, names: []string{"train", "seed"}, at: []table.Span{seeds.Key, seeds.Key}, values: seeds.Items})
}

// readKeys reads the keys of a table and of the tables in it.
func (p *sweepPlan) readKeys(d *table.Decoder, n *table.Node, before axis) {
	for _, k := range n.Keys {
		c := n.Child(k)
		a := axis{names: append(slices.Clone(before.names), k), at: append(slices.Clone(before.at), c.Key)}
		a.key = strings.Join(a.names, ".")
		switch {
		case strings.Contains(k, "."):
			d.ReportKey("set", c, fmt.Sprintf("unknown key %q", k), "write the path without quotes")
			continue
		case a.key == seedKey:
			d.ReportKey("set", c, `the seed is set by the sweep's key "seeds"`, "write seeds = [1, 2, 3] above")
			continue
		case isSpread(c):
			a.values = spreadOut(d, c, "set."+a.key)
		case c.IsTable():
			p.readKeys(d, c, a)
			continue
		case c.IsArray():
			a.values = c.Items
			if len(c.Items) == 0 {
				d.Report("set", c, a.key+": got an empty list, want at least one value", "")
			}
			refuseRepeated(d, "set", a.key, c.Items)
		default:
			a.values = []*table.Node{c}
		}
		if len(a.values) > 0 {
			p.axes = append(p.axes, a)
		}
	}
}

// refuseRepeated reports repeated values of a list: their trials would be equal.
func refuseRepeated(d *table.Decoder, part, key string, list []*table.Node) {
	first := map[string]int{}
	for i, v := range list {
		text := v.String()
		if at, ok := first[text]; ok {
			d.Report(part, v, fmt.Sprintf("%s[%d]: %s is given before, as %s[%d]", key, i, v.Describe(), key, at), "leave it out")
		} else {
			first[text] = i
		}
	}
}

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

// isSpread reports whether a table is a range and not a table of keys: it has the key to, or at least two of a range's
// keys, and no kind.
func isSpread(n *table.Node) bool {
	known := func(key string) bool { return slices.Contains(table.Keys(&spread{}, ""), key) }
	return n.IsTable() && n.Child("kind") == nil && (n.Child("to") != nil || len(n.Only(known).Keys) >= 2)
}

// spreadOut returns the distinct values of a range, rounded to six digits, or to integers if both ends are integers.
func spreadOut(d *table.Decoder, n *table.Node, part string) []*table.Node {
	s := &spread{}
	before := len(d.Found)
	if d.Decode(n, s, part); len(d.Found) > before {
		return nil
	}
	_, whole := n.Child("from").Leaf.(int64)
	if whole {
		_, whole = n.Child("to").Leaf.(int64)
	}
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
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // formatted text always parses
	return rounded
}
