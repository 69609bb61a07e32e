package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/metrics"
)

// Sweep is one checked table [sweep.NAME]: the trials with its models, settings and seeds.
type Sweep struct {
	Name  string
	About string
	// Keys lists the keys with more than one value, spelled as in --set, without the seeds.
	Keys []string
	// Split selects the images on which the trials are measured.
	Split data.Split
	// Select lists the metrics by which settings are selected. It is nil if the sweep does not select settings.
	Select []Criterion
	// Changes lists the --set arguments and flags that changed the declaration, in their original spelling.
	Changes []string
	// Trials contains all combinations of models, values and seeds. The seeds vary fastest.
	Trials []Trial
	// Unfit lists the models, or the settings of models, without a trial for the number of epochs of [Passes].
	Unfit []Unfit
}

// Unfit is a model of a sweep whose declaration is valid, but not with the number of epochs or iterations of [Passes]: a
// phase that would begin after the end of the training, for example.
type Unfit struct {
	Model  string
	Values string // the values of the swept keys, as in "hook.prune.from=3", if other settings of the model have a trial; else ""
	Reason string // one line, without the model
}

// Trial is one model of a sweep, with the values of the swept keys.
type Trial struct {
	Model  *Model
	Values []any // values of the sweep's keys: string, int64, float64, bool, or []any and map[string]any of these; nil for a key that the model does not have
}

// mostTrials is the maximum number of trials of a sweep. A larger number is probably a typo.
const mostTrials = 10000

// sweepTable is the table [sweep.NAME]. [sweepPlan] reads the values of `model` and `set`.
type sweepTable struct {
	About  string      `toml:"about" doc:"one-line description"`
	Model  *table.Node `toml:"model" doc:"the model that is trained, or a list of models"`
	Seeds  []uint64    `toml:"seeds" doc:"one trial per seed; the model's seed by default"`
	BySeed *table.Node `toml:"by_seed" doc:"keys that change with the seed: for each a list with one value for each of seeds, as if the data set of every seed were another one"`
	Split  string      `toml:"split" oneof:"train validation test" doc:"images that the trials are measured on; by default validation if all trials hold images out, else test"`
	Select *table.Node `toml:"select" doc:"metrics that select settings on the validation images: \"mse\" takes the smallest mean over the seeds, \"-accuracy\" the largest, a list the Pareto front; only the selected settings are measured on the test images"`
	axesTable
	For *table.Node `toml:"for" doc:"keys of single models: for.MODEL.set, for.MODEL.zip, for.MODEL.random, for.MODEL.seeds; they replace the sweep's keys of the same name"`
}

// forTable is [sweep.NAME.for.MODEL].
type forTable struct {
	axesTable
	Seeds []uint64 `toml:"seeds" doc:"seeds of this model, in place of those of the sweep"`
}

// UnknownSweep is the error for the name of a sweep that does not exist.
type UnknownSweep struct {
	File  string
	Name  string
	Names []string // names of all sweeps of the file
}

func (e *UnknownSweep) Error() string {
	text := fmt.Sprintf("unknown sweep %q in %s", e.Name, e.File)
	if len(e.Names) == 0 {
		return text + ", which declares none"
	}
	return text + ": " + table.SuggestOf(e.Name, e.Names, "`tessera list sweeps`")
}

