package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

// denoised returns a model with every kind of drawn column: noise as the input of a head, a negative and a level, a mask,
// weights and classes.
func denoised(t testing.TB, n int, sets ...string) *config.Model {
	return model(t, strings.ReplaceAll(`
[model.denoised]
dataset = { name = "csv", file = "FILE", validation = 0, scale = "standardise", columns = { images = ["a", "b", "c"], target = ["age", "dose"] } }
column.noise = { kind = "normal", shape = [2], stddev = 0.5 }
column.level = { kind = "uniform", low = 0.1, high = 0.9 }
column.negative = { kind = "other" }
column.mask = { kind = "bernoulli", like = "target", probability = 0.7 }
column.weight = { kind = "uniform", high = 2.0 }
column.class = { kind = "whole", below = 3 }
encoder = [{ kind = "dense", units = 3, activation = "tanh" }]
decoder = []
head.y = { from = ["noise", "level", "negative"], layers = [{ kind = "dense" }] }
head.class_of = { layers = [{ kind = "dense", units = 3 }] }
loss = [
  { kind = "mse", on = "y", against = "target", mask = "mask", sample_weight = "weight" },
  { kind = "cross_entropy", on = "class_of", against = "class" },
]
optimizer = { kind = "sgd", learning_rate = 0.1 }
train = { epochs = 3, batch = 64, checkpoint_seconds = 0 }
`, "FILE", patients(t, n)), sets...)
}

