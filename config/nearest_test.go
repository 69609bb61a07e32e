package config

import (
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// A --set path that does not exist is answered by the path of the model with the same last name that is nearest.
func TestAWrongPathSuggestsTheNearestOne(t *testing.T) {
	file, err := Load("models.toml", []byte(`[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 5 }, { kind = "residual", layers = [{ kind = "dense", units = 5 }] }]
loss = [{ kind = "mse" }]
`))
	fatal.If(t, err)
	for path, want := range map[string]string{
		"encoder.layers.0.units": `did you mean "encoder.1.layers.0.units"?`,
		"encoder.5.units":        "declare further ones in a file",
		"encoder.units":          `did you mean "encoder.0.units"?`,
		"loss.weight":            `did you mean "loss.0.weight"?`,
		"train.learning_rate":    `did you mean "optimizer.learning_rate"?`,
		"encoder.5.size":         "declare further ones in a file",
	} {
		set, err := ParseSet(path + "=3")
		fatal.If(t, err)
		if _, err = file.Model("m", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestATableBesideElementsOfItsNameIsOneError(t *testing.T) {
	const single, double = "[model.m.encoder]\nkind = \"dense\"\n", "[[model.m.encoder]]\nkind = \"dense\"\nunits = 3\n"
	for _, text := range []string{single + double, double + single} {
		file, err := Load("models.toml", []byte("[model.m]\n"+text))
		if err == nil {
			err = file.Check()
		}
		if err == nil || strings.Count(err.Error(), "models.toml:") != 1 || !strings.Contains(err.Error(), "double ones an element of an array") {
			t.Errorf("%s: got %v, want one error", text, err)
		}
	}
}

// Keys of other programs are answered by the key of the same meaning.
func TestTheKeysOfOtherProgramsAreKnown(t *testing.T) {
	for text, want := range map[string]string{
		`dataset = { name = "text", file = "x", min_count = 3 }`: "least",
		`dataset = { name = "text", file = "x", max_df = 0.5 }`:  "most",
		`encoder = [{ kind = "gaussian_noise", sigma = 0.1 }]`:   "stddev",
		`encoder = [{ kind = "upsample", scale_factor = 2 }]`:    "factor",
		`loss = [{ kind = "gaussian_kl", beta = 4.0 }]`:          "weight",
		`train = { bs = 4 }`: "batch",
		"encoder = [{ kind = \"dense\", units = 3 }]\n[sweep.s]\nmodel = \"m\"\nseed = [1, 2]": "seeds",
	} {
		file, err := Load("models.toml", []byte("[model.m]\n"+text))
		if err == nil {
			err = file.Check()
		}
		if want = `did you mean "` + want + `"?`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	file, err := Load("models.toml", []byte("[sweep.s]\nmodel = \"shallow\"\nseeds = 3\n"))
	if err == nil {
		err = file.Check()
	}
	if err == nil || !strings.Contains(err.Error(), "such as [1, 2, 3]") {
		t.Errorf("a number of seeds: got %v", err)
	}
}