// Sweep returns one checked sweep. The --set arguments change every trial and replace the sweep's values of the same
// key. The error is [*table.Diagnostics] for errors in the sweep, its models, a trial or a --set argument, and
// [*UnknownSweep] if there is no such sweep. A model that only the number of epochs of [Passes] makes invalid is in
// [Sweep.Unfit]; it is an error if no other model is left.
func (f *File) Sweep(name string, sets ...Set) (*Sweep, error) {
	if f.empty() {
		return nil, &UnknownSweep{Name: name}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if owner := f.sweepOwner(name); owner != nil && owner != f {
		f.invalidate()
		return owner.Sweep(name, sets...)
	} else if owner == nil {
		return nil, &UnknownSweep{File: f.sources(), Name: name, Names: f.SweepNames()}
	}
	plan, found := f.plan(name)
	for _, base := range plan.models {
		found = append(found, f.diagnose(base)...)
	}
	found = append(found, f.twice[plan.subject()]...)
	concern := plan.concern(sets)
	found = append(found, plan.override(sets)...)
	found = append(found, plan.tooMany()...)
	s := &Sweep{Name: name, About: plan.table.About, Keys: plan.keys(), Select: plan.criteria}
	for _, set := range sets {
		s.Changes = append(s.Changes, set.String())
	}
	var unfit []table.Diagnostic
	for _, base := range plan.models {
		axes := plan.of(base)
		for i := 0; i < axes.size() && len(found) == 0; i++ {
			choice := axes.choice(i)
			m, some := f.trial(plan, base, axes.changes(choice), concern[base])
			if len(some) > 0 && f.fitsOtherwise(plan, base, axes.changes(choice), concern[base]) {
				unfit = append(unfit, some...)
				s.leaveOut(base, axes.values(s.Keys, choice), some[0])
				continue
			}
			if len(some) == 0 {
				m.settings = keysOfModel(m)
			}
			s.Trials, found = append(s.Trials, Trial{Model: m, Values: axes.values(s.Keys, choice)}), some
		}
	}
	s.joinUnfit()
	if len(s.Trials) == 0 {
		found = append(found, unfit...)
	}
	if len(found) == 0 {
		s.Split, found = plan.split(s.Trials)
	}
	if err := table.Report(found, sourcesOf(sets)...); err != nil {
		return nil, err
	}
	return s, nil
}

// fitsOtherwise reports whether a model is valid without the change by [Passes], and with its other changes.
func (f *File) fitsOtherwise(p *sweepPlan, base string, changes []table.Change, sets []Set) bool {
	others := slices.DeleteFunc(slices.Clone(sets), func(s Set) bool { return s.passes > 0 })
	if len(others) == len(sets) {
		return false
	}
	_, found := f.trial(p, base, changes, others)
	return len(found) == 0
}

// leaveOut adds a setting of a model to [Sweep.Unfit], once for all seeds.
func (s *Sweep) leaveOut(model string, values []any, d table.Diagnostic) {
	u := Unfit{Model: model, Reason: d.Problem}
	if d.Part != "" {
		u.Reason = d.Part + ": " + u.Reason
	}
	var texts []string
	for i, v := range values {
		if v != nil {
			texts = append(texts, fmt.Sprintf("%s=%v", s.Keys[i], v))
		}
	}
	if u.Values = strings.Join(texts, " "); !slices.Contains(s.Unfit, u) {
		s.Unfit = append(s.Unfit, u)
	}
}

// joinUnfit names a model without any trial once for each reason, without values.
func (s *Sweep) joinUnfit() {
	var joined []Unfit
	for _, u := range s.Unfit {
		if !slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.Model != nil && t.Model.Name == u.Model }) {
			u.Values = ""
		}
		if !slices.Contains(joined, u) {
			joined = append(joined, u)
		}
	}
	s.Unfit = joined
}

// checkSweep checks a sweep of the file: its table, and each value combined with the first values of the other keys.
// [File.Sweep] checks all combinations.
func (f *File) checkSweep(name string) []table.Diagnostic {
	plan, found := f.plan(name)
	found = append(found, misnamed("sweep", "sweeps", name, plan.node)...)
	if many := plan.tooMany(); many != nil {
		return append(found, many...)
	}
	var trials []Trial
	for _, base := range plan.models {
		if len(f.diagnose(base)) > 0 {
			continue // errors of the model are reported for the model
		}
		axes := plan.of(base)
		changes := lists.Map(axes.singly(), axes.changes)
		merged := lists.Map(changes, func(changes []table.Change) merged { return f.merge(base, changes) })
		for i, b := range f.decodeAll(merged) {
			if found = append(found, f.ofSweep(plan, base, changes[i], b.found)...); len(b.found) == 0 {
				trials = append(trials, Trial{Model: b.model})
			}
		}
	}
	if len(found) == 0 {
		_, found = plan.split(trials)
	}
	return found
}

// trial builds one model of a sweep. It attributes an error that the changes cause to the first change that causes one.
func (f *File) trial(p *sweepPlan, base string, changes []table.Change, sets []Set) (*Model, []table.Diagnostic) {
	changes = f.suited(base, changes, sets)
	m, found := f.build(base, changes)
	return m, f.ofSweep(p, base, changes, found)
}

