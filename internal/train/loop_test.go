package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
)

// The test records the values of each training batch and computes their means by plain loops.
func TestMetricsAreMeansOverTheImagesOfOneEpoch(t *testing.T) {
	m := model(t, everything)
	type seen struct {
		size  float64
		terms [3]float64
	}
	var batches []seen
	backend := newHooked()
	backend.after = func(_ int, p *graph.Program, r ir.Runner[float32]) {
		b := seen{size: float64(p.Batch)}
		for i, tap := range p.Taps {
			if k := slices.Index([]string{"loss.mse", "loss.kl", "loss.weight_decay"}, tap.Name); k >= 0 {
				b.terms[k] = float64(r.Tap(i)[0])
			}
		}
		batches = append(batches, b)
	}
	r := trained(t, m, Options{Backend: backend})
	got := lines(t, r.Run)
	const perEpoch = 4 // 112 images in batches of 32
	if len(got) != 4 || len(batches) != 4*perEpoch {
		t.Fatalf("%d lines and %d batches, want 4 and 16", len(got), len(batches))
	}
	for e, line := range got {
		var sums [3]float64
		n := 0.0
		for _, b := range batches[e*perEpoch : (e+1)*perEpoch] {
			n += b.size
			for i, v := range b.terms {
				sums[i] += v * b.size
			}
		}
		loss := 0.0
		for i, key := range []string{"mse", "kl", "weight_decay"} {
			expect.Near(t, line[key].(float64), sums[i]/n, 1e-12, "epoch", e+1, key, "is", line[key])
			loss += sums[i] / n
		}
		if math.Abs(line["loss"].(float64)-loss) > 1e-12 || line["epoch"] != float64(e+1) || line["step"] != float64((e+1)*perEpoch) {
			t.Errorf("epoch %d: got %v", e+1, line)
		}
		if line["seconds"].(float64) <= 0 || line["images_per_second"].(float64) <= 0 {
			t.Errorf("epoch %d: times are not positive: %v", e+1, line)
		}
	}
}

// An epoch of two passes has the same steps as two epochs of one pass; its metrics are the means over both.
func TestAnEpochOfTwoPassesIsTwoEpochsOfOnePass(t *testing.T) {
	one := trained(t, model(t, everything, "dataset.count=500"), Options{}).Run
	two := trained(t, model(t, everything, "dataset.count=500", "train.epochs=2", "train.min_epoch_steps=13", "optimizer.schedule.warmup_epochs=0.25"), Options{}).Run
	passes, epochs := lines(t, one), lines(t, two)
	if len(passes) != 4 || len(epochs) != 2 {
		t.Fatalf("%d and %d lines, want 4 and 2", len(passes), len(epochs))
	}
	number := func(line map[string]any, key string) float64 { return line[key].(float64) }
	for e, got := range epochs {
		first, second := passes[2*e], passes[2*e+1]
		for _, key := range []string{"loss", "mse", "kl", "weight_decay"} {
			expect.Near(t, number(got, key), (number(first, key)+number(second, key))/2, 1e-12, "epoch", e+1, key, "is", got[key])
		}
		expect.Equal(t, got["step"], second["step"], "epoch", e+1, "ends at step")
		expect.Equal(t, got["val_mse"], second["val_mse"], "epoch", e+1, "ends at step")
		expect.Near(t, number(got, "seconds")*number(got, "images_per_second"), 2*375, 1, "epoch", e+1, "passed over")
	}
}

// The expected error is computed by plain loops in float64: one sigmoid layer and one linear layer.
func TestValMSEIsTheErrorOfTheCleanValidationImages(t *testing.T) {
	m := model(t, everything)
	r := trained(t, m, Options{})
	f, err := decodeOwn(folder.Model, read(t, r.Run, folder.Model))
	fatal.If(t, err)
	o, err := open(m, folder.Model, f)
	fatal.If(t, err)
	set, err := m.Dataset.Source.Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	splits, err := set.Split(m.Dataset.Selection, m.Train.Seed)
	fatal.If(t, err)
	p := map[string][]float32{}
	for _, q := range o.Parameters {
		p[q.Path] = q.Data
	}
	sum, n := 0.0, splits.Validation.Len()
	images := splits.Validation.Float32()
	for i := range n {
		x := images[i*64 : (i+1)*64]
		code := affine(x, p["encoder.2.weight"], p["encoder.2.bias"], 8)
		for j, v := range code {
			code[j] = float32(1 / (1 + math.Exp(-float64(v))))
		}
		for j, y := range affine(code, p["decoder.0.weight"], p["decoder.0.bias"], 64) {
			sum += math.Pow(float64(y)-float64(x[j]), 2)
		}
	}
	want := sum / float64(n*64)
	all := lines(t, r.Run)
	expect.Near(t, all[len(all)-1]["val_mse"].(float64), want, 1e-6*want, "val_mse")
	expect.Equal(t, all[len(all)-1]["negative_weights"], 0.0, "negative weights under a nonneg constraint")
}

