package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/config/part/table"
	"tessera/hooks"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// search checks the restrictions of a full-batch optimizer.
func (w *walk) search() {
	for p := range w.layout.Stacked() {
		if p.Layer == nil || w.model.origin.Doubt(placeOf(p.Path)) != nil {
			continue
		}
		for inner := range p.opened {
			w.sameLayer(inner)
		}
	}
	if w.model.Train.MinEpochSteps > 0 {
		w.report("train", "", "min_epoch_steps", fmt.Sprintf("min_epoch_steps: an epoch of %s is one iteration over all images", w.model.Optimizer.Kind),
			"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
	for i, l := range w.model.Losses {
		if _, constant := l.Weight.(*losses.Constant); !constant && l.Weight != nil {
			w.report(fmt.Sprintf("loss[%d]", i), l.Kind, "weight", fmt.Sprintf("weight: changes with the epochs, but %s needs an objective that is the same at every evaluation", w.model.Optimizer.Kind),
				"give a number, or choose a mini-batch optimizer: "+table.Quoted(rules()))
		}
		if l.Loss != nil && !l.Reads().InParts(l.On) {
			w.report(fmt.Sprintf("loss[%d]", i), l.Kind, "", fmt.Sprintf("%s needs the whole batch in one piece, but %s computes the full batch in micro-batches", l.Kind, w.model.Optimizer.Kind),
				"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
		}
	}
}

// sameLayer reports layers because of which the full-batch objective differs between two evaluations: layers with noise
// or batch statistics. For a block it checks the inner layers.
func (w *walk) sameLayer(p *Placed) {
	kind, search := p.Kind, w.model.Optimizer.Kind
	_, block := p.Layer.(layers.Block)
	_, once := p.Layer.(layers.Decomposing) // the state of such a layer is set once, before the first step
	switch {
	case block:
	case layers.IsNoisy(p.Layer):
		w.report(placeOf(p.Path), kind, "", fmt.Sprintf("%s draws noise, but %s needs an objective that is the same at every evaluation", kind, search),
			"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
	case !once && w.dependsOnBatch(p):
		w.report(placeOf(p.Path), kind, "", fmt.Sprintf("%s depends on the batch, but %s evaluates the full batch", kind, search),
			"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
}

// dependsOnBatch reports whether a layer has state that depends on the batch in training. A layer runs in inference
// mode only if all its parameters are frozen, not only its state.
func (w *walk) dependsOnBatch(placed *Placed) bool {
	return slices.ContainsFunc(placed.Parameters, func(p layers.Parameter) bool { return p.State }) &&
		!w.model.AllFrozen(placed.Path, layers.Names(placed.Parameters)...)
}

// rules lists the mini-batch optimizers.
func rules() []string {
	return kindsThat("optimizers", func(o optim.Optimizer) bool { _, ok := o.(optim.Rule); return ok })
}

// unprepared reports layers that a hook fits to the images, or computes for each image once, but that read something else.
func (w *walk) unprepared() {
	for p := range w.layout.Layers() {
		if _, ok := p.Layer.(layers.Preparing); !ok || p.Path == "encoder.0" && slices.Equal(p.From, []string{losses.Images}) {
			continue
		}
		part := placeOf(p.Path)
		if !slices.ContainsFunc(w.found, func(f table.Diagnostic) bool { return f.Part == part }) { // else it is often a consequence of the wrong position
			w.report(part, p.Kind, "", fmt.Sprintf("%s must be the encoder's first layer and read the images: it is computed from them before the training", p.Kind), "")
		}
	}
}

// misplaced reports layers that look up whole numbers but read the output of a layer with parameters or of a relative block.
func (w *walk) misplaced() {
	for p := range w.layout.Layers() {
		inner := w.layout.at[p.Path] == nil
		of, ok := p.Layer.(layers.Indexing)
		if !ok {
			continue
		}
		for _, name := range p.From {
			if q, published := w.layout.Of(name); q != nil && published == "" {
				if r := layers.OutputRange(q.Layer, layers.Everything); !math.IsInf(r.High, 1) && r.High >= float64(of.Indices()) {
					w.report(placeOf(p.Path), p.Kind, "", fmt.Sprintf("%s looks up whole numbers from 0 to %d, but %s (%s) gives %g", p.Kind, of.Indices()-1, q.Path, q.Kind, r.High),
						fmt.Sprintf("a vocabulary of %g has this number too", r.High+1))
				}
			}
		}
		computed := ""
		if inner && p.From == nil {
			computed = "a relative block scales its input"
		}
		if q := w.layout.computing(p.From); q != nil {
			computed = fmt.Sprintf("%s (%s) computes other numbers", q.Path, q.Kind)
		}
		if computed != "" {
			w.report(placeOf(p.Path), p.Kind, "", fmt.Sprintf("%s looks up whole numbers, but %s", p.Kind, computed), "let it read a column of whole numbers (from)")
		}
	}
}

// computing returns a layer with parameters from which one of the values comes, directly or through layers that rearrange values;
// nil if there is none.
func (l *Layout) computing(names []string) *Placed {
	for _, name := range names {
		p, published := l.Of(name)
		if p == nil || published != "" {
			continue
		}
		if len(p.Parameters) > 0 {
			return p
		}
		if rearranges(p.Layer) {
			if q := l.computing(p.From); q != nil {
				return q
			}
		}
	}
	return nil
}

// Hook is a declared hook of a model.
type Hook struct {
	Name string // name of the table, and of the hook's state in a checkpoint: "average"
	Hook hooks.Hook
}

// part returns the location of the hook in the declaration.
func (h Hook) part() string { return hookPart(h.Name) }

func hookPart(name string) string { return "hook." + table.KeyText(name) }

// AllHooks lists the hooks of a model in the order in which training calls them: by stage, and by name within a stage.
func (m *Model) AllHooks() (list []Hook) {
	for _, name := range slices.Sorted(maps.Keys(m.Hooks)) {
		list = append(list, Hook{name, m.Hooks[name]})
	}
	slices.SortStableFunc(list, func(a, b Hook) int { return cmp.Compare(hooks.StageOf(a.Hook), hooks.StageOf(b.Hook)) })
	return list
}

// EarlyStops reports whether a hook of the model can end the training early and select one of its epochs.
func (m *Model) EarlyStops() bool {
	return slices.ContainsFunc(m.AllHooks(), func(h Hook) bool { _, stops := h.Hook.(*hooks.EarlyStopping); return stops })
}

// prepare adds the hooks that the encoder's first layer needs to prepare images, unless they are declared explicitly.
func (m *Model) prepare() {
	if len(m.Encoder) == 0 {
		return
	}
	first, ok := m.Encoder[0].Layer.(layers.Preparing)
	if !ok {
		return
	}
	prepares := func(h hooks.Hook) bool {
		p, ok := h.(hooks.Preparing)
		return ok && p.Prepares(first.Preparation())
	}
	if slices.ContainsFunc(m.AllHooks(), func(h Hook) bool { return prepares(h.Hook) }) {
		return
	}
	for _, e := range hooks.Registry.All() {
		if h := e.New(); prepares(h) {
			if m.Hooks == nil {
				m.Hooks = map[string]hooks.Hook{}
			}
			m.Hooks[e.Name] = h
		}
	}
}

// Distorted reports whether a hook of the model changes the images that the encoder reads in training.
func (m *Model) Distorted() bool {
	return slices.ContainsFunc(m.AllHooks(), func(h Hook) bool { _, ok := h.Hook.(hooks.Distorting); return ok })
}

// Separated reports whether a hook of the model reads the gradient of a loss term.
func (m *Model) Separated(term string) bool {
	return slices.ContainsFunc(m.AllHooks(), func(h Hook) bool {
		s, ok := h.Hook.(hooks.Separating)
		return ok && (len(s.Separates()) == 0 || slices.Contains(s.Separates(), term))
	})
}

func (w *walk) hooks() {
	for _, h := range w.model.AllHooks() {
		if w.model.origin.Doubt(h.part()) == nil {
			w.hook(h)
		}
	}
}

func (w *walk) hook(h Hook) {
	if h.Name == "" || strings.ContainsAny(h.Name, `./*?[]\ `) {
		w.report(h.part(), "", "", fmt.Sprintf("invalid name %q of a hook: paths of its values contain the name", h.Name), "")
	}
	if _, lends := h.Hook.(hooks.Lender); lends && slices.Contains([]string{"encoder", "decoder", "head"}, h.Name) {
		w.report(h.part(), "", "", fmt.Sprintf("invalid name %q of a hook: the parameters that it lends would be named like those of the model", h.Name), "")
	}
	_, search := w.model.Optimizer.Optimizer.(optim.Search)
	if needs, ok := h.Hook.(hooks.NeedsSteps); search && ok {
		problem, hint := needs.NeedsSteps()
		w.report(h.part(), "", "", fmt.Sprintf(problem, w.model.Optimizer.Kind), hint+", or choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
	if p, ok := h.Hook.(hooks.Phased); ok {
		if from, without := p.Begins(); from >= w.model.Train.Epochs && w.model.origin.Doubt("train") == nil {
			w.report(h.part(), "", "from", fmt.Sprintf("from: the phase begins after epoch %d, but the run ends after epoch %d: %s", from, w.model.Train.Epochs, without),
				fmt.Sprintf("train for longer, let the phase begin earlier, or leave it out: %s = false", h.part()))
		}
	}
	if a, ok := h.Hook.(*hooks.Adversarial); ok {
		w.attackedHead(h, a)
	}
	if s, ok := h.Hook.(hooks.Selective); ok && w.layout.Input != nil && len(w.names)+len(w.open) == 0 && !w.model.inDoubt("freeze") {
		if err := s.Suits(w.declared()); err != nil {
			w.report(h.part(), "", table.KeyOf(err), err.Error(), "leave the hook out")
		}
	}
	if s, ok := h.Hook.(hooks.Separating); ok && !w.model.inDoubt("loss") {
		terms := w.model.Terms()
		for _, term := range s.Separates() {
			if !slices.Contains(terms, term) {
				w.report(h.part(), "", "terms", fmt.Sprintf("terms: the model has no loss term %q", term), table.Suggest(term, terms))
			}
		}
	}
	if g, ok := h.Hook.(hooks.Globbed); ok {
		_, glob := g.Glob()
		w.trainable(h.part(), "", glob, w.model.Frozen)
	}
	if _, ok := h.Hook.(hooks.Distorting); ok && !w.model.inDoubt("loss") && len(w.model.Losses) > 0 {
		w.distorting(h)
	}
}

// declared returns the properties of the model that its hooks may use before the training.
func (w *walk) declared() hooks.Declared {
	d := hooks.Declared{Pixels: product(w.layout.Input), Decodes: len(w.layout.Decoder) > 0, Target: w.model.Target(), Terms: len(w.model.Losses), Parameters: func(glob string) (list []*hooks.Parameter) {
		for _, p := range w.all {
			if p.Of == "" && MatchPath(glob, p.Path) {
				list = append(list, &hooks.Parameter{Path: p.Path, Shape: p.Shape, Trainable: !p.State && !w.model.Frozen(p.Path)})
			}
		}
		return list
	}}
	if i := slices.IndexFunc(w.layout.Decoder, func(p Placed) bool { return len(p.Parameters) > 0 || p.Kind == "tied" }); i >= 0 {
		d.Decoder = w.layout.Decoder[i].Kind
	}
	if first, ok := w.layout.Encoder[0].Layer.(layers.Preparing); ok {
		d.Preparation = first.Preparation()
	}
	return d
}

// distorting checks a hook that changes the encoder's input. A loss must read the images, and adversarial examples need
// a loss to maximise.
func (w *walk) distorting(h Hook) {
	m := w.model
	none := func(reads func(r losses.Reads, on string) bool) bool {
		return !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil || reads(l.Reads(), l.On) })
	}
	a, attacks := h.Hook.(*hooks.Adversarial)
	attacks = attacks && a.On == ""
	known := slices.ContainsFunc(w.found, func(f table.Diagnostic) bool { return f.Problem == uncompared })
	switch {
	case len(m.Views) > 0 && !m.inDoubt("view") && none(func(r losses.Reads, _ string) bool { return r.On && !r.Views }):
		w.report(h.part(), "", "", "no loss reads the images, only their views: there is nothing to attack", "remove the table")
	case attacks && !known && none(func(r losses.Reads, on string) bool { return r.Against == losses.Images && on == losses.Output }):
		w.report(h.part(), "", "", uncompared+": there is no error to maximise", "remove the table, or add one of "+table.Quoted(reconstructions()))
	}
}

// attackedHead checks the head that adversarial examples attack. If no loss compares the output with the images, the
// default is the head that a loss compares with labels.
func (w *walk) attackedHead(h Hook, a *hooks.Adversarial) {
	m := w.model
	if m.inDoubt("loss") {
		return
	}
	var heads []string
	for _, l := range m.Losses {
		if l.Loss == nil {
			return
		}
		if r := l.Reads(); r.Classes && r.Against == losses.Labels {
			heads = append(heads, l.On)
		}
	}
	reconstructs := slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Reads().Against == losses.Images && l.On == losses.Output })
	switch {
	case a.On == "" && !reconstructs && len(heads) > 0:
		a.On = heads[0]
	case a.On != "" && !slices.Contains(heads, a.On):
		w.report(h.part(), "", "on", fmt.Sprintf("on: got %q, want a head that a loss compares with the labels: one of %s", a.On, table.Quoted(heads)),
			"add a loss cross_entropy on it, or leave the key out to attack the output")
	}
}

// formerKeys are the keys of an attack that the hook adversarial had itself, with their present names.
var formerKeys = map[string]string{"method": "kind", "steps": "steps", "step_size": "step_size", "random_start": "random_start"}

// nestAttacks moves [formerKeys] of adversarial training, in the table of a model or in changes of one, to the table of the attack.
func nestAttacks(n *table.Node) {
	all := n.Child("hook")
	if !all.IsTable() {
		return
	}
	for _, name := range all.Keys {
		h := all.Child(name)
		if kind, named := h.Child("kind").Text(); kind == "adversarial" || !named && name == "adversarial" {
			if method, _ := h.Child("method").Text(); method == "fgsm" { // runs wrote a key of pgd for it too
				h.Drop(func(key string) bool { return key == "random_start" && h.Child(key).Leaf == false })
			}
			h.Nest("attack", formerKeys)
		}
	}
}

// asHook rewrites a key of the earlier syntax of hooks as a table under hook, with the same values. It returns "" for
// other keys.
func asHook(part, key string, n *table.Node) string {
	c := n.Child(key)
	_, isHook := hooks.Registry.Lookup(key)
	path := c.Path()
	switch {
	case part == "" && isHook && (len(path) < 2 || path[0] != "model"): // the key comes from a --set argument or a sweep
		return "hooks are declared under hook: write hook." + key
	case part == "" && isHook && c.IsArray():
		var text strings.Builder
		for i, item := range c.Items {
			name := key
			if i > 0 {
				name = fmt.Sprintf("%s-%d", key, i+1)
				item = item.Only(func(string) bool { return true })
				item.Put("kind", c.NewScalar(key))
			}
			text.Write(item.TOML("model", path[1], "hook", name))
		}
		return "hooks are declared under hook; write\n" + text.String()
	case part == "" && isHook:
		return "hooks are declared under hook; write\n" + string(c.Only(func(string) bool { return true }).TOML("model", path[1], "hook", key))
	case part != "" && part != "train" || !slices.Contains(stoppingKeys, key):
		return ""
	case len(path) < 2 || path[0] != "model":
		return "early stopping is a hook: write hook.early_stopping." + key
	}
	if given := n.Child("patience"); given != nil && given.Leaf == int64(0) {
		return "early stopping is a hook: leave this out, or write hook.early_stopping = false against an inherited one"
	}
	given := n.Only(func(key string) bool { return slices.Contains(stoppingKeys, key) })
	return "early stopping is a hook; write\n" + string(given.TOML("model", path[1], "hook", "early_stopping"))
}

// stoppingKeys lists the keys of early stopping.
var stoppingKeys = table.Keys(&hooks.EarlyStopping{}, "")