// ofSweep completes the errors of a trial.
func (f *File) ofSweep(p *sweepPlan, base string, changes []table.Change, found []table.Diagnostic) []table.Diagnostic {
	found = f.attribute(base, changes, p.subject(), found)
	for i := range found {
		found[i].Scope = p.subject()
	}
	return found
}

// Set is one change of a model, such as a --set PATH=VALUE.
type Set struct {
	table.Change
	passes int    // argument of Passes, otherwise 0
	seeds  string // argument of Seeds, otherwise ""
}

// ParseSet reads PATH=VALUE; see [table.ParseChange].
func ParseSet(argument string) (Set, error) {
	change, err := table.ParseChange(argument)
	return Set{Change: change}, err
}

// sourcesOf returns the texts of the --set arguments, for messages. Changes by Passes have no text.
func sourcesOf(sets []Set) (sources []*table.Source) {
	for _, s := range sets {
		if s.Source != nil {
			sources = append(sources, s.Source)
		}
	}
	return sources
}

// Passes returns a change that sets the length of the training. It sets n epochs for an auto-encoder and n iterations
// for an iterative baseline. It does not change other models.
func Passes(n int) Set { return Set{passes: n} }

// The keys that Passes sets.
const (
	epochsKey     = "train.epochs"
	iterationsKey = "iterations"
)

// suited appends the --set arguments to the changes of a trial. It replaces a change by Passes by the key of the
// model's kind.
func (f *File) suited(model string, changes []table.Change, sets []Set) []table.Change {
	for _, s := range sets {
		if s.passes == 0 && s.seeds == "" {
			changes = append(changes, s.Change)
		}
	}
	for _, s := range sets {
		if s.passes == 0 {
			continue
		}
		m, _ := f.build(model, changes)
		key := epochsKey
		if m != nil {
			key = m.Training().Key
		}
		if key != "" {
			change, _ := table.ParseChange(key + "=" + strconv.Itoa(s.passes)) // cannot fail, because the text is well formed
			changes = append(changes, change)
		}
	}
	return changes
}

// sets reports whether s changes the given key.
func (s Set) sets(key string) bool {
	return s.key() == key || s.passes > 0 && (key == epochsKey || key == iterationsKey)
}

func (s Set) key() string { return strings.Join(s.Path(), ".") }

// String returns the change as a flag: "--set loss.1.weight=0.01", "--epochs 5".
func (s Set) String() string {
	if s.passes > 0 {
		return "--epochs " + strconv.Itoa(s.passes)
	}
	if s.seeds != "" {
		return "--seeds " + s.seeds
	}
	if s.Source == nil {
		return "--set " + s.key()
	}
	return "--set " + s.Source.Text
}

// sweepPlan is a parsed sweep before its trials are built.
type sweepPlan struct {
	name   string
	node   *table.Node
	table  sweepTable
	models []string
	common axes            // axes of all models
	own    map[string]axes // axes of single models; they replace common keys
	seeds  axes            // axis of the seeds, which vary fastest
	seeded map[string]axes // axis of the seeds of single models; it replaces that of the sweep

	criteria []Criterion
}

// subject returns the name by which messages refer to the sweep.
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
		p.readBySeed(d)
		p.readSelect(d)
	} else {
		d.ReportKey("", p.node, fmt.Sprintf("got %s, want a table: [sweep.%s]", p.node.Describe(), table.KeyText(name)), "")
	}
	return p, d.Found
}

// known returns the models that the sweep names. It reports unknown and repeated names.
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

func (p *sweepPlan) of(model string) axes {
	own, seeds := p.own[model], p.seeds
	if of, found := p.seeded[model]; found {
		seeds = of
	}
	return slices.Concat(p.common.without(own.has), own, seeds)
}

// keys returns the swept keys without the seeds. A key is swept if it has several values for some model.
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

