package config

import (
	"fmt"

	"tessera/attack"
)

// Adversarial makes a model learn from attacked images: it should give back the clean ones for them.
type Adversarial struct {
	attack.Attack
	Share float64 `toml:"share" want:"in (0,1]" doc:"of the images of a batch are attacked"`
}

// Defaults sets what holds where the table says nothing.
func (a *Adversarial) Defaults() { *a = Adversarial{Attack: attack.Default(), Share: 1} }

// pgdKeys are the keys that only an attack of several steps has.
var pgdKeys = []string{"steps", "step_size"}

// adversarial refuses them where the attack is one step of length epsilon, and takes their defaults away.
func (c *checker) adversarial() {
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
