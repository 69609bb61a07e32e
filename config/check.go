package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// check finds what is wrong between the parts of a decoded auto-encoder: shapes, ranges of values, roles and globs.
func (m *Model) check(input []int) []finding {
	c := &checker{walk: m.walk(input)}
	if len(m.Encoder) == 0 && !m.inDoubt("encoder") {
		c.report("", "", "encoder", "the encoder is empty", "give at least one "+m.header("encoder"))
	}
	if len(m.Decoder) == 0 && !m.inDoubt("decoder") {
		c.report("", "", "decoder", "the decoder is empty", "leave it out for one linear dense layer")
	}
	c.decomposing()
	if _, search := m.Optimizer.Optimizer.(optim.Search); search {
		c.search()
	}
	for i, l := range m.Losses {
		if l.Loss != nil {
			c.loss(fmt.Sprintf("loss[%d]", i), l)
		}
	}
	c.reconstructs()
	for i, one := range m.Constraints {
		if one.Constraint != nil {
			c.glob(fmt.Sprintf("constraint[%d]", i), one.Kind, "on", one.On, c.views()...)
		}
	}
	c.freeze()
	c.start()
	c.adversarial()
	for i := range c.model.Prune {
		c.prune(i)
	}
	return c.found
}

// header is how an element of one of the model's lists is begun.
func (m *Model) header(list string) string {
	return fmt.Sprintf("[[model.%s.%s]]", keyText(m.Name), list)
}

// inDoubt reports whether one of the model's own keys has a mistake.
func (m *Model) inDoubt(key string) bool {
	return m.origin.doubt("").about(func(f field) bool { return f.key == key })
}

// checker judges the other parts by what the walk over the layers knows.
type checker struct {
	*walk
}

func (c *checker) report(part, kind, key, problem, hint string) {
	c.found = append(c.found, c.model.finding(part, kind, key, problem, hint))
}

// search checks what goes with an optimizer that looks at all images.
func (c *checker) search() {
	c.steady("encoder", c.layout.Encoder)
	c.steady("decoder", c.layout.Decoder)
	kind := c.model.Optimizer.Kind
	for i := range c.model.Prune {
		c.report(fmt.Sprintf("prune[%d]", i), "", "", fmt.Sprintf("%s does not go on from weights that are held at 0: what it knows would be wrong", kind),
			"leave the phase out, or take an optimizer that is a rule: "+quoted(rules()))
	}
	if c.model.Adversarial != nil {
		c.report("adversarial", "", "", fmt.Sprintf("attacked images change with the parameters, but %s needs an objective that is the same at every look", kind),
			"leave it out, or take an optimizer that is a rule: "+quoted(rules()))
	}
	if c.model.Average != nil {
		c.report("average", "", "", fmt.Sprintf("%s takes no small steps that an average would smooth: every iteration is lower than the last", kind), "leave the average out")
	}
}

// steady refuses layers with which the objective over all images is not the same at every look of a search: those that
// draw noise, and those that follow the images of a batch.
func (c *checker) steady(name string, list []Placed) {
	for i, placed := range list {
		part := fmt.Sprintf("%s[%d]", name, i)
		if placed.Layer == nil || c.model.origin.doubt(part) != nil {
			continue
		}
		kind, search := placed.Kind, c.model.Optimizer.Kind
		_, once := placed.Layer.(layers.Decomposing) // what it keeps is found before the first step
		moves := !once && slices.ContainsFunc(placed.opened(), c.moves)
		switch {
		case layers.IsNoisy(placed.Layer):
			c.report(part, kind, "", fmt.Sprintf("%s draws noise, but %s needs an objective that is the same at every look", kind, search),
				"leave it out, or take an optimizer that is a rule: "+quoted(rules()))
		case moves:
			c.report(part, kind, "", fmt.Sprintf("%s depends on the batch, but %s looks at all images together", kind, search),
				"leave it out, or take an optimizer that is a rule: "+quoted(rules()))
		}
	}
}

// moves reports whether a layer has state that follows the images of a batch: unless all of its parameters are frozen, not
// only its state, it does not work as at inference.
func (c *checker) moves(placed Placed) bool {
	return slices.ContainsFunc(placed.Parameters, func(p layers.Parameter) bool { return p.State }) &&
		!c.model.AllFrozen(placed.Path, layers.Names(placed.Parameters)...)
}

// rules lists the optimizers that go batch by batch.
func rules() []string {
	var names []string
	for _, e := range optim.Registry.All() {
		if _, ok := e.New().(optim.Rule); ok {
			names = append(names, e.Name)
		}
	}
	return names
}

// loss checks what a term is taken on, and that its values are in its domain.
func (c *checker) loss(part string, l Loss) {
	if _, ok := l.Loss.(losses.WeightPenalty); ok {
		c.glob(part, l.Kind, "on", l.On, c.views()...)
		return
	}
	if want := l.Loss.On(); l.On != want {
		c.report(part, l.Kind, "on", fmt.Sprintf("on: got %q, but %s is taken on the %s", l.On, l.Kind, want), "")
		return
	}
	if _, ok := l.Loss.(losses.UnitInterval); ok {
		c.unitInterval(part, l)
	}
	if _, ok := l.Loss.(losses.AtomPenalty); ok {
		c.atoms(part, l)
	}
}

