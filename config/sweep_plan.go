package config

import (
	"fmt"
	"slices"

	"tessera/part/table"
)

// sweepPlan is a parsed sweep before its trials are built.
type sweepPlan struct {
	name   string
	node   *table.Node
	table  sweepTable
	models []string
	common axes            // of all models
	own    map[string]axes // of one model; they replace common keys
	seeds  axes            // which vary fastest

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
		p.readSeeds(d)
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

// of returns the axes of a model.
func (p *sweepPlan) of(model string) axes {
	own := p.own[model]
	return slices.Concat(p.common.without(own.has), own, p.seeds)
}

// keys lists the swept keys without the seeds: those that have several values for a model.
func (p *sweepPlan) keys() (keys []string) {
	add := func(list axes) {
		for _, a := range list {
			for _, c := range a {
				if c.several() && !slices.Contains(keys, c.key) {
					keys = append(keys, c.key)
				}
			}
		}
	}
	add(p.common)
	for _, model := range p.models {
		add(p.own[model])
	}
	return keys
}

// tooMany reports a sweep with more than mostTrials trials.
func (p *sweepPlan) tooMany() []table.Diagnostic {
	trials := 0
	for _, model := range p.models {
		trials += p.of(model).size()
	}
	if trials <= mostTrials {
		return nil
	}
	return []table.Diagnostic{table.Diagnostic{At: p.node.Key, Subject: p.subject(), Problem: fmt.Sprintf("gives more than %d trials", mostTrials)}.In(p.node)}
}

// override removes the keys that --set arguments set, and takes the seeds of [Seeds].
func (p *sweepPlan) override(sets []Set) {
	set := func(key string) bool { return slices.ContainsFunc(sets, func(s Set) bool { return s.sets(key) }) }
	p.common, p.seeds = p.common.without(set), p.seeds.without(set)
	for model, own := range p.own {
		p.own[model] = own.without(set)
	}
	for _, s := range sets {
		if s.seeds != "" {
			p.reseed(s)
		}
	}
}

// concern returns the --set arguments for each model: all but those whose key the sweep sets for other models only. It is
// asked before [sweepPlan.override].
func (p *sweepPlan) concern(sets []Set) map[string][]Set {
	all := map[string][]Set{}
	for _, model := range p.models {
		for _, s := range sets {
			elsewhere := false
			for _, own := range p.own {
				elsewhere = elsewhere || own.has(s.key())
			}
			if s.passes > 0 || !elsewhere || p.common.has(s.key()) || p.own[model].has(s.key()) {
				all[model] = append(all[model], s)
			}
		}
	}
	return all
}

// readSeeds reads the seeds.
func (p *sweepPlan) readSeeds(d *table.Decoder) {
	seeds := p.node.Child("seeds")
	if seeds == nil || d.Origin.Doubt("").About("seeds") {
		return
	}
	if len(seeds.Items) == 0 {
		d.Report("", seeds, "seeds: got an empty list, want at least one seed", "")
		return
	}
	refuseRepeated(d, "", "seeds", seeds.Items)
	p.seeds = axes{{{key: seedKey, names: []string{"train", "seed"}, at: []table.Span{seeds.Key, seeds.Key}, values: seeds.Items}}}
}
