package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tessera/attack"
	"tessera/hooks"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
	"tessera/part/table"
)

// search checks the restrictions of a full-batch optimizer.
func (w *walk) search() {
	for _, p := range w.layout.Stacked() {
		if p.Layer == nil || w.model.origin.Doubt(placeOf(p.Path)) != nil {
			continue
		}
		for _, inner := range p.opened() {
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
		if l.Loss != nil && !l.Loss.Reads().InParts(l.On) {
			w.report(fmt.Sprintf("loss[%d]", i), l.Kind, "", fmt.Sprintf("%s needs the whole batch in one piece, but %s computes the full batch in micro-batches", l.Kind, w.model.Optimizer.Kind),
				"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
		}
	}
}

// sameLayer reports layers with which the full-batch objective would change between evaluations: layers with noise, and
// layers with statistics of the batch. For a block it checks the inner layers.
func (w *walk) sameLayer(p Placed) {
	kind, search := p.Kind, w.model.Optimizer.Kind
	_, block := p.Layer.(layers.Block)
	_, once := p.Layer.(layers.Decomposing) // its state is set before the first step
	switch {
	case block:
	case layers.IsNoisy(p.Layer):
		w.report(placeOf(p.Path), kind, "", fmt.Sprintf("%s draws noise, but %s needs an objective that is the same at every evaluation", kind, search),
			"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
	case !once && w.moves(p):
		w.report(placeOf(p.Path), kind, "", fmt.Sprintf("%s depends on the batch, but %s evaluates the full batch", kind, search),
			"leave it out, or choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
}

// moves reports whether a layer has state that depends on the batch. Only a layer whose parameters are all frozen, not only
// its state, runs in inference mode.
func (w *walk) moves(placed Placed) bool {
	return slices.ContainsFunc(placed.Parameters, func(p layers.Parameter) bool { return p.State }) &&
		!w.model.AllFrozen(placed.Path, layers.Names(placed.Parameters)...)
}

// rules lists the mini-batch optimizers.
func rules() []string {
	var names []string
	for _, e := range optim.Registry.All() {
		if _, ok := e.New().(optim.Rule); ok {
			names = append(names, e.Name)
		}
	}
	return names
}

// decomposing reports layers that decompose images but are not the first layer: their rescaling is computed from the
// training images before the first step.
func (w *walk) decomposing() {
	for _, p := range w.layout.Layers() {
		part := placeOf(p.Path)
		if _, ok := p.Layer.(layers.Decomposing); !ok || part == "encoder[0]" ||
			slices.ContainsFunc(w.found, func(f table.Diagnostic) bool { return f.Part == part }) { // often for the wrong position
			continue
		}
		w.report(part, p.Kind, "", fmt.Sprintf("%s must be the encoder's first layer: it decomposes the input images", p.Kind), "")
	}
}

// Hook is a declared hook of a model.
type Hook struct {
	Name string // name of its state in a checkpoint: prune.0, average, teacher
	Hook hooks.Hook
	part string // where it is declared
}

// AllHooks lists the hooks of a model in the order of their stages, in which training calls them: hooks from other tables
// (prune, adversarial, average, train.patience), hooks of the first layer, and Hooks.
func (m *Model) AllHooks() (list []Hook) {
	for i := range m.Prune {
		list = append(list, Hook{fmt.Sprintf("prune.%d", i), &m.Prune[i], fmt.Sprintf("prune[%d]", i)})
	}
	if m.Adversarial != nil {
		list = append(list, Hook{"adversarial", m.Adversarial, "adversarial"})
	}
	if m.Average != nil {
		list = append(list, Hook{"average", m.Average, "average"})
	}
	if t := m.Train; t.Patience > 0 {
		list = append(list, Hook{"early_stopping", &hooks.EarlyStopping{Patience: t.Patience, MinDelta: t.MinDelta}, "train"})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Hooks)) {
		list = append(list, Hook{name, m.Hooks[name], "hook." + name})
	}
	list = append(list, m.preparing()...)
	slices.SortStableFunc(list, func(a, b Hook) int { return cmp.Compare(hooks.StageOf(a.Hook), hooks.StageOf(b.Hook)) })
	return list
}

// preparing lists the undeclared hooks of the encoder's first layer.
func (m *Model) preparing() (list []Hook) {
	if len(m.Encoder) == 0 {
		return nil
	}
	first, ok := m.Encoder[0].Layer.(layers.Preparing)
	if !ok {
		return nil
	}
	for _, e := range hooks.Registry.All() {
		h := e.New()
		if p, ok := h.(hooks.Preparing); ok && m.Hooks[e.Name] == nil && p.Prepares(first.Preparation()) {
			list = append(list, Hook{e.Name, h, "encoder[0]"})
		}
	}
	return list
}

// Distorted reports whether a hook of the model changes the images that are encoded in training.
func (m *Model) Distorted() bool {
	return slices.ContainsFunc(m.AllHooks(), func(h Hook) bool { _, ok := h.Hook.(hooks.Distorting); return ok })
}

// hooks checks every hook of the model.
func (w *walk) hooks() {
	w.oneStep()
	named := map[string]string{}
	for _, h := range w.model.AllHooks() {
		if other := named[h.Name]; other != "" {
			w.report(h.part, "", "", fmt.Sprintf("%s declares the same hook", other), "remove one of them")
		}
		named[h.Name] = h.part
		if w.model.origin.Doubt(h.part) == nil {
			w.hook(h)
		}
	}
}

// hook checks one hook and its glob.
func (w *walk) hook(h Hook) {
	_, search := w.model.Optimizer.Optimizer.(optim.Search)
	if needs, ok := h.Hook.(hooks.NeedsSteps); search && ok {
		problem, hint := needs.NeedsSteps()
		w.report(h.part, "", "", fmt.Sprintf(problem, w.model.Optimizer.Kind), hint+", or choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
	if p, ok := h.Hook.(*hooks.Prune); ok {
		if epochs := w.model.Train.Epochs; p.From >= epochs && w.model.origin.Doubt("train") == nil {
			w.report(h.part, "", "from", fmt.Sprintf("from: the phase begins after epoch %d, but the run ends after epoch %d: nothing would be pruned", p.From, epochs),
				"train for longer, let the phase begin earlier, or leave it out: prune = []")
		}
	}
	if g, ok := h.Hook.(hooks.Globbed); ok {
		_, glob := g.Glob()
		w.moving(h.part, "", glob, w.model.Frozen)
	}
	if _, ok := h.Hook.(hooks.Distorting); ok && !w.model.inDoubt("loss") && len(w.model.Losses) > 0 {
		w.distorting(h)
	}
}

// distorting checks that a loss reads the images that a hook changes, and that adversarial examples have an error to
// maximise.
func (w *walk) distorting(h Hook) {
	m := w.model
	none := func(reads func(r losses.Reads, on string) bool) bool {
		return !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil || reads(l.Loss.Reads(), l.On) })
	}
	_, attacks := h.Hook.(*hooks.Adversarial)
	known := slices.ContainsFunc(w.found, func(f table.Diagnostic) bool { return f.Problem == uncompared })
	switch {
	case len(m.Views) > 0 && !m.inDoubt("view") && none(func(r losses.Reads, _ string) bool { return r.On && !r.Views }):
		w.report(h.part, "", "", "no loss reads the images, only their views: there is nothing to attack", "remove the table")
	case attacks && !known && none(func(r losses.Reads, on string) bool { return r.Images && on == losses.Output }):
		w.report(h.part, "", "", uncompared+": there is no error to maximise", "remove the table, or add one of "+table.Quoted(reconstructions()))
	}
}

// pgdKeys are the keys of an attack with several steps.
var pgdKeys = []string{"steps", "step_size"}

// oneStep reports them for an attack of one step of length epsilon, and removes their defaults.
func (w *walk) oneStep() {
	a := w.model.Adversarial
	if a == nil || a.Method != attack.FGSM || w.model.origin.Doubt("adversarial") != nil {
		return
	}
	for _, key := range pgdKeys {
		if w.model.origin.Table("adversarial").Child(key) != nil {
			w.report("adversarial", "", key, fmt.Sprintf("%s: %s takes one step of length epsilon", key, a.Method),
				fmt.Sprintf("leave it out, or take method = %q", attack.PGD))
		}
	}
	a.Steps, a.StepSize = 0, 0
}
