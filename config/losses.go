package config

import (
	"fmt"
	"slices"

	"tessera/augment"
	"tessera/data"
	"tessera/losses"
	"tessera/table"
)

// loss checks that what a term reads exists, and that it is defined on it.
func (c *checker) loss(part string, l Loss) {
	reads := l.Loss.Reads()
	if reads.Per == losses.Parameter {
		c.glob(part, l.Kind, "on", l.On, c.views()...)
		return
	}
	if reads.Atoms {
		if want := l.Loss.On(); l.On != want {
			c.report(part, l.Kind, "on", fmt.Sprintf("on: got %q, but %s is taken on the %s", l.On, l.Kind, want), fmt.Sprintf("write %q, or leave it out", want))
			return
		}
		c.atoms(part, l)
	}
	if reads.On && !c.hasValue(part, l.Kind, "on", l.On) {
		return
	}
	for _, name := range reads.Values {
		c.hasValue(part, l.Kind, c.keyHolding(l.Loss, name), name)
	}
	if s, ok := l.Loss.(losses.ShapeChecker); ok && c.layout.Input != nil && len(c.layout.Decoder) > 0 {
		if err := s.CheckShape(c.layout.Input); err != nil {
			c.report(part, l.Kind, table.KeyOf(err), err.Error(), "")
		}
	}
	if reads.On {
		c.value(part, l, reads)
	}
}

// value checks that the value that `on` names is of a size and a range that suit the term.
func (c *checker) value(part string, l Loss, reads losses.Reads) {
	size := c.layout.Size(l.On)
	if n, ok := l.Loss.(losses.UnitsChecker); ok && size > 0 {
		if err := n.CheckUnits(size); err != nil {
			c.report(part, l.Kind, "", err.Error(), "")
		}
	}
	if pixels := product(c.layout.Input); reads.Images && l.On != losses.Output && size > 0 && pixels > 0 && size != pixels {
		c.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s compares it with images of %d", l.On, size, l.Kind, pixels), "")
	}
	if reads.Views && len(c.model.Views) == 0 && !c.model.inDoubt("view") {
		c.report(part, l.Kind, "", fmt.Sprintf("%s compares the two views of each image, but the model has none", l.Kind), "give one "+c.model.header("view"))
	}
	if reads.Teacher && c.model.Hooks["teacher"] == nil && !c.model.inDoubt("hook") {
		c.report(part, l.Kind, "", fmt.Sprintf("%s reads the values of a teacher, but the model has none", l.Kind), fmt.Sprintf("declare it: [model.%s.hook.teacher]", table.KeyText(c.model.Name)))
	}
	if reads.Labels {
		c.labels(part, l, size)
	}
	if reads.Unit {
		c.unitInterval(part, l)
	}
}

// labels checks that the data set has labels, and that the value has a unit for each class.
func (c *checker) labels(part string, l Loss, size int) {
	source := c.model.Dataset.Source
	if source == nil || c.model.origin.Doubt("dataset") != nil {
		return
	}
	if data.IsUnlabelled(source) {
		c.report(part, l.Kind, "", fmt.Sprintf("%s needs labels, but %s has none", l.Kind, c.model.Dataset.Name), "take a data set with labels, such as fashion-mnist")
		return
	}
	if classes := c.model.Classes(); classes > 0 && size > 0 && size != classes {
		c.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s has %d classes", l.On, size, c.model.Dataset.Name, classes), "")
	}
}

// hasValue checks that the model has a value that the key of a part names.
func (c *checker) hasValue(part, kind, key, name string) bool {
	if c.model.hasHead(name) || name == losses.Output && c.model.inDoubt("decoder") || c.model.inDoubt("head") {
		return true // a head that is not placed is reported itself
	}
	values := c.layout.Values()
	if slices.Contains(values, name) {
		return true
	}
	if name == losses.Output {
		c.report(part, kind, key, fmt.Sprintf("%s reads the output, but the model has no decoder", kind), "leave the term out, or give a decoder")
		return false
	}
	c.report(part, kind, key, fmt.Sprintf("%s: there is no value %q", key, name), table.Suggest(name, values))
	return false
}

// keyHolding is the key of a part whose value is that name.
func (c *checker) keyHolding(l losses.Loss, name string) string {
	for _, f := range table.Fields(l) {
		if f.Value.CanInterface() && f.Value.Interface() == any(name) {
			return f.Key
		}
	}
	return "on"
}

// unread checks that every value but the code is read by a term, directly or by way of a head: nothing else trains it. Where the terms are not
// sound it is not known what reads the output.
func (c *checker) unread(sound bool) {
	m := c.model
	if m.inDoubt("loss") || slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil }) {
		return
	}
	read := map[string]bool{}
	for _, l := range m.Losses {
		reads := l.Loss.Reads()
		for _, name := range append(slices.Clone(reads.Values), l.On) {
			read[name] = true
		}
	}
	for _, h := range slices.Backward(c.layout.Heads) {
		if !read[h.Name] {
			c.report(headPart(h.Name), "", "", fmt.Sprintf("no loss reads the head %q: nothing trains it", h.Name), fmt.Sprintf("add a loss with on = %q", h.Name))
		}
		read[h.From] = true
	}
	if sound && len(m.Losses) == 0 || sound && len(m.Decoder) > 0 && !read[losses.Output] && !m.inDoubt("decoder") {
		problem, hint := "no loss compares the output with the images", "add one of "+table.Quoted(reconstructions())
		if len(m.Decoder) == 0 {
			problem, hint = "there is no loss", "valid: "+table.Quoted(losses.Registry.Names())
		}
		c.report("", "", "loss", problem, hint)
	}
}

// reconstructions lists the terms that compare the output with the images.
func reconstructions() (names []string) {
	for _, e := range losses.Registry.All() {
		if l := e.New(); l.On() == losses.Output && l.Reads().Images {
			names = append(names, e.Name)
		}
	}
	return names
}

// drawn checks the views: one for both or one for each, of images that the augmentations take, and read by a loss.
func (c *checker) drawn() {
	m := c.model
	if len(m.Views) == 0 || m.inDoubt("view") {
		return
	}
	if len(m.Views) > 2 {
		c.report("view[2]", "", "", fmt.Sprintf("an image has two views, but %d are declared", len(m.Views)), "leave all but two out, or all but one, which both are drawn by")
	}
	if !m.inDoubt("loss") && !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil || l.Loss.Reads().Views }) {
		c.report("view[0]", "", "", "no loss compares the views", `add one that does, such as kind = "nt_xent"`)
	}
	for i, v := range m.Views {
		for k, a := range v.Augment {
			part := fmt.Sprintf("view[%d].augment[%d]", i, k)
			if a == nil || c.layout.Input == nil || m.origin.Doubt(part) != nil {
				continue
			}
			if err := augment.CheckShape(a, c.layout.Input); err != nil {
				c.report(part, language.NameOf(m.origin, part, a), "", err.Error(), "")
			}
		}
	}
	if !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss != nil && !l.Loss.Reads().Views && l.Loss.Reads().On }) && m.Distorted() {
		c.report("adversarial", "", "", "no loss reads the images themselves, only their views: there is nothing to attack", "leave it out")
	}
}
