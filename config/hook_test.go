package config

import (
	"strings"
	"testing"

	"tessera/hooks"
)

const hooked = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
[model.m.hook.average]
decay = 0.5
[model.n]
extends = "m"
[model.n.hook.early_stopping]
patience = 3
`

func TestHooksAreTablesByTheirRegisteredName(t *testing.T) {
	f := load(t, hooked)
	m := model(t, f, "n", "hook.average.decay=0.25")
	if len(m.Hooks) != 2 || m.Hooks["average"].(*hooks.Average).Decay != 0.25 || m.Hooks["early_stopping"].(*hooks.EarlyStopping).Patience != 3 {
		t.Errorf("got %+v", m.Hooks)
	}
	checkFillRoundTrip(t, m)
	if text := string(Fill(m)); !strings.Contains(text, "\n[model.n.hook.average]\ndecay = 0.25\n\n[model.n.hook.early_stopping]\npatience = 3\n") {
		t.Errorf("filled to\n%s", text)
	}
	for old, now := range map[string]string{
		"[model.m.hook.average]": "[model.m.hook.avarage]", "decay = 0.5": "decay = 5", "patience = 3": "patients = 3",
	} {
		if err := load(t, strings.Replace(hooked, old, now, 1)).Check(); err == nil {
			t.Errorf("%s is taken", now)
		} else {
			t.Log(err)
		}
	}
}