// override removes the swept keys that --set arguments change, and applies the argument of [Seeds].
func (p *sweepPlan) override(sets []Set) (found []table.Diagnostic) {
	set := func(key string) bool { return slices.ContainsFunc(sets, func(s Set) bool { return s.sets(key) }) }
	p.common = p.common.without(set)
	p.seeds = p.seeds.without(func(key string) bool { // --seeds is applied below
		return slices.ContainsFunc(sets, func(s Set) bool { return s.seeds == "" && s.sets(key) })
	})
	if p.table.BySeed != nil && len(p.seeds) > 0 && !p.seeds.has(seedKey) {
		return []table.Diagnostic{p.atBySeed("train.seed sets one seed for all of its values; select some by the option seeds")}
	}
	for model, own := range p.own {
		p.own[model] = own.without(set)
	}
	for model, seeds := range p.seeded {
		p.seeded[model] = seeds.without(set)
	}
	for _, s := range sets {
		if s.seeds != "" {
			found = append(found, p.reseed(s)...)
		}
	}
	return found
}

// concern returns the --set arguments that apply to each model. An argument does not apply to a model if the sweep sets
// its key for other models only. concern must be called before [sweepPlan.override].
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

type column struct {
	key    string   // "loss.1.weight"
	names  []string // names on the path of the key
	at     []table.Span
	values []*table.Node
	inline bool // the key is, or is within, an inline table that declares a part
}

// several reports whether the key has at least two different values.
func (c column) several() bool {
	return slices.ContainsFunc(c.values, func(v *table.Node) bool { return v.String() != c.values[0].String() })
}

// axis is one key, or several keys that vary together. Row i consists of the i-th value of each key. All columns have
// the same length.
type axis []column

// row returns row i as text.
func (a axis) row(i int) string {
	var b strings.Builder
	for _, c := range a {
		b.WriteString(c.values[i].String() + "\x00")
	}
	return b.String()
}

// distinct returns the axis without repeated rows.
func (a axis) distinct() axis {
	var rows []int
	seen := map[string]bool{}
	for i := range a[0].values {
		if text := a.row(i); !seen[text] {
			rows, seen[text] = append(rows, i), true
		}
	}
	kept := slices.Clone(a)
	for i, c := range a {
		kept[i].values = nil
		for _, row := range rows {
			kept[i].values = append(kept[i].values, c.values[row])
		}
	}
	return kept
}

// axes lists the axes of a sweep over one model. The sweep trains all combinations of their rows.
type axes []axis

func (l axes) has(key string) bool {
	return slices.ContainsFunc(l, func(a axis) bool { return slices.ContainsFunc(a, func(c column) bool { return c.key == key }) })
}

// without returns the axes without the keys for which gone is true.
func (l axes) without(gone func(key string) bool) (left axes) {
	for _, a := range l {
		kept := slices.DeleteFunc(slices.Clone(a), func(c column) bool { return gone(c.key) })
		if len(kept) > 0 {
			left = append(left, kept.distinct())
		}
	}
	return left
}

// size returns the number of settings, at most mostTrials + 1.
func (l axes) size() int {
	n := 1
	for _, a := range l {
		n = min(n*len(a[0].values), mostTrials+1) // the number of rows is never 0
	}
	return n
}

// choice returns the n-th combination: the index of the chosen row of each axis. The last axis varies fastest.
func (l axes) choice(n int) []int {
	choice := make([]int, len(l))
	for i, a := range slices.Backward(l) {
		choice[i] = n % len(a[0].values)
		n /= len(a[0].values)
	}
	return choice
}

// singly returns the combination of the first rows, and every combination that differs from it in one row.
func (l axes) singly() [][]int {
	list := [][]int{make([]int, len(l))}
	for i, a := range l {
		for j := 1; j < len(a[0].values); j++ {
			choice := make([]int, len(l))
			choice[i] = j
			list = append(list, choice)
		}
	}
	return list
}

// changes returns the changes of the model for one combination. choice is the index of the row of each axis.
func (l axes) changes(choice []int) (changes []table.Change) {
	for i, a := range l {
		for _, c := range a {
			changes = append(changes, table.NewChange(c.names, c.at, c.values[choice[i]]))
		}
	}
	return changes
}

// values returns the values of the given keys in a combination, nil for a key that is on no axis.
func (l axes) values(keys []string, choice []int) []any {
	values := make([]any, len(keys))
	for i, a := range l {
		for _, c := range a {
			if at := slices.Index(keys, c.key); at >= 0 {
				values[at] = c.values[choice[i]].Plain()
			}
		}
	}
	return values
}

