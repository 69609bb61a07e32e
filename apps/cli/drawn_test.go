package cli

import (
	"testing"

	"tessera/internal/expect"
)

// Commands that draw a column at random print a note that names the column, and draw the same values again in a second call.
// summary names the kind of the draw.
func TestCommandsSayWhatIsDrawn(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.noisy]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 4 }]
column.noise = { kind = "normal", shape = [2] }
head.y = { from = ["code", "noise"], layers = [{ kind = "dense", units = 3 }] }
loss = [{ kind = "mse" }, { kind = "l1", on = "y" }]
train = { epochs = 1 }
`)
	b.contains("summary", b.must(0, "summary", "noisy").stdout, "noise (drawn: normal)", "head.y.0")
	b.contains("the graph", b.must(0, "summary", "noisy", "--dot").stdout, "drawn: normal")
	b.must(0, "train", "noisy", "--quiet", "--out", "run")
	b.write("x.npy", npyText("|u1", "(2, 8, 8)", make([]byte, 128)))
	b.contains("encode", b.must(0, "encode", "run", "--in", "x.npy", "--value", "y", "-o", "a.csv").stderr, `tessera: note: drawn by the seed of the run (1) and the place of each sample: "noise"`)
	b.must(0, "encode", "run", "--in", "x.npy", "--value", "y", "-o", "b.csv")
	expect.Equal(t, b.read("a.csv"), b.read("b.csv"), "two encodings of the same samples")
	expect.Equal(t, b.must(0, "encode", "run", "--in", "x.npy", "-o", "c.csv").stderr, "", "the code needs no drawn column, but encode says")
	first, second := b.must(0, "eval", "run", "--json").stdout, b.must(0, "eval", "run", "--json").stdout
	expect.Equal(t, first, second, "two evaluations")
}