// affine returns x w + b for w of shape (len(x), units).
func affine(x, w, b []float32, units int) []float32 {
	out := make([]float32, units)
	for j := range out {
		s := float64(b[j])
		for i, v := range x {
			s += float64(v) * float64(w[i*units+j])
		}
		out[j] = float32(s)
	}
	return out
}

func TestWithoutValidationImagesValMSEIsNull(t *testing.T) {
	r := trained(t, model(t, everything, "dataset.validation=0", "train.epochs=1"), Options{})
	line := lines(t, r.Run)[0]
	if v, ok := line["val_mse"]; !ok || v != nil {
		t.Errorf("val_mse is %v, want null", v)
	}
	if _, ok := line["code_hoyer"].(float64); !ok {
		t.Errorf("code_hoyer is %v, want a number", line["code_hoyer"])
	}
	if r.BestEpoch != 1 || r.BestError != line["loss"] {
		t.Errorf("best is %v at epoch %d, want the loss", r.BestError, r.BestEpoch)
	}
}

func TestEarlyStoppingKeepsTheBestEpochAndStopsAfterPatience(t *testing.T) {
	// A rate this high makes the error rise and fall from epoch to epoch.
	m := model(t, everything, "train.epochs=100", "hook.early_stopping.patience=3", "optimizer.learning_rate=0.5", "optimizer.clip_norm=0",
		`optimizer.schedule={kind="constant"}`)
	r := trained(t, m, Options{})
	if !r.StoppedEarly || r.Epochs == 100 {
		t.Fatalf("did not stop early: %+v", r)
	}
	all := lines(t, r.Run)
	best := 0
	for i, line := range all {
		if line["val_mse"].(float64) < all[best]["val_mse"].(float64) {
			best = i
		}
	}
	if r.BestEpoch != best+1 || r.Epochs != r.BestEpoch+3 || len(all) != r.Epochs || r.BestError != all[best]["val_mse"] {
		t.Errorf("stopped after epoch %d with the best at %d (%v), the metrics say %d", r.Epochs, r.BestEpoch, r.BestError, best+1)
	}
	// The best parameters are those of a run that ends there, and Open prefers them.
	o, err := Open(r.Run)
	if err != nil || o.Epoch != r.BestEpoch {
		t.Fatalf("Open gives epoch %v (%v), want %d", o, err, r.BestEpoch)
	}
	ends := trained(t, model(t, everything, "hook.early_stopping=false", "optimizer.learning_rate=0.5", "optimizer.clip_norm=0",
		`optimizer.schedule={kind="constant"}`, "train.epochs="+itoa(r.BestEpoch)), Options{})
	want, err := Open(ends.Run)
	fatal.If(t, err)
	for i, p := range o.Parameters {
		expect.Slice(t, p.Data, want.Parameters[i].Data, "best", p.Path, "is not what it was at the end of epoch", r.BestEpoch)
	}
	// Resuming a run that stopped early does nothing.
	again, err := Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}})
	if err != nil || !again.AlreadyFinished || !again.StoppedEarly || again.Epochs != r.Epochs {
		t.Errorf("resumed: %+v, %v", again, err)
	}
}

func TestMinDeltaAsksForMore(t *testing.T) {
	r := trained(t, model(t, everything, "train.epochs=50", "hook.early_stopping.patience=2", "hook.early_stopping.min_delta=1000"), Options{})
	if !r.StoppedEarly || r.Epochs != 3 || r.BestEpoch != 1 {
		t.Errorf("got %+v, want a stop after epoch 3 with the best at 1", r)
	}
}

func TestDivergenceNamesTheStepAndTheFirstBadTensor(t *testing.T) {
	nan := float32(math.NaN())
	poison := func(step int, spoil func(p *graph.Program, r ir.Runner[float32])) hooked {
		h := newHooked()
		h.after = func(n int, p *graph.Program, r ir.Runner[float32]) {
			if n == step {
				spoil(p, r)
			}
		}
		return h
	}
	m := model(t, everything)
	for name, c := range map[string]struct {
		backend ir.Backend
		sets    []string
		step    int
		tensor  string
	}{
		"gradient": {poison(6, func(p *graph.Program, r ir.Runner[float32]) {
			for i, b := range p.Parameters {
				if b.Path == "decoder.0.bias" {
					r.Gradient(i)[3] = nan
				}
			}
		}), nil, 6, "gradient of decoder.0.bias"},
		"weight between steps": {poison(6, func(p *graph.Program, r ir.Runner[float32]) {
			m := p.Parameters[0]
			m.Data[0] = float32(math.Inf(1))
		}), []string{"optimizer.clip_norm=0"}, 6, "encoder.2.weight"},
		"huge rate": {tape.Backend{}, []string{"optimizer.learning_rate=1e38", "optimizer.schedule={kind=\"constant\"}"}, 0, "?"},
	} {
		t.Run(name, func(t *testing.T) {
			m, run := m, place(t)
			if c.sets != nil {
				m = model(t, everything, c.sets...)
			}
			_, err := Run(context.Background(), m, Options{Backend: c.backend, Out: run})
			var d *Diverged
			if !errors.As(err, &d) {
				t.Fatalf("got %v, want *Diverged", err)
			}
			t.Log(d)
			if c.tensor != "?" && (d.Step != c.step || d.Epoch != 2 || d.Tensor != c.tensor) {
				t.Errorf("got step %d, epoch %d, %q; want step %d, epoch 2, %q", d.Step, d.Epoch, d.Tensor, c.step, c.tensor)
			}
			from, err := readState(run + "/" + folder.State)
			if err != nil || from.Step != (d.Epoch-1)*4 {
				t.Errorf("the checkpoint is of step %d (%v), want the end of the epoch before", from.Step, err)
			}
			expect.NoError(t, expect.Err(Open(run)), "the run cannot be opened")
		})
	}
}

