package cli

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A variational model whose decoder reads the class, and a head that computes samples from noise and the class, draw samples of the class that is
// given, and none without it.
func TestSamplesOfAGivenClass(t *testing.T) {
	b := newBench(t)
	rows := "x,y,kind,dose\n"
	for i := range 60 {
		high := i % 2
		rows += fmt.Sprintf("%g,%g,%s,%d\n", 0.1+0.8*float64(high)+0.01*float64(i%5), 0.1+0.01*float64(i%7), []string{"low", "high"}[high], 1+i%3)
	}
	b.write("rows.csv", rows)
	b.write("models.toml", `
[model.drawn]
dataset   = { file = "rows.csv", labels = "kind", columns = { dose = "dose" } }
encoder   = [{ kind = "gaussian", units = 1 }]
decoder   = [{ kind = "dense", from = ["previous", "labels"] }]
loss      = [{ kind = "mse", weight = 100, sample_weight = "dose" }, { kind = "gaussian_kl" }]
optimizer = { kind = "adam", learning_rate = 0.02 }
train     = { epochs = 150, batch = 20 }

[model.head]
extends      = "drawn"
encoder      = [{ kind = "dense", units = 1 }]
decoder      = []
column.noise = { kind = "normal", shape = [2] }
head.made    = { from = ["noise", "labels"], layers = [{ kind = "dense", units = 2 }] }
loss         = [{ kind = "mse", on = "made", against = "images" }]

[model.diffusion]
extends      = "drawn"
column.level = { kind = "uniform" }
column.noise = { kind = "normal", like = "images" }
encoder      = [{ kind = "diffuse", steps = 10 }, { kind = "dense", units = 16, activation = "tanh" }, { kind = "condition", by = "time" }]
decoder      = [{ kind = "dense" }]
head.time    = { from = ["level", "labels"], layers = [{ kind = "dense", units = 16, activation = "tanh" }, { kind = "dense", units = 16 }] }
loss         = [{ kind = "mse", against = "noise" }]

[model.plain]
extends = "drawn"
decoder = [{ kind = "dense" }]
train   = { epochs = 1 }
`)
	b.must(0, "train", "drawn", "--quiet")
	b.must(0, "train", "plain", "--quiet")
	b.must(0, "train", "head", "--quiet")
	b.must(0, "train", "diffusion", "--quiet")
	b.contains("values beyond the range of a diffusion", b.must(0, "train", "diffusion", "--set", "dataset.scale=standardise", "--epochs", "1", "-o", "runs/beyond").stderr, "drawn ones are limited to 0 to 1: set centre and range")
	mean := func(run, class string) (sum float64) {
		b.must(0, "sample", "runs/"+run, "--count", "40", "--column", "labels="+class, "-o", run+class+".csv")
		lines := strings.Split(strings.TrimSpace(b.read(run+class+".csv")), "\n")[1:]
		for _, line := range lines {
			v, err := strconv.ParseFloat(strings.Split(line, ",")[0], 64)
			fatal.If(t, err)
			sum += v / float64(len(lines))
		}
		return sum
	}
	for _, run := range []string{"drawn", "head", "diffusion"} {
		if low, high := mean(run, "low"), mean(run, "high"); low > 0.3 || high < 0.7 {
			t.Errorf("%s: got the means %v of low and %v of high, want about 0.12 and 0.92", run, low, high)
		}
	}
	b.must(0, "sample", "runs/drawn", "--count", "40", "--column", "labels=0", "-o", "number.csv")
	expect.Equal(t, b.read("number.csv"), b.read("drawnhigh.csv"), "class 0 is not high, the first name")
	b.must(0, "sample", "runs/diffusion", "--count", "3", "--steps", "5", "--column", "labels=low", "-o", "x.csv")
	fails := func(what string, code int, run string, want string, more ...string) {
		b.contains(what, b.must(code, append([]string{"sample", run, "--count", "3", "-o", "x.csv"}, more...)...).stderr, want)
	}
	fails("no class", exitUsage, "runs/drawn", `computed from the column "labels", which is not drawn and not given`)
	fails("no class for the noise", exitUsage, "runs/head", `made is also computed from the column "labels", which is not drawn and not given: give its value`)
	fails("no class for a diffusion, whose codes are decoded to noise", exitUsage, "runs/diffusion", `not given`)
	fails("unknown class", exitUsage, "runs/drawn", `unknown class "hihg" of labels: did you mean "high"`, "--column", "labels=hihg")
	fails("number of no class", exitUsage, "runs/drawn", `unknown class "2" of labels`, "--column", "labels=2")
	fails("steps without a class", exitUsage, "runs/diffusion", `not given`, "--steps", "5")
	fails("part of a class", exitUsage, "runs/plain", `got 0.5, want a number, of type`, "--column", "labels=0.5")
	fails("unknown column", exitUsage, "runs/drawn", `unknown column "label": did you mean "labels"`, "--column", "label=high")
	fails("twice", exitUsage, "runs/drawn", "each name once", "--column", "labels=high", "--column", "labels=low")
	fails("no value", exitUsage, "runs/drawn", "want NAME=VALUE", "--column", "labels")
	fails("unused", exitUsage, "runs/drawn", `do not depend on "dose"`, "--column", "labels=high", "--column", "dose=1")
	fails("no number", exitUsage, "runs/drawn", "want numbers", "--column", "dose=much")
	fails("a class of no model", exitUsage, "runs/plain", `no part of the model reads "labels"`, "--column", "labels=low")
	fails("a model of no class", exitUsage, "runs/plain", `do not depend on "labels"`, "--column", "labels=1")
}
