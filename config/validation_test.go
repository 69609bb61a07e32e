package config

import (
	"strings"
	"testing"
)

func TestMetricsBetweenEpochsAreCheckedAtTheirPlace(t *testing.T) {
	const text = `[model.m]
dataset = { name = "bars", validation = 0.1 }
encoder = [{ kind = "dense", units = 4 }]
[model.m.train]
metrics = ["loss", "hoyer", "max_approx*"]
`
	if err := load(t, text+"[sweep.s]\nmodel = \"m\"\nseeds = [1, 2]\nselect = \"loss\"\n").Check(); err != nil {
		t.Error(err)
	}
	for old, c := range map[string][2]string{
		`"hoyer"`:            {`"hoier"`, `models.toml:5:20: model "m": train: metrics[1]: unknown metric "hoier"`},
		`validation = 0.1`:   {`validation = 0`, `models.toml:5:11: model "m": train: metrics: are measured on validation images, but validation = 0`},
		`"bars", validation`: {`"nobars", validation`, "unknown"},
	} {
		if err := load(t, strings.Replace(text, old, c[0], 1)).Check(); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %s", c[0], err, c[1])
		}
	}
}
