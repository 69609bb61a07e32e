package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The errors and likelihoods of samples average to what eval measures; samples unlike those of the training have a large error and a small likelihood.
func TestScoresOfSamplesFindWhatIsUnlikeTheTraining(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(3, 1))
	row := func(alike bool) string {
		a, c := r.NormFloat64(), 100*r.NormFloat64()
		if alike {
			c = 100 * a
		}
		return fmt.Sprintf("%g,%g,%g", a+0.05*r.NormFloat64(), c+5*r.NormFloat64(), -a+0.05*r.NormFloat64())
	}
	known, mixed := "x,y,z\n", "name,x,y,z\n"
	for i := range 80 {
		known += row(true) + "\n"
		mixed += fmt.Sprintf("r%d,%s\n", i, row(i < 60))
	}
	b.write("known.csv", known)
	b.write("mixed.csv", mixed)
	b.write("models.toml", `
[model.axes]
kind       = "pca"
components = 1
dataset    = { file = "known.csv", scale = "standardise" }
[model.density]
kind       = "gmm"
covariance = "full"
components = 1
dataset    = { file = "known.csv", scale = "standardise" }
[model.net]
dataset = { file = "known.csv", scale = "standardise", missing = "nan" }
encoder = [{ kind = "dense", units = 1 }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }]
train   = { epochs = 200, batch = 16 }
`)
	for _, c := range []struct {
		model, value, metric string
		sign                 float64
	}{{"axes", "error", "mse", 1}, {"density", "log_likelihood", "log_likelihood", -1}, {"net", "error", "mse", 1}} {
		trained := b.must(0, "train", c.model)
		if c.model == "density" && strings.Contains(trained.stderr, "explained") {
			t.Errorf("a density is judged by reconstructions:\n%s", trained.stderr)
		}
		b.must(0, "encode", "runs/"+c.model, "--in", "mixed.csv", "--value", c.value, "--out", "scores.csv")
		lines, err := csv.NewReader(strings.NewReader(b.read("scores.csv"))).ReadAll()
		fatal.If(t, err)
		if want := "name," + c.value; strings.Join(lines[0], ",") != want || len(lines) != 81 {
			t.Fatalf("%s: got the header %q and %d lines, want %q and 81", c.model, lines[0], len(lines), want)
		}
		sum, alike, other := 0.0, math.Inf(-1), 0
		for i, line := range lines[1:] {
			v, err := strconv.ParseFloat(line[1], 64)
			fatal.If(t, err)
			if sum += v / 80; i < 60 {
				alike = max(alike, c.sign*v)
			} else if c.sign*v > alike {
				other++
			}
		}
		if other < 17 {
			t.Errorf("%s: %d of 20 unlike samples score beyond all others", c.model, other)
		}
		measured := b.must(0, "eval", "runs/"+c.model, "--in", "mixed.csv", "--metrics", c.metric).stdout
		at := strings.Index(measured, "\n"+c.metric+" ")
		if at < 0 {
			t.Fatalf("no %s in:\n%s", c.metric, measured)
		}
		want, err := strconv.ParseFloat(strings.Fields(measured[at:])[1], 64)
		fatal.If(t, err)
		expect.Near(t, sum, want, 1e-3*math.Abs(want), c.model, "the mean")
	}
	b.write("models.toml", `
[model.other]
dataset = { name = "csv", file = "known.csv", columns = { images = ["x"], target = "z" } }
encoder = [{ kind = "dense", units = 1 }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse", against = "target" }]
train   = { epochs = 1, batch = 16 }
`)
	b.must(0, "train", "other")
	b.contains("an output that is no copy", b.must(exitUsage, "encode", "runs/other", "--in", "known.csv", "--value", "error", "--out", "x.npy").stderr, `unknown value "error"`)
	b.must(0, "encode", "runs/other", "--in", "known.csv", "--value", "output", "--out", "other.csv")
	if header, _, _ := strings.Cut(b.read("other.csv"), "\n"); header == "x" {
		t.Error("a prediction of z has the name x")
	}
	b.contains("stderr", b.must(exitUsage, "encode", "runs/axes", "--in", "mixed.csv", "--value", "log_likelihood", "--out", "x.npy").stderr, `"error"`)
}