// atoms checks that the decoder has atoms for a term that is taken on them, and of a shape that suits it.
func (c *checker) atoms(part string, l Loss) {
	inDecoder := func(path string) bool { return strings.HasPrefix(path, "decoder.") }
	if slices.ContainsFunc(c.names, inDecoder) || slices.ContainsFunc(c.open, inDecoder) {
		return // a layer whose shapes are not known
	}
	list := c.layout.Decoder
	if len(list) == 0 || product(list[len(list)-1].Out) != product(c.layout.Input) {
		return // which is a mistake of its own, or not known
	}
	if c.layout.Dictionary() < 0 {
		c.report(part, l.Kind, "", fmt.Sprintf("%s is taken on the atoms, but the decoder's last layer with weights gives no whole images", l.Kind),
			"end the decoder with a dense layer, or one and activations")
	}
	if s, ok := l.Loss.(losses.Shaped); ok && c.layout.Input != nil {
		if err := s.CheckShape(c.layout.Input); err != nil {
			c.report(part, l.Kind, keyOf(err, partFields(l.Loss)), err.Error(), "")
		}
	}
}

// unitInterval checks that the code, or the output, of a term that needs values in [0,1] has such values.
func (c *checker) unitInterval(part string, l Loss) {
	unit := layers.Interval{Low: 0, High: 1}
	r, known, last := c.valuesOf("encoder", c.model.Encoder, unit, len(c.model.Encoder) > 0)
	if l.On == "output" {
		r, known, last = c.valuesOf("decoder", c.model.Decoder, r, known)
	}
	if !known || r.Within(unit) {
		return
	}
	c.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)),
		"these give values in [0,1]: "+quoted(unitActivations()))
}

// valuesOf folds the ranges of a list of layers. The range is not known after a layer in doubt, until one follows
// that gives the same range whatever it gets.
func (c *checker) valuesOf(name string, list []Layer, in layers.Interval, known bool) (layers.Interval, bool, string) {
	last := "the code"
	for i, l := range list {
		part := fmt.Sprintf("%s[%d]", name, i)
		last = fmt.Sprintf("%s (%s)", part, l.Kind)
		if l.Layer == nil {
			in, known = layers.Everything, false
			continue
		}
		if c.model.origin.doubt(part).values() {
			in, known = layers.Everything, false
			continue
		}
		in = layers.OutputRange(l.Layer, in)
		known = known || in == layers.OutputRange(l.Layer, layers.Interval{Low: 0, High: 1})
	}
	return in, known, last
}

// unitActivations lists the activations that map every value into [0,1].
func unitActivations() []string {
	var names []string
	for _, name := range layers.ActivationName("").Choices() {
		a, err := layers.ActivationName(name).Activation()
		if err == nil && a.OutputRange(layers.Everything).Within(layers.Interval{Low: 0, High: 1}) {
			names = append(names, name)
		}
	}
	return names
}

// reconstructs checks that a term compares the output with the images: nothing else teaches the decoder.
func (c *checker) reconstructs() {
	m := c.model
	if m.inDoubt("loss") {
		return
	}
	for _, l := range m.Losses {
		if _, ok := l.Loss.(losses.Reconstruction); ok || l.Loss == nil {
			return
		}
	}
	var names []string
	for _, e := range losses.Registry.All() {
		if _, ok := e.New().(losses.Reconstruction); ok {
			names = append(names, e.Name)
		}
	}
	c.report("", "", "loss", "no loss compares the output with the images", "add one of "+quoted(names))
}

// glob checks that a glob, the value of a key, matches at least one parameter, or one of the other names.
func (c *checker) glob(part, kind, key, glob string, also ...string) {
	if _, err := path.Match(glob, ""); err != nil {
		c.report(part, kind, key, fmt.Sprintf("%s: malformed glob %q", key, glob), "")
		return
	}
	if slices.ContainsFunc(append(c.paths(), also...), func(parameter string) bool { return MatchPath(glob, parameter) }) ||
		slices.ContainsFunc(c.open, func(layer string) bool { return mayMatch(glob, layer) }) {
		return
	}
	c.report(part, kind, key, fmt.Sprintf("%s: %q matches no parameter", key, glob), c.suggestGlob(glob, also))
}

// paths lists the parameters that are known by name.
func (c *checker) paths() []string {
	var paths []string
	for _, p := range c.layout.Parameters() {
		if p.TransposeOf == "" {
			paths = append(paths, p.Path)
		}
	}
	return append(paths, c.names...)
}

// views lists the other names of parameters, by which losses and constraints are taken on the atoms of tied decoders.
func (c *checker) views() []string {
	var paths []string
	for _, p := range c.layout.Parameters() {
		if p.TransposeOf != "" {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// suggestGlob returns the nearest parameter path or usual glob, or all the usual globs.
func (c *checker) suggestGlob(glob string, also []string) string {
	paths := append(c.paths(), also...)
	usual := starred(paths)
	if near, ok := nearest(glob, append(usual, paths...)); ok {
		return suggest(near, []string{near})
	}
	return suggest(glob, usual)
}

// mayMatch reports whether a glob may match a parameter of a layer whose parameters are not known.
func mayMatch(glob, layer string) bool {
	literal := glob
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		literal = glob[:i]
	}
	return strings.HasPrefix(literal, layer+".") || strings.HasPrefix(layer+".", literal)
}

// starred returns the globs that stand for one parameter name in all layers of a list: "decoder.*.weight".
func starred(paths []string) []string {
	var globs []string
	for _, p := range paths {
		part := strings.Split(p, ".")
		g := part[0] + ".*." + part[len(part)-1]
		if !slices.Contains(globs, g) {
			globs = append(globs, g)
		}
	}
	return globs
}

func intervalText(i layers.Interval) string {
	if i == layers.Everything {
		return "any value"
	}
	low, high := fmt.Sprintf("[%g", i.Low), fmt.Sprintf("%g]", i.High)
	if math.IsInf(i.Low, -1) {
		low = "(-inf"
	}
	if math.IsInf(i.High, 1) {
		high = "inf)"
	}
	return "values in " + low + "," + high
}
