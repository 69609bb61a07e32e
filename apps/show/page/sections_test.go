package page_test

import (
	"strings"
	"testing"
)

func TestAGenerativeModelShowsDrawnSamples(t *testing.T) {
	text := rendered(t, declaredRun(t, `
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "gaussian", units = 2 }]
decoder = [{ kind = "dense", activation = "sigmoid" }]
loss = [{ kind = "bce", weight = 64.0 }, { kind = "gaussian_kl" }]
train = { epochs = 1 }
`))
	contains(t, text, "<td>variational auto-encoder</td>", "<h2>Drawn samples</h2>")
	if strings.Contains(text, "Samples per second") {
		t.Error("the speed of the machine is a curve")
	}
	if text := rendered(t, run(t, "swimmers")); strings.Contains(text, "Drawn samples") {
		t.Error("an auto-encoder is no distribution of images")
	}
}