// axesReader reads the axes of all models, or those of a single model.
type axesReader struct {
	*table.Decoder
	part string // part of the sweep's table that is read: "", or "for.NAME"
	axes axes
}

// at returns the full name of a key, for messages.
func (r *axesReader) at(key string) string { return strings.TrimPrefix(r.part+"."+key, ".") }

// readAxes reads the tables `set`, `zip` and `random` for all models, and the same tables of single models in `for`.
func (p *sweepPlan) readAxes(d *table.Decoder) {
	common := axesReader{Decoder: d}
	common.read(p.table.axesTable)
	p.common, p.own, p.seeded = common.axes, map[string]axes{}, map[string]axes{}
	if p.table.For == nil {
		return
	}
	if !p.table.For.IsTable() {
		d.Report("", p.table.For, "for: want tables: [sweep.NAME.for.MODEL.set]", "")
		return
	}
	for _, name := range p.table.For.Keys {
		n := p.table.For.Child(name)
		if !slices.Contains(p.models, name) {
			d.ReportKey("for", n, fmt.Sprintf("%q is no model of this sweep", name), table.Suggest(name, p.models))
			continue
		}
		own := axesReader{Decoder: d, part: "for." + name}
		var t forTable
		d.Decode(n, &t, own.part)
		own.read(t.axesTable)
		p.own[name] = own.axes
		if t.Seeds != nil {
			p.seeded[name] = seedAxis(d, own.part, n.Child("seeds"))
		}
	}
}

// read reads the keys of a grid, then the keys that vary together, then the random ones.
func (r *axesReader) read(t axesTable) {
	for _, c := range r.columns("set", t.Set, r.values) {
		r.add("set", axis{c})
	}
	r.zip(t.Zip)
	r.random(t.Random)
}

// add adds an axis. It reports keys that another axis already has.
func (r *axesReader) add(part string, a axis) {
	for _, c := range a {
		if r.axes.has(c.key) {
			r.Report(r.at(part), c.values[0], fmt.Sprintf("%s is given twice", c.key), "give it in one of set, zip and random")
			return
		}
	}
	r.axes = append(r.axes, a)
}

// columns returns the keys of a table and of its nested tables with their values. read reads the values of one key.
func (r *axesReader) columns(part string, n *table.Node, read func(part, key string, n *table.Node) []*table.Node) []column {
	if n == nil {
		return nil
	}
	if !n.IsTable() {
		r.Report(r.part, n, fmt.Sprintf("%s: want a table: [sweep.NAME.%s]", part, r.at(part)), "")
		return nil
	}
	return r.below(part, n, column{}, read)
}

// below returns the keys of a nested table. before is the key of this table.
func (r *axesReader) below(part string, n *table.Node, before column, read func(part, key string, n *table.Node) []*table.Node) (list []column) {
	for _, k := range n.Keys {
		v := n.Child(k)
		c := column{names: append(slices.Clone(before.names), k), at: append(slices.Clone(before.at), v.Key), inline: before.inline || isPart(v)}
		c.key = strings.Join(c.names, ".")
		switch {
		case strings.Contains(k, "."):
			r.ReportKey(r.at(part), v, fmt.Sprintf("unknown key %q", k), "write the path without quotes")
		case c.key == seedKey:
			r.ReportKey(r.at(part), v, `the seed is set by the sweep's key "seeds"`, "write seeds = [1, 2, 3] above")
		case before.inline && v.IsArray():
			r.ReportKey(r.at(part), v, fmt.Sprintf("%s: a list in an inline table could be one value or several", c.key),
				fmt.Sprintf("write it on a separate line: %s = [...] for several values, or [[...]] for one list", c.key))
		case v.IsTable() && !isSpread(v):
			list = append(list, r.below(part, v, c, read)...)
		default:
			if c.values = read(part, c.key, v); len(c.values) > 0 {
				list = append(list, c)
			}
		}
	}
	return list
}

// isPart reports whether a value is an inline table that declares a part or a data set.
func isPart(n *table.Node) bool {
	return n.IsInline() && (n.Child("kind") != nil || n.Child("name") != nil)
}

