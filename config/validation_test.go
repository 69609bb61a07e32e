package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestMetricsBetweenEpochsAreCheckedAtTheirPlace(t *testing.T) {
	const text = `[model.m]
dataset = { name = "bars", validation = 0.1 }
encoder = [{ kind = "dense", units = 4 }]
[model.m.train]
metrics = ["loss", "hoyer", "max_approx*"]
`
	expect.NoError(t, load(t, text+"[sweep.s]\nmodel = \"m\"\nseeds = [1, 2]\nselect = \"loss\"\n").Check())
	for old, c := range map[string][2]string{
		`"hoyer"`:            {`"hoier"`, `models.toml:5:20: model "m": train: metrics[1]: unknown metric "hoier"`},
		`validation = 0.1`:   {`validation = 0`, `models.toml:5:11: model "m": train: metrics: are measured on validation images, but validation = 0`},
		`"bars", validation`: {`"nobars", validation`, "unknown"},
	} {
		expect.Error(t, load(t, strings.Replace(text, old, c[0], 1)).Check(), c[1], c[0])
	}
}
