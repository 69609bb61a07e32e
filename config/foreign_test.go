package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
)

// Text from other languages gets its TOML spelling.
func TestOtherLanguagesGetTheirTOML(t *testing.T) {
	for text, want := range map[string]string{
		"[model.m]\nencoder = [{ kind = \"dense\", units = 4 }]\ntrain.shuffle = True\n": "write true",
		"[model.m]\ntrain = { shuffle = True, epochs = 3 }\n":                            "write true",
		"[model.m]\nencoder = [{ kind = “dense” }]\n":                                    "write straight quotes",
		"[model.m]\nencoder = [{\"kind\": \"dense\"}]\n":                                 "set by =",
		"[model.m]\nencoder = [{ kind = \"mean_tokens\" }]\n":                            `did you mean "take_token"?`,
		"[model.m]\nencoder = [{ kind = \"sampling\", units = 4 }]\n":                    `did you mean "gaussian"?`,
		"[model.m]\nencoder = [{ kind = \"dense\", units = 4 }]\ndecoder = []\nloss = [{ kind = \"nt_xent\" }]\nview = [{ augment = [{ kind = \"crop\" }] }]\n": `layers = [{ kind = "dense", units = 64 }]`,
		"[model.m]\nencoder = [Dense(8)]\n":                                                 `{ kind = "dense", ... }`,
		"[model.m]\nencoder = []\n[[model.m.loss]]\nkind = \"mse\"\noptimizer = \"adam\"\n": "it is a key of the model",
		"[model.m]\nhead = None\n":                                                          "leave the key out",
		"[model.m]\nextends = null\n":                                                       "leave the key out",
		"// my model\n[model.m]\n":                                                          "a comment begins with #",
		"[model.m]\ntrain.epochs = 3 // enough\n":                                           "a comment begins with #",
		"[model.my model]\nextends = \"parts\"\n":                                           `[model."my model"]`,
		"[[model.my model.loss]]\nkind = \"mse\"\n":                                         `[model."my model"]`,
		"model:\n  m:\n    encoder:\n      - kind: dense\n":                                 "this is YAML",
		"# a comment\nmodel: m\n":                                                           "this is YAML",
		"{\n  \"model\": { \"m\": { \"extends\": \"parts\" } }\n}\n":                        "this is JSON",
		"[model.m]\nloss = \"mse\"\n":                                                       `write [{ kind = "mse" }]`,
		"[model.m]\nloss = { kind = \"mse\" }\n":                                            "write [{ ... }]",
		"[model.m]\n[model.m.encoder]\nkind = \"dense\"\nunits = 3\n":                       "the header of an element has double brackets",
		"[model.m]\nencoder = [{ kind = \"qwertz\" }]\n":                                    "`tessera list layers` lists all",
		"[model.m]\nextends = \"qqqqqqqq\"\n" + manyModels("zzz"):                           "`tessera list models` lists all",
	} {
		f, err := Load("models.toml", []byte(text))
		if err == nil {
			err = f.Check()
		}
		expect.Error(t, err, want, text)
	}
}

// manyModels declares more models than a suggestion lists.
func manyModels(prefix string) (text string) {
	for i := range 20 {
		text += "[model." + strings.Repeat(prefix, i+2) + "]\n"
	}
	return text
}

// A header that is wrong is one error, without those that follow from what it should have declared.
func TestAWrongHeaderIsOneError(t *testing.T) {
	const rest = "\ndataset = \"swimmer\"\nencoder = [{ kind = \"dense\", units = 4 }]\nhead.class.layers = [{ kind = \"dense\" }]\n"
	for text, want := range map[string]string{
		"[m]" + rest + "[[model.m.loss]]\nkind = \"mse\"\n[[model.m.loss]]\nkind = \"cross_entropy\"\n": "a model begins with [model.m], a sweep with [sweep.m]",
		"[model.m]" + rest + "[model.m.loss]\nkind = \"mse\"\n":                                         "the header of an element has double brackets",
	} {
		f, err := Load("models.toml", []byte(text))
		if err == nil {
			err = f.Check()
		}
		expect.Error(t, err, want, text)
		expect.Equal(t, strings.Count(err.Error(), "models.toml:"), 1, err.Error())
	}
}