// values reads the values of a key: a single value, a list or a range.
func (r *axesReader) values(part, key string, n *table.Node) []*table.Node {
	switch {
	case isSpread(n):
		return spreadOut(r.Decoder, n, r.at(part)+"."+key)
	case n.IsArray():
		if len(n.Items) == 0 {
			r.Report(r.at(part), n, key+": got an empty list, want at least one value", "")
		}
		if part == "set" { // in zip, a key may repeat one of its values
			refuseRepeated(r.Decoder, r.at(part), key, n.Items)
		}
		return n.Items
	}
	return []*table.Node{n}
}

// refuseRepeated reports repeated values in a list, because their trials would be equal.
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

// Criterion is a metric by which a sweep selects settings. The best setting has the smallest (or largest) mean over the
// seeds.
type Criterion struct {
	Metric  string // "mse", or "class.accuracy" for a head
	Largest bool
}

// String returns the criterion in the notation of models.toml: "mse", "-hoyer".
func (c Criterion) String() string {
	if c.Largest {
		return "-" + c.Metric
	}
	return c.Metric
}

func (c Criterion) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Criterion) UnmarshalText(text []byte) error {
	*c = criterion(string(text))
	return nil
}

// criterion parses "mse" or "-hoyer".
func criterion(text string) Criterion {
	name, largest := strings.CutPrefix(text, "-")
	return Criterion{Metric: name, Largest: largest}
}

// readSelect reads `select`: one criterion, or a list of them.
func (p *sweepPlan) readSelect(d *table.Decoder) {
	given := p.table.Select
	if given == nil {
		return
	}
	list := []*table.Node{given}
	if given.IsArray() {
		list = given.Items
	}
	if len(list) == 0 {
		d.Report("", given, "select: got an empty list, want at least one metric", "")
	}
	for _, at := range list {
		text, ok := at.Text()
		if !ok {
			d.Report("", at, fmt.Sprintf("select: got %s, want the name of a metric", at.Describe()), "")
			continue
		}
		c := criterion(text)
		if problem, hint := c.problem(); problem != "" {
			d.Report("", at, "select: "+problem, hint)
			continue
		}
		p.criteria = append(p.criteria, c)
	}
	if p.table.Split != "" && p.table.Split != string(data.ValidationSplit) {
		d.Report("", given, fmt.Sprintf("select: selects on the %s images", p.table.Split), `leave "split" out: settings are selected on validation images`)
	}
}

// problem describes an invalid criterion and its remedy; both are "" if the criterion is valid.
func (c Criterion) problem() (problem, hint string) {
	m, ok := metrics.MeasureOf(c.Metric)
	switch {
	case !ok:
		return fmt.Sprintf("unknown metric %q", c.Metric), table.SuggestOf(c.Metric, metrics.Names(), "`tessera list metrics`")
	case m.Better == metrics.Higher && !c.Largest:
		return fmt.Sprintf("a larger %s is better, and %q selects the least", c.Metric, c), fmt.Sprintf("write %q", "-"+c.Metric)
	case m.Better == metrics.Lower && c.Largest:
		return fmt.Sprintf("a smaller %s is better, and %q selects the largest", c.Metric, c), fmt.Sprintf("write %q", c.Metric)
	}
	return "", ""
}

// split returns the split on which the trials are measured. The default is the validation images if every trial has
// some, otherwise the test images. It returns an error if the sweep names the validation images and a trial has none.
func (p *sweepPlan) split(trials []Trial) (data.Split, []table.Diagnostic) {
	asked := data.Split(p.table.Split)
	if len(p.criteria) > 0 {
		asked = data.ValidationSplit
	}
	if asked != "" && asked != data.ValidationSplit {
		return asked, nil
	}
	for _, t := range trials {
		err := t.Model.Dataset.HoldsOut()
		switch {
		case err != nil && asked == "":
			return data.TestSplit, nil
		case err != nil:
			key := "split"
			if len(p.criteria) > 0 {
				key = "select"
			}
			return "", []table.Diagnostic{table.Diagnostic{At: p.node.Child(key).Key, Subject: p.subject(),
				Problem: fmt.Sprintf("%s: model %q: %v", key, t.Model.Name, err), Suggestion: "set.dataset.validation = 0.1 holds a tenth out"}.In(p.node)}
		}
	}
	return data.ValidationSplit, nil
}
