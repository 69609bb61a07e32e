package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// sweepPlan is a read sweep before its trials are built.
type sweepPlan struct {
	name  string
	owner string // of what is written in its tables
	node  *node
	table sweepTable
	axes  []axis
}

// sweepOwner is the owner of what is written in a sweep's tables; no model has such a name in its header.
func sweepOwner(name string) string { return "[sweep." + keyText(name) + "]" }

// plan reads a sweep's table.
func (f *File) plan(name string) (*sweepPlan, []finding) {
	n := f.root.child("sweep").table[name]
	p := &sweepPlan{name: name, owner: sweepOwner(name), node: n}
	d := &decoder{origin: &origin{tables: map[string]*node{}, doubts: map[string]*doubt{}}}
	if n.table == nil {
		d.report(place{}, n.key, p.owner, fmt.Sprintf("got %s, want a table: [sweep.%s]", describe(n), keyText(name)), "")
	} else {
		d.table(n, reflect.ValueOf(&p.table).Elem(), place{})
		p.table.Model = f.known(d, n, p.table.Model)
		p.readAxes(d)
	}
	for i := range d.found {
		d.found[i].sweep = name
	}
	return p, d.found
}

// known reports models that the file does not have, or that none is given, and returns the others.
func (f *File) known(d *decoder, n *node, models bases) bases {
	given := n.child("model")
	if given == nil && !d.doubt(place{}).about(func(k field) bool { return k.key == "model" }) {
		d.report(place{}, n.at, n.owner, `missing key "model"`, "want the name of a model, or a list of names")
	}
	var known bases
	for i, name := range models {
		at := given
		if given.array {
			at = given.items[i]
		}
		if !slices.Contains(f.Names(), name) {
			d.report(place{}, at.at, at.owner, fmt.Sprintf("model: unknown model %q", name), suggest(name, f.Names()))
			continue
		}
		known = append(known, name)
	}
	return known
}

// size is the number of trials.
func (p *sweepPlan) size() int {
	n := len(p.table.Model)
	for _, a := range p.axes {
		if n *= len(a.values); n > mostTrials {
			return n
		}
	}
	return n
}

func (p *sweepPlan) tooMany() finding {
	return finding{at: p.node.key, owner: p.owner, sweep: p.name, problem: fmt.Sprintf("gives more than %d trials", mostTrials)}
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
			values = append(values, a.values[choice[i]].plain())
		}
	}
	return values
}

// override takes the keys that are set otherwise out.
func (p *sweepPlan) override(sets []Set) {
	p.axes = slices.DeleteFunc(p.axes, func(a axis) bool {
		return slices.ContainsFunc(sets, func(s Set) bool {
			return strings.Join(s.path(), ".") == a.key || s.passes > 0 && (a.key == epochsKey || a.key == iterationsKey)
		})
	})
}