// A transcoder reconstructs no samples: its error, its early stopping and its dead units are measured against the target.
func TestATranscoderIsMeasuredAgainstItsTarget(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(5, 1))
	rows := "a,b,c,d\n"
	for range 60 {
		x, y := r.NormFloat64(), r.NormFloat64()
		rows += fmt.Sprintf("%g,%g,%g,%g\n", x, y, 5-x*y, max(x, 2*y))
	}
	b.write("x.csv", rows)
	b.write("models.toml", `
[model.across]
dataset = { file = "x.csv", columns = { images = ["a", "b"], target = ["c", "d"] }, validation = 0.2 }
encoder = [{ kind = "dense", units = 6 }, { kind = "top_k", k = 3 }, { kind = "aux_k", of = "encoder.0", k = 2 }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse", against = "target" }, { kind = "aux_k", weight = 1.0 }]
hook    = { early_stopping = { patience = 2 } }
train   = { epochs = 2, batch = 16 }
`)
	b.contains("mean_bias", b.must(exitConfig, "train", "across", "--set", "hook.mean_bias={}").stderr, `its output is compared with "target"`)
	out := b.must(0, "train", "across").stderr
	if strings.Contains(out, "useless") || strings.Contains(out, "val_mse") {
		t.Error(out)
	}
	lines := strings.Split(strings.TrimSpace(b.read("runs/across/metrics.jsonl")), "\n")
	var last struct {
		MSE    float64  `json:"val_loss.mse"`
		AuxK   float64  `json:"val_loss.aux_k"`
		ValMSE *float64 `json:"val_mse"`
	}
	fatal.If(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	if last.MSE <= 0 || last.AuxK != last.MSE || last.ValMSE != nil { // no unit is dead: aux_k is the squared error
		t.Errorf("got %+v", last)
	}
	b.contains("eval", b.must(exitUsage, "eval", "runs/across", "--metrics", "mse,useful_units,explained_variance").stderr,
		`mse, useful_units, explained_variance: the output is no reconstruction: the loss mse compares it with "target"`)
}

// The output of a transcoder has the unit and the names of its target, not those of the samples, and is no sample that could be drawn.
func TestTheOutputOfATranscoderHasTheUnitOfItsTarget(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(6, 1))
	rows, rmse := "a,b,c,d\n", 0.0
	var want []float64
	for range 60 {
		x, y := r.NormFloat64(), r.NormFloat64()
		want = append(want, x-y, x+y)
		rows += fmt.Sprintf("%g,%g,%g,%g\n", 1000+100*x, 500+10*y, x-y, x+y)
	}
	b.write("x.csv", rows)
	b.write("models.toml", `
[model.across]
dataset   = { file = "x.csv", columns = { images = ["a", "b"], target = ["c", "d"] }, scale = "standardise" }
encoder   = [{ kind = "dense", units = 2 }]
decoder   = [{ kind = "dense" }]
loss      = [{ kind = "mse", against = "target" }]
optimizer = { kind = "lbfgs" }
train     = { epochs = 30 }
[model.drawn]
extends = "across"
encoder = [{ kind = "gaussian", units = 2 }]
loss    = [{ kind = "mse", against = "target" }, { kind = "gaussian_kl" }]
optimizer = { kind = "adam" }
`)
	b.must(0, "train", "across")
	b.must(0, "encode", "runs/across", "--in", "x.csv", "--out", "codes.npy")
	b.must(0, "decode", "runs/across", "--in", "codes.npy", "--out", "decoded.csv")
	b.must(0, "encode", "runs/across", "--in", "x.csv", "--value", "output", "--out", "output.csv")
	expect.Equal(t, b.read("output.csv"), b.read("decoded.csv"), "output and decoded codes")
	lines := strings.Split(strings.TrimSpace(b.read("decoded.csv")), "\n")
	expect.Equal(t, lines[0], "c,d", "names")
	for i, cell := range strings.Split(strings.Join(lines[1:], ","), ",") {
		v, err := strconv.ParseFloat(cell, 64)
		fatal.If(t, err)
		rmse = max(rmse, math.Abs(v-want[i]))
	}
	if rmse > 0.1 {
		t.Errorf("the outputs differ by %g from the target, which the model has learned", rmse)
	}
	b.contains("parts", b.must(0, "eval", "runs/across").stdout, "largest columns", " c")
	b.must(0, "train", "drawn", "--epochs", "1")
	for _, args := range [][]string{{"sample", "runs/across"}, {"sample", "runs/across", "--mixture"}, {"sample", "runs/drawn"}} {
		b.contains("samples", b.must(exitUsage, append(args, "--count", "3", "-o", "s.csv")...).stderr, `no reconstruction: the loss mse compares it with "target"`)
	}
}
