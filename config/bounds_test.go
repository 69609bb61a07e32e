package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// checked returns the error of a file with a model m on bars, "" if there is none.
func checked(t *testing.T, text string) string {
	t.Helper()
	f, err := Load("models.toml", []byte("[model.m]\n"+text))
	fatal.If(t, err)
	if err := f.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// Every number below is beyond what can be multiplied with another size.
func TestWholeNumbersHaveABound(t *testing.T) {
	for _, text := range []string{
		"encoder = [{ kind = \"dense\", units = 4611686018427387904 }]\n",
		"encoder = [{ kind = \"dense\", units = 2 }]\ntrain.batch = 9223372036854775807\n",
		"encoder = [{ kind = \"dense\", units = 2 }]\ntrain.epochs = 4294967296\n",
		"encoder = [{ kind = \"dense\", units = 2 }]\ndataset = { name = \"bars\", limit = 9223372036854775807 }\n",
		"kind = \"matrix_factorisation\"\ncomponents = 9223372036854775807\n",
		"kind = \"nmf\"\ncomponents = 2\niterations = 4611686018427387904\n",
	} {
		if got := checked(t, text); !strings.Contains(got, "want an integer") || !strings.Contains(got, "whole numbers are at most 2147483647") {
			t.Errorf("%s gives %q", text, got)
		}
	}
	expect.Equal(t, checked(t, "encoder = [{ kind = \"dense\", units = 2 }]\ntrain = { seed = 9223372036854775807, epochs = 2147483647 }\n"), "")
}

// A stack without layers is one error at the stack, whatever reads it.
func TestAStackWithoutLayersIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"encoder = [{ kind = \"dense\", units = 6 }, { kind = \"condition\", by = \"time\" }]\nhead.time = { layers = [] }":                                       "head.time: layers: got none",
		"encoder = [{ kind = \"dense\", units = 6 }, { kind = \"condition\", by = \"time\" }]\nhead.time = { layrs = [] }":                                        "unknown key \"layrs\"",
		"encoder = [{ kind = \"dense\", units = 6, from = [\"images\", \"a\"] }]\nhead.a = { from = \"b\", layers = [] }\nhead.b = { from = \"a\", layers = [] }": "head.a: layers: got none",
		"encoder = []": "the encoder is empty",
		"encoder = [{ kind = \"flatten\" }]\ndecoder = []\nhead.a = { layers = [{ kind = \"dense\", units = 3 }] }\nloss = [{ kind = \"cross_entropy\", on = \"a\" }]": "", // as the error of an empty one advises
		"encoder = []\ndecoder = [{ kind = \"dense\", from = [\"code\", \"encoder.0\"] }]":                                                                             "the encoder is empty",
		"encoder = []\nhead.a = { layers = [{ kind = \"dense\", units = 2, share = \"encoder.0\" }] }":                                                                 "the encoder is empty",
		"encoder = [{ kind = \"residual\", layers = [] }]":                                                                                                             "layers",
		"encoder = [{ kind = \"concat\", layers = [] }, { kind = \"relative\", layers = [] }]\nhead.a = { from = \"encoder.0\", layers = [{ kind = \"relu\" }] }":      "layers",
		"encoder = [{ kind = \"dense\", units = 2 }]\nhook.gradient_average = {}\ndecoder = []":                                                                        "",
	} {
		expect.Contains(t, checked(t, text), want, text)
	}
}

// A loss whose default value is a head that the model lacks says how the head is declared.
func TestALossSaysHowItsHeadIsDeclared(t *testing.T) {
	got := checked(t, "encoder = [{ kind = \"dense\", units = 2 }]\ndecoder = []\nloss = [{ kind = \"cross_entropy\" }]\n")
	expect.Contains(t, got, "[model.m.head.class]\n    layers = [{ kind = \"dense\" }]")
}

// A head whose loss has a mistake is not reported, too: its number of units follows from the loss.
func TestAWrongLossIsOneError(t *testing.T) {
	got := checked(t, "dataset = \"fashion-mnist\"\nencoder = [{ kind = \"flatten\" }]\ndecoder = []\nhead.class.layers = [{ kind = \"dense\" }]\nloss = [{ kind = \"crossentropy\", on = \"class\" }]\n")
	if !strings.Contains(got, `did you mean "cross_entropy"?`) || strings.Contains(got, "units") {
		t.Error(got)
	}
}

// No column is drawn from a drawn column, and the message does not list one as present.
func TestADrawnColumnIsDrawnFromTheData(t *testing.T) {
	got := checked(t, "encoder = [{ kind = \"dense\", units = 2 }]\ncolumn.a = { kind = \"other\", of = \"b\" }\ncolumn.b = { kind = \"normal\" }\nloss = [{ kind = \"mse\", mask = \"a\", sample_weight = \"b\" }]")
	if want := `of: "b" is a drawn column, and no column is drawn from another drawn one`; !strings.Contains(got, want) || !strings.HasSuffix(got, `columns of the data set: "images", "labels"`) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Keys as other libraries and courses call them.
func TestNamesOfCoursesAreUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"kind = \"kmeans\"\nk = 20":                                "components",
		"kind = \"nmf\"\nk = 20":                                   "components",
		"encoder = [{ kind = \"max_pool\", size = 2 }]":            "kernel",
		"encoder = [{ kind = \"dropout\", p = 0.5 }]":              "rate",
		"encoder = [{ kind = \"dense\", out_features = 5 }]":       "units",
		"encoder = [{ kind = \"conv2d\", filters = 2, size = 3 }]": "kernel",
	} {
		expect.Contains(t, checked(t, text), `did you mean "`+want+`"?`, text, "gives", want)
	}
}
