package config

import (
	"strings"
	"testing"
)

// Keys that a model does not use are not written. The hash of the text, which identifies the trials of a sweep,
// therefore stays the same.
func TestKeysOfVariantsAreWrittenOnlyWhereTheyAreUsed(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
`
	plain := string(model(t, load(t, text), "m").Text())
	for key, value := range map[string]string{
		"freeze":       `["encoder.*"]`,
		"hook.prune":   `{ fraction = 0.3, from = 2, until = 5 }`,
		"start":        `{ run = "runs/x" }`,
		"hook.average": `{ decay = 0.99 }`,
	} {
		if strings.Contains(plain, key) {
			t.Errorf("%s is written without being used:\n%s", key, plain)
		}
		m := model(t, load(t, text), "m", key+"="+value)
		if !strings.Contains(string(m.Text()), key) {
			t.Errorf("%s is not written:\n%s", key, m.Text())
		}
		checkFillRoundTrip(t, m)
	}
}