// drawnInStep returns the values of a column for the samples of a step, drawn by plain loops: one stream for every 16 samples.
func drawnInStep(m *config.Model, images *data.Images, column string, order []int, step int) (rows [][]float64) {
	for first := 0; first < len(order); first += 16 {
		r := random.Stream(m.Train.Seed, "column."+column+"/"+strconv.Itoa(first/16), uint64(step))
		for _, i := range order[first:min(first+16, len(order))] {
			var row []float64
			switch column {
			case "noise":
				row = []float64{0.5 * r.NormFloat64(), 0.5 * r.NormFloat64()}
			case "level":
				row = []float64{0.1 + 0.8*r.Float64()}
			case "weight":
				row = []float64{2 * r.Float64()}
			case "mask":
				for range 2 {
					bit := 0.0
					if r.Float64() < 0.7 {
						bit = 1
					}
					row = append(row, bit)
				}
			case "class":
				row = []float64{float64(r.IntN(3))}
			case "negative":
				k := r.IntN(images.Len() - 1)
				if k >= i {
					k++
				}
				values := make([]float32, 3)
				images.Batch(values, []int{k})
				row = []float64{float64(values[0]), float64(values[1]), float64(values[2])}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Three steps on drawn columns equal plain loops in float64 on columns that are drawn by loops.
func TestDrawnColumnsEqualPlainLoops(t *testing.T) {
	const n = 20 // 20 images need two blocks of a stream
	m := denoised(t, n, `freeze=["encoder.*","head.class_of.*"]`)
	set, err := Options{}.load(t.Context(), &m.Dataset)
	fatal.If(t, err)
	splits, err := set.Split(m.Dataset.Selection, m.Train.Seed)
	fatal.If(t, err)
	target := columns(t, m, "target")
	start, err := graph.New(m.For([]int{3}, set.Columns()), []int{3})
	fatal.If(t, err)
	weight, err := start.Parameter("head.y.0.weight")
	fatal.If(t, err)
	w := make([][2]float64, 7) // six inputs and the bias
	for i, v := range weight.Data {
		w[i/2][i%2] = float64(v)
	}
	var first float64
	for step := range 3 {
		order := lists.Range(0, n)
		random.Stream(m.Train.Seed, "shuffle", uint64(step)).Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		noise, level := drawnInStep(m, splits.Fit, "noise", order, step), drawnInStep(m, splits.Fit, "level", order, step)
		negative, mask := drawnInStep(m, splits.Fit, "negative", order, step), drawnInStep(m, splits.Fit, "mask", order, step)
		weights := drawnInStep(m, splits.Fit, "weight", order, step)
		counted, loss := 0.0, 0.0
		for k := range order {
			counted += weights[k][0] * (mask[k][0] + mask[k][1])
		}
		var g [7][2]float64
		for k, i := range order {
			x := append(slices.Concat(noise[k], level[k], negative[k]), 1)
			for u := range 2 {
				y := 0.0
				for j, v := range x {
					y += v * w[j][u]
				}
				d, c := y-float64(target[2*i+u]), weights[k][0]*mask[k][u]/counted
				loss += c * d * d
				for j, v := range x {
					g[j][u] += 2 * c * d * v
				}
			}
		}
		for j := range w {
			for u := range 2 {
				w[j][u] -= 0.1 * g[j][u]
			}
		}
		if step == 0 {
			first = loss
		}
	}
	for name, backend := range map[string]ir.Backend{"tape": tape.Backend{}, "engine": engine.Backend{}} {
		r := trained(t, m, Options{Backend: backend})
		got, _ := r.Trained.Parameter("head.y.0.weight")
		bias, _ := r.Trained.Parameter("head.y.0.bias")
		for i, v := range slices.Concat(got.Data, bias.Data) {
			expect.Near(t, float64(v), w[i/2][i%2], 2e-6, name, "value", i)
		}
		expect.Near(t, lines(t, r.Run)[0]["mse"].(float64), first, 2e-6, name, "the first loss")
	}
}

// A term reads the same drawn classes as other parts in the same step.
func TestADrawnColumnIsTheSameWhereverItIsRead(t *testing.T) {
	m := denoised(t, 40, `head.class_of.from=["class"]`, "optimizer.learning_rate=1.0", "train.epochs=300", "loss.0.weight=0.001",
		`head.class_of.layers=[{kind="embedding",vocabulary=3,units=3}]`, `freeze=["encoder.*"]`)
	r := trained(t, m, Options{Backend: engine.Backend{}})
	all := lines(t, r.Run)
	if last := all[len(all)-1]["cross_entropy"].(float64); last > 0.05 {
		t.Errorf("the class that a head reads is not the one that it is compared with: cross entropy %v", last)
	}
}

// The drawn values depend on neither the number of threads nor the number of processes.
func TestDrawnColumnsDoNotDependOnThreadsAndProcesses(t *testing.T) {
	m := denoised(t, 40, "train.batch=37", "dataset.validation=0.1")
	one := team.New(1)
	defer one.Close()
	alone := trained(t, m, Options{Backend: engine.Backend{Team: one}, Team: one}).Run
	three := team.New(3)
	defer three.Close()
	want := lines(t, alone)
	for of, run := range map[string]string{
		"threads":   trained(t, m, Options{Backend: engine.Backend{Team: three}, Team: three}).Run,
		"processes": distributed(t, 3, m, plain),
	} {
		for i, line := range lines(t, run) {
			expect.Near(t, want[i]["loss"].(float64), line["loss"].(float64), 1e-5, "epoch", i+1, "loss", of)
		}
	}
}

// With a full-batch optimizer, values are drawn once for each sample and do not change afterwards.
func TestTheFullBatchDrawsOnceForEachSample(t *testing.T) {
	m := denoised(t, 40, "optimizer.kind=lbfgs", "train.epochs=30", "train.batch=16",
		`loss=[{kind="mse",on="y",against="target"},{kind="mse",on="class_of",against="mask"}]`, `head.class_of.layers=[{kind="dense",units=2}]`, "column.weight.kind=constant",
		`head.y.from=["noise","level","negative","weight","class"]`)
	r := trained(t, m, Options{Backend: engine.Backend{}})
	before := math.Inf(1)
	for i, line := range lines(t, r.Run) {
		loss := line["loss"].(float64)
		if loss > before {
			t.Fatalf("iteration %d raises the loss from %v to %v: the objective has changed", i+1, before, loss)
		}
		before = loss
	}
}

func TestWhatADrawnColumnGivesMustSuitItsTerm(t *testing.T) {
	for set, want := range map[string]string{
		`column.mask={kind="uniform",like="target",high=4}`:       `reads the column as mask and wants a number in [0,1]`,
		`column.mask={kind="normal",like="target"}`:               `the drawn column "mask": got`,
		`column.mask={kind="whole",like="target",from=2,below=4}`: `reads the column as mask and wants 0 or 1`,
		"column.weight.low=-1":                                    `reads the column as sample_weight and wants a number >= 0`,
		"head.class_of.layers.0.units=2":                          "a class less than 2",
	} {
		_, err := Run(t.Context(), denoised(t, 20, set), Options{Backend: tape.Backend{}, Out: place(t)})
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %q", set, err, want)
		}
	}
	expect.NoError(t, expect.Err(Run(t.Context(), denoised(t, 20, "column.mask.kind=uniform"), Options{Backend: tape.Backend{}, Out: place(t)})), "weights in [0,1] as a mask")
	expect.Error(t, expect.Err(denoised(t, 20).With(parsedSets(t, `head.y.from=["noise","negative"]`)...)), `nothing reads the drawn column "level"`, "a column that nothing reads")
}

// parsedSets reads --set arguments.
func parsedSets(t testing.TB, arguments ...string) (sets []config.Set) {
	t.Helper()
	for _, a := range arguments {
		s, err := config.ParseSet(a)
		fatal.If(t, err)
		sets = append(sets, s)
	}
	return sets
}
