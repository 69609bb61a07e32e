package config

import (
	"fmt"
	"slices"

	"tessera/table"
)

// sweepPlan is a read sweep before its trials are built.
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

// known returns the models that are named: one, or a list, each once and of the file.
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
	for _, at := range list {
		name, ok := at.Text()
		switch {
		case !ok:
			d.Report("", given, fmt.Sprintf("model: got %s, want the name of a model", at.Describe()), "")
		case slices.Contains(models, name):
			d.Report("", given, fmt.Sprintf("model: %q is given twice", name), "")
		case f.models.Child(name) == nil:
			d.Report("", at, fmt.Sprintf("model: unknown model %q", name), f.suggest(name, name))
		default:
			models = append(models, name)
		}
	}
	return models
}

// size is the number of settings of one model, mostTrials + 1 where they are more.
func (p *sweepPlan) size() int {
	n := 1
	for _, a := range p.axes {
		n = min(n*len(a.values), mostTrials+1) // which are never 0
	}
	return n
}

// tooMany reports a sweep of more trials than anyone wants.
func (p *sweepPlan) tooMany() []table.Diagnostic {
	if len(p.models)*p.size() <= mostTrials {
		return nil
	}
	return []table.Diagnostic{table.Diagnostic{At: p.node.Key, Subject: p.subject(), Problem: fmt.Sprintf("gives more than %d trials", mostTrials)}.In(p.node)}
}

// choice is the n-th combination: the place of the chosen value on each axis, the last axis varying fastest.
func (p *sweepPlan) choice(n int) []int {
	choice := make([]int, len(p.axes))
	for i, a := range slices.Backward(p.axes) {
		choice[i] = n % len(a.values)
		n /= len(a.values)
	}
	return choice
}

// singly lists the combination of all first values, and those that differ from it in one value.
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

// override takes the keys that are set otherwise out.
func (p *sweepPlan) override(sets []Set) {
	p.axes = slices.DeleteFunc(p.axes, func(a axis) bool {
		return slices.ContainsFunc(sets, func(s Set) bool { return s.sets(a.key) })
	})
}
