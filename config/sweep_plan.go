package config

import (
	"fmt"
	"slices"

	"tessera/table"
)

// sweepPlan is a read sweep before its trials are built.
type sweepPlan struct {
	name  string
	node  *table.Node
	table sweepTable
	axes  []axis
}

// subject names the sweep in messages.
func (p *sweepPlan) subject() string { return table.Subject("sweep", p.name) }

// plan reads a sweep's table.
func (f *File) plan(name string) (*sweepPlan, []table.Diagnostic) {
	p := &sweepPlan{name: name, node: f.sweeps.Child(name)}
	d := &table.Decoder{Language: language, Subject: p.subject(), Path: []string{"sweep", name}}
	if p.node.IsTable() {
		d.Decode(p.node, &p.table, "")
		p.table.Model = f.known(d, p.node, p.table.Model)
		p.readAxes(d)
	} else {
		d.ReportKey("", p.node, fmt.Sprintf("got %s, want a table: [sweep.%s]", p.node.Describe(), table.KeyText(name)), "")
	}
	return p, d.Found
}

// known reports models that the file does not have, or that none is given, and returns the others.
func (f *File) known(d *table.Decoder, n *table.Node, models bases) bases {
	given := n.Child("model")
	if given == nil && !d.Origin.Doubt("").About("model") {
		d.Report("", n, `missing key "model"`, "want the name of a model, or a list of names")
	}
	var known bases
	for i, name := range models {
		at := given
		if given.IsArray() {
			at = given.Items[i]
		}
		if f.models.Child(name) == nil {
			d.Report("", at, fmt.Sprintf("model: unknown model %q", name), table.Suggest(name, f.Names()))
			continue
		}
		known = append(known, name)
	}
	return known
}

// tooMany reports a sweep of more trials than anyone wants.
func (p *sweepPlan) tooMany() []table.Diagnostic {
	n := len(p.table.Model)
	for _, a := range p.axes {
		n = min(n*len(a.values), mostTrials+1) // which are never 0
	}
	if n <= mostTrials {
		return nil
	}
	return []table.Diagnostic{table.Diagnostic{At: p.node.Key, Subject: p.subject(), Problem: fmt.Sprintf("gives more than %d trials", mostTrials)}.In(p.node)}
}

// choices yields every combination: the place of the chosen value on each axis. The slice is used again.
func (p *sweepPlan) choices() func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		choice := make([]int, len(p.axes))
		for {
			if !yield(choice) {
				return
			}
			i := len(choice) - 1
			for ; i >= 0; i-- {
				if choice[i]++; choice[i] < len(p.axes[i].values) {
					break
				}
				choice[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// singly yields the combination of all first values, and those that differ from it in one value.
func (p *sweepPlan) singly() func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		choice := make([]int, len(p.axes))
		if !yield(choice) {
			return
		}
		for i, a := range p.axes {
			for choice[i] = 1; choice[i] < len(a.values); choice[i]++ {
				if !yield(choice) {
					return
				}
			}
			choice[i] = 0
		}
	}
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

// override takes the keys that are set otherwise out.
func (p *sweepPlan) override(sets []Set) {
	p.axes = slices.DeleteFunc(p.axes, func(a axis) bool {
		return slices.ContainsFunc(sets, func(s Set) bool { return s.sets(a.key) })
	})
}
