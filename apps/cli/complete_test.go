package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// Models trained with missing entries, and a pca model trained without them, complete a table of rank two almost exactly.
func TestCompleteFillsMissingEntries(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(1, 2))
	var whole, holed strings.Builder
	whole.WriteString("name,a,b,c,d\n")
	holed.WriteString("name,a,b,c,d\n")
	var truth [][]float64
	for i := range 200 {
		u, v := r.Float64(), r.Float64()
		row := []float64{u, v, (u + v) / 2, (u - v) / 2}
		truth = append(truth, row)
		gone := r.IntN(8) // one value of the row, or none
		for k, x := range row {
			text := strconv.FormatFloat(x, 'f', 5, 64)
			if k == 0 {
				fmt.Fprintf(&whole, "s%d", i)
				fmt.Fprintf(&holed, "s%d", i)
			}
			whole.WriteString("," + text)
			if k == gone {
				text = ""
			}
			holed.WriteString("," + text)
		}
		whole.WriteString("\n")
		holed.WriteString("\n")
	}
	b.write("whole.csv", whole.String())
	b.write("holed.csv", holed.String())
	b.write("models.toml", `
[model.pca]
kind = "pca"
components = 2
dataset = { name = "csv", file = "whole.csv" }

[model.pca-holed]
kind = "pca"
components = 2
dataset = { name = "csv", file = "holed.csv", missing = "nan" }

[model.nmf-holed]
kind = "nmf"
components = 2
dataset = { name = "csv", file = "holed.csv", missing = "nan", scale = "minmax" }

[model.holed]
dataset = { name = "csv", file = "holed.csv", missing = "nan" }
encoder = [{ from = ["images", "observed"], kind = "dense", units = 32, activation = "tanh" }, { kind = "dense", units = 2 }]
decoder = [{ kind = "dense", bias = true }]
optimizer.learning_rate = 0.01
train = { epochs = 150, batch = 16 }
`)
	for model, most := range map[string]float64{"pca": 0.01, "pca-holed": 0.01, "nmf-holed": 0.4, "holed": 0.2} {
		b.must(0, "train", model)
		b.contains(model, b.must(0, "complete", "runs/"+model, "--in", "holed.csv", "--out", "filled-"+model+".csv").stdout, "entries completed")
		was, now := strings.Split(holed.String(), "\n"), strings.Split(b.read("filled-"+model+".csv"), "\n")
		if len(was) != len(now) {
			t.Fatalf("%s: %d lines, want %d", model, len(now), len(was))
		}
		worst, filled := 0.0, 0
		for i := range truth {
			before, after := strings.Split(was[i+1], ","), strings.Split(now[i+1], ",")
			for k, cell := range before {
				if cell != "" && cell != after[k] {
					t.Fatalf("%s: line %d has changed: %q, was %q", model, i, after, before)
				}
				if cell == "" {
					v, err := strconv.ParseFloat(after[k], 64)
					fatal.If(t, err)
					worst, filled = max(worst, math.Abs(v-truth[i][k-1])), filled+1
				}
			}
		}
		if filled < 50 || worst > most {
			t.Errorf("%s: the worst of %d entries is wrong by %v", model, filled, worst)
		}
		b.contains("nothing to do", b.must(4, "complete", "runs/"+model, "--in", "whole.csv", "--out", "x.csv").stderr, "has no missing entries")
	}
	b.write("empty.csv", "name,a,b,c,d\nx,,,,\ny,0.1,,0.2,0.3\n")
	b.contains("an empty sample", b.must(4, "complete", "runs/holed", "--in", "empty.csv", "--out", "e.csv").stderr, "nothing is known of sample 0", "--empty-rows")
	b.must(0, "complete", "runs/holed", "--in", "empty.csv", "--out", "e.csv", "--empty-rows")
	b.write("fewer.csv", "name,a,B\nx,1,\n")
	b.contains("other columns", b.must(4, "complete", "runs/holed", "--in", "fewer.csv", "--out", "e.csv").stderr, "got 2 columns of values, want 4", `unknown to the training: "B"`)
}