// A diverged training is advised what its optimizer has: a smaller step, and clipping, or stricter clipping.
func TestTheAdviceOfADivergedTrainingFitsItsOptimizer(t *testing.T) {
	for want, m := range map[string]*config.Model{
		"a smaller learning_rate or a clip_norm may help":                     model(t, everything, "optimizer.clip_norm=0"),
		"a smaller learning_rate or a smaller clip_norm may help":             model(t, everything, "optimizer.clip_norm=0.5"),
		"other initial weights, or other weights of the loss terms, may help": model(t, searched),
	} {
		s := &job{run: "runs/m", spec: m}
		expect.Error(t, s.diverged(7, bad{"code", math.Inf(1)}), "is kept; "+want)
		expect.Error(t, s.diverged(7, bad{inputTensor, math.NaN()}), "samples without NaN and infinite values", want)
	}
}

func TestReportsTellOfEveryEpoch(t *testing.T) {
	var done []Progress
	r := trained(t, model(t, everything), Options{Report: func(p Progress) {
		if p.EpochDone {
			done = append(done, p)
		} else if p.Loss <= 0 || p.Metrics.Epoch < 1 || p.Left < 0 {
			t.Errorf("within an epoch: %+v", p)
		}
	}})
	if len(done) != 4 {
		t.Fatalf("%d epochs were reported, want 4", len(done))
	}
	for i, p := range done {
		if p.Metrics.Epoch != i+1 || p.Epochs != 4 || p.Steps != 16 || p.Run != r.Run || (p.Left > 0) != (i < 3) {
			t.Errorf("epoch %d: %+v", i+1, p)
		}
	}
}

func TestCheckpointsWaitForTheirSeconds(t *testing.T) {
	for seconds, oldest := range map[string]int{"0": 4, "1000": 0} {
		run := place(t)
		backend := newHooked()
		backend.before = func(n int) {
			if n != 10 { // in the third epoch: the checkpoint of the first has been waited for
				return
			}
			from, err := readState(run + "/" + folder.State)
			if err != nil || from.Step < oldest || oldest == 0 && from.Step > 0 {
				t.Errorf("checkpoint_seconds = %s: the checkpoint is of step %d (%v)", seconds, from.Step, err)
			}
		}
		trained(t, model(t, everything, "train.checkpoint_seconds="+seconds), Options{Backend: backend, Out: run})
		if from, err := readState(run + "/" + folder.State); err != nil || from.Step != 16 {
			t.Errorf("checkpoint_seconds = %s: the last checkpoint is of step %d (%v), want 16", seconds, from.Step, err)
		}
	}
}

func TestABatchLargerThanTheSetIsTheSet(t *testing.T) {
	r := trained(t, model(t, everything, "train.batch=1000"), Options{})
	expect.Equal(t, r.Step, 4, "steps")
	expect.NoError(t, expect.Err(Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}})))
}

func TestACancelledContextBeforeTheFirstStepLeavesARunToResume(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	run, m := place(t), model(t, everything)
	if _, err := Run(ctx, m, Options{Backend: tape.Backend{}, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}})))
	sameRun(t, run, trained(t, m, Options{}).Run)
}

func TestTheTimeLeftOfAnEndlessRunIsNotNegative(t *testing.T) {
	for _, c := range []struct {
		spent       time.Duration
		done, steps int
		want        time.Duration
	}{
		{time.Second, 10, 100, 10 * time.Second}, {time.Second, 0, 3, 3 * time.Second},
		{time.Hour, 1, math.MaxInt, math.MaxInt64}, {time.Second, 1, math.MaxInt / 128 * 100, math.MaxInt64},
	} {
		expect.Equal(t, timeLeft(c.spent, c.done, c.steps), c.want, c.spent, "for", c.done, "steps", c.steps, "to go")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports := 0
	_, err := Run(ctx, model(t, everything, "train.epochs=2147483647"), Options{Out: place(t), Report: func(p Progress) {
		if reports++; p.Left < 0 || p.Steps < p.Step {
			t.Errorf("%v left, step %d of %d", p.Left, p.Step, p.Steps)
		}
		cancel()
	}})
	if !errors.Is(err, ErrInterrupted) || reports == 0 {
		t.Errorf("%d reports, then %v", reports, err)
	}
}
