package config

import (
	"fmt"
	"slices"

	"tessera/augment"
)

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
