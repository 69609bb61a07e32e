package train

import "testing"

// A head that reads columns gets their values for both views of a sample.
func TestViewsOfAHeadThatReadsColumns(t *testing.T) {
	m := model(t, `
[model.m]
dataset = { name = "shapes", count = 60 }
encoder = [{ kind = "dense", units = 4 }]
decoder = []
column.noise = { kind = "normal", shape = [2] }
column.other = { kind = "other", of = "images" }
head.y = { from = ["code", "noise", "other"], layers = [{ kind = "dense", units = 3 }] }
loss = [{ kind = "nt_xent", on = "y" }]
train = { epochs = 2, batch = 20, checkpoint_seconds = 0 }
[[model.m.view]]
augment = [{ kind = "noise" }]
`)
	interruptedEverywhere(t, m, apart())
}
