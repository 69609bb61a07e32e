package config

import (
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// A start may be the name of a model, whose run is runs/NAME, or a folder.
func TestAStartMayBeANameOrAFolder(t *testing.T) {
	const text = "[model.m]\nencoder = [{ kind = \"dense\", units = 4 }]\nstart = %q\n"
	for short, run := range map[string]string{"base": "runs/base", "runs/x": "runs/x", `C:\x`: `C:\x`} {
		file := load(t, fmt.Sprintf(text, short))
		m := model(t, file, "m")
		if m.Start == nil || m.Start.Run != run || m.Start.On != "*" {
			t.Errorf("%s: got %+v, want the run %s", short, m.Start, run)
		}
		checkFillRoundTrip(t, m)
		expect.Equal(t, model(t, file, "m", fmt.Sprintf("start=%q", "other")).Start.Run, "runs/other", "--set start=other")
	}
}

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
		expect.Contains(t, string(m.Text()), key, "is not written")
		checkFillRoundTrip(t, m)
	}
}
