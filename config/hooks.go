package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tessera/attack"
	"tessera/hooks"
	"tessera/layers"
	"tessera/optim"
	"tessera/table"
)

// Hook is a declared hook of a model.
type Hook struct {
	Name string // that of its state in a checkpoint: prune.0, average, teacher
	Hook hooks.Hook
	part string // where it is declared
}

// AllHooks lists the hooks of a model in the order in which a training calls them, that of their stages: those declared by other
// tables (prune, adversarial, average, train.patience), those that belong to the first layer, and those of Hooks.
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

// preparing lists the hooks that belong to the encoder's first layer and are not declared.
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
func (c *checker) hooks() {
	c.oneStep()
	named := map[string]string{}
	for _, h := range c.model.AllHooks() {
		if other := named[h.Name]; other != "" {
			c.report(h.part, "", "", fmt.Sprintf("%s declares this hook already", other), "leave one of them out")
		}
		named[h.Name] = h.part
		if c.model.origin.Doubt(h.part) == nil {
			c.hook(h)
		}
	}
}

// hook checks one hook, and what it works on.
func (c *checker) hook(h Hook) {
	_, search := c.model.Optimizer.Optimizer.(optim.Search)
	if needs, ok := h.Hook.(hooks.NeedsSteps); search && ok {
		problem, hint := needs.NeedsSteps()
		c.report(h.part, "", "", fmt.Sprintf(problem, c.model.Optimizer.Kind), hint+", or take an optimizer that is a rule: "+table.Quoted(rules()))
	}
	if p, ok := h.Hook.(*hooks.Prune); ok {
		if epochs := c.model.Train.Epochs; p.From >= epochs && c.model.origin.Doubt("train") == nil {
			c.report(h.part, "", "from", fmt.Sprintf("from: the phase begins after epoch %d, but the run ends after epoch %d: nothing would be pruned", p.From, epochs),
				"train for longer, let the phase begin earlier, or leave it out: prune = []")
		}
	}
	if g, ok := h.Hook.(hooks.Globbed); ok {
		_, glob := g.Glob()
		c.moving(h.part, "", glob, c.model.Frozen)
	}
}

// pgdKeys are the keys that only an attack of several steps has.
var pgdKeys = []string{"steps", "step_size"}

// oneStep refuses them where the attack is one step of length epsilon, and takes their defaults away.
func (c *checker) oneStep() {
	a := c.model.Adversarial
	if a == nil || a.Method != attack.FGSM || c.model.origin.Doubt("adversarial") != nil {
		return
	}
	for _, key := range pgdKeys {
		if c.model.origin.Table("adversarial").Child(key) != nil {
			c.report("adversarial", "", key, fmt.Sprintf("%s: %s takes one step of length epsilon", key, a.Method),
				fmt.Sprintf("leave it out, or take method = %q", attack.PGD))
		}
	}
	a.Steps, a.StepSize = 0, 0
}
