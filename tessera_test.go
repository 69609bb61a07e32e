package tessera_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera"
	attacks "tessera/attack/runs"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/coder"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

var (
	_ metrics.Weighted   = (*tessera.Run)(nil)
	_ metrics.ValueCoder = (*tessera.Run)(nil)
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(runs)
	os.Exit(code)
}

func TestTheShippedModelsHaveNoMistakesAndOneLineEach(t *testing.T) {
	models := tessera.Shipped()
	fatal.If(t, models.Check())
	for _, want := range []string{"swimmer-parts", "shallow", "shallow-nonneg", "shallow-nonneg-kl", "linear", "deep-dense", "denoising"} {
		if !slices.Contains(models.Names(), want) {
			t.Errorf("%s is not shipped", want)
		}
	}
	for _, name := range models.Names() {
		m, err := models.Model(name)
		fatal.If(t, err)
		if m.About == "" {
			t.Errorf("%s has no about", name)
		}
	}
}

func TestLoadReturnsWhatTheSystemSays(t *testing.T) {
	expect.Is(t, expect.Err(tessera.Load("no/such/file.toml")), os.ErrNotExist)
}

// bars returns a small model.
func bars(t *testing.T, epochs string, more ...string) *tessera.Run {
	t.Helper()
	dir := t.TempDir()
	file := dir + "/models.toml"
	text := "[model.bars]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 8, activation = \"sigmoid\" }]\n" +
		"loss = [{ kind = \"mse\" }, { kind = \"kl\", target = 0.3 }]\ntrain = { epochs = " + epochs + " }\n" +
		strings.Join(more, "\n")
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	models, err := tessera.Load(file)
	fatal.If(t, err)
	m, err := models.Model("bars")
	fatal.If(t, err)
	run, err := tessera.Train(context.Background(), m, tessera.Options{Out: dir + "/run", Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}

func TestAnOpenedRunIsTheTrainedOneOnEitherBackEnd(t *testing.T) {
	run := bars(t, "2")
	images := lists.Of(3*64, func(i int) float32 { return float32(i%7) / 7 })
	want, err := run.Encode(images)
	fatal.If(t, err)
	for _, backend := range tessera.Backends() {
		opened, err := tessera.Open(run.Path, tessera.Options{Backend: backend})
		fatal.If(t, err)
		got, err := opened.Encode(images)
		fatal.If(t, err)
		for i := range want {
			if d := got[i] - want[i]; d > 1e-6 || d < -1e-6 {
				t.Errorf("%s: code %d is %g, want %g", backend, i, got[i], want[i])
			}
		}
		expect.NoError(t, opened.Close())
		if opened.Epoch != 2 || opened.Result != nil || run.Result.Epochs != 2 {
			t.Errorf("opened at epoch %d, result %v; trained %+v", opened.Epoch, opened.Result, run.Result)
		}
	}
	expect.AnyError(t, expect.Err(tessera.Open(run.Path, tessera.Options{Backend: "abacus"})), "an unknown back end was taken")
}

func TestEvaluateUsesTheModelsTarget(t *testing.T) {
	run := bars(t, "1")
	r, err := run.Evaluate(context.Background(), nil)
	fatal.If(t, err)
	set, err := run.Model.Dataset.Source.Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	own, err := metrics.Evaluate(context.Background(), run, metrics.Sample{Images: set.Train.Float32()}, metrics.Selection{{Metric: &metrics.KL{Target: 0.3}}})
	fatal.If(t, err)
	got, _ := r.Number("kl")
	if want, ok := own.Number("kl"); !ok || got != want || r.Model != "bars" || r.Dataset != "bars" || r.Images != 500 {
		t.Errorf("got %+v, want %+v", r, own)
	}
}

// A run counts the negative weights of a decoder without a dictionary of atoms, in every kind of evaluation.
func TestEvaluateCountsTheNegativeWeightsOfAConvolution(t *testing.T) {
	run := bars(t, "1", `decoder=[{kind="dense",units=64},{kind="reshape",shape=[8,8,1]},{kind="conv2d_transpose",filters=1}]`)
	r, err := run.Evaluate(context.Background(), nil)
	fatal.If(t, err)
	counted, ok := r.Number("negative_weights")
	if _, atoms := r.Number("hoyer_atoms"); !ok || int(counted) != metrics.NegativeWeights(run.LastWeight()) || atoms {
		t.Errorf("got %+v", r)
	}
}

func TestEvaluateWithTheSVMNeedsLabels(t *testing.T) {
	expect.As[*data.Error](t, expect.Err(bars(t, "1").Evaluate(context.Background(), metrics.Selection{{Metric: &metrics.SVM{}}})), "")
}

func TestPartsSayWhatTheyAre(t *testing.T) {
	parts, err := bars(t, "1").Parts(context.Background())
	fatal.If(t, err)
	if len(parts) != 16 || parts[0].Kind != "row" || parts[15].Kind != "column" {
		t.Errorf("got %v", parts)
	}
}

func TestACancelledTrainingIsResumedToItsEnd(t *testing.T) {
	short, err := config.ParseSet("train.epochs=3")
	fatal.If(t, err)
	m, err := tessera.Shipped().Model("swimmer-parts", short)
	fatal.If(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir() + "/run"
	interrupted, err := tessera.Train(ctx, m, tessera.Options{Out: dir, Report: func(p train.Progress) {
		if p.Epoch == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("got %v, want ErrInterrupted", err)
	}
	defer interrupted.Close()
	if codes, err := interrupted.Encode(make([]float32, 32*32)); err != nil || len(codes) != interrupted.Units() || interrupted.Step < 8 {
		t.Errorf("the run of the checkpoint: %d codes after step %d, %v", len(codes), interrupted.Step, err)
	}
	run, err := tessera.Resume(context.Background(), dir, tessera.Options{})
	fatal.If(t, err)
	defer run.Close()
	if run.Epoch != 3 || run.Step != 24 || run.Result.AlreadyFinished {
		t.Errorf("resumed to epoch %d, step %d: %+v", run.Epoch, run.Step, run.Result)
	}
}

func TestAClosedOrEmptyRunComputesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	run, err := tessera.Open(bars(t, "1").Path, tessera.Options{Threads: 2})
	fatal.If(t, err)
	atoms := run.Atoms()
	for range 2 {
		expect.NoError(t, run.Close(), "closing")
	}
	empty := &tessera.Run{Coder: coder.New(nil, coder.Options{})}
	expect.NoError(t, empty.Close(), "closing an empty run")
	for _, r := range []*tessera.Run{run, empty} {
		for name, compute := range map[string]func() error{
			"Encode":    func() error { _, err := r.Encode(make([]float32, 64)); return err },
			"Decode":    func() error { _, err := r.Decode(make([]float32, 8)); return err },
			"WithAtoms": func() error { _, err := r.WithAtoms(atoms); return err },
			"Evaluate":  func() error { _, err := r.Evaluate(t.Context(), nil); return err },
			"Attack":    func() error { _, err := attacks.Measure(t.Context(), r, nil, 1); return err },
			"Parts":     func() error { _, err := r.Parts(t.Context()); return err },
			"Images":    func() error { _, err := r.Images(t.Context()); return err },
			"Names":     func() error { _, err := r.ValueNames(t.Context()); return err },
		} {
			if err := compute(); err == nil || r == run && !errors.Is(err, tessera.ErrClosed) {
				t.Errorf("%s of %q: got %v", name, r.Path, err)
			}
		}
	}
	for range 60_000 { // a minute: only a goroutine that stays fails
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestModelsThatAreNoneAreErrors(t *testing.T) {
	bare := &config.Model{Dataset: config.Dataset{Name: "bars", Source: &data.Bars{Count: 10}}}
	for _, m := range []*config.Model{nil, {}, {Name: "own", Kind: config.Autoencoder}, bare} {
		expect.AnyError(t, expect.Err(tessera.Train(t.Context(), m, tessera.Options{Out: t.TempDir()})), m, "trained")
	}
	for _, m := range []*graph.Model{nil, {}, {Spec: &config.Model{Train: config.Train{Batch: 1}}}} {
		expect.AnyError(t, expect.Err(tessera.Plan(m)), m, "planned")
	}
}

func TestOptionsThatMeanNothingAreErrors(t *testing.T) {
	m, err := tessera.Shipped().Model("swimmer-parts")
	fatal.If(t, err)
	for _, o := range []tessera.Options{{Threads: -1}, {Threads: tessera.MostThreads + 1}, {Backend: "gpu"}} {
		o.Out = t.TempDir()
		expect.AnyError(t, expect.Err(tessera.Train(t.Context(), m, o)), o, "trained")
		if _, err := tessera.Open(o.Out, o); err == nil || errors.Is(err, folder.ErrNotRun) {
			t.Errorf("%+v: opening: %v", o, err)
		}
	}
}

// A run of a model that was changed after its check could not be opened.
func TestAModelThatWasChangedIsRefusedBeforeTheFirstStep(t *testing.T) {
	m, err := tessera.Shipped().Model("bars-parts")
	fatal.If(t, err)
	m.Train.Epochs = 2
	out := filepath.Join(t.TempDir(), "run")
	r, err := tessera.Train(context.Background(), m, tessera.Options{Out: out, Threads: 1})
	if err == nil {
		_ = r.Close()
	}
	expect.Error(t, err, "was changed after it was checked")
	expect.AnyError(t, expect.Err(os.Stat(out)), "the refused training left a folder")
}

// trainable are models of all kinds of trainings.
var trainable = map[string]string{
	"hooks, constraints, schedule, clipping": `
encoder    = [{ kind = "dense", units = 8, activation = "sigmoid" }]
loss       = [{ kind = "mse" }, { kind = "kl", target = 0.3 }]
constraint = [{ kind = "nonneg" }]
optimizer  = { kind = "adam", learning_rate = 0.01, clip_norm = 0.1, schedule = { kind = "cosine" } }
hook       = { early_stopping = { patience = 2 }, average = {} }
train      = { epochs = 4, batch = 30 }
`,
	"a full batch": `
encoder   = [{ kind = "dense", units = 4, activation = "sigmoid" }]
optimizer = { kind = "lbfgs" }
train     = { epochs = 3 }
`,
	"a method of package classical": `
kind       = "nmf"
components = 4
iterations = 5
`,
}

// declare returns a model of bars.
func declare(t *testing.T, text string) *config.Model {
	t.Helper()
	models, err := config.Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 100, validation = 0.2 }\n"+text))
	fatal.If(t, err)
	models.Extend(nil)
	m, err := models.Model("m")
	fatal.If(t, err)
	return m
}

// modelFiles returns the files of the parameters of a run.
func modelFiles(t *testing.T, run string) (files string) {
	t.Helper()
	for _, name := range []string{folder.Config, folder.Model, folder.Best} {
		b, err := os.ReadFile(filepath.Join(run, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		files += name + ":" + string(b)
	}
	return files
}

// A loop of the caller gives the bytes of Train, and a trainer that was saved in the middle of an epoch is resumed to the same bytes.
func TestATrainerGivesTheBytesOfTrain(t *testing.T) {
	for name, text := range trainable {
		t.Run(name, func(t *testing.T) {
			m, dir := declare(t, text), t.TempDir()
			run, err := tessera.Train(t.Context(), m, tessera.Options{Out: dir + "/train", Threads: 1})
			fatal.If(t, err)
			defer run.Close()
			trainer, err := tessera.NewTrainer(t.Context(), m, tessera.Options{Threads: 1})
			fatal.If(t, err)
			defer trainer.Close()
			epochs := 0
			for !trainer.Done() {
				step, err := trainer.Step(t.Context())
				fatal.If(t, err)
				if step.EpochDone {
					epochs++
				}
				if step.Epoch != epochs || step.EpochDone && step.Metrics.Epoch != epochs {
					t.Errorf("after %d epochs: %+v", epochs, step)
				}
				if step.Step == 2 {
					fatal.If(t, trainer.Save(dir+"/middle", false))
				}
			}
			expect.Is(t, expect.Err(trainer.Step(t.Context())), tessera.ErrTrained, "a step after the last")
			fatal.If(t, trainer.Save(dir+"/own", false))
			resumed, err := tessera.Resume(t.Context(), dir+"/middle", tessera.Options{})
			fatal.If(t, err)
			defer resumed.Close()
			want := modelFiles(t, run.Path)
			for _, name := range []string{"own", "middle"} {
				expect.Equal(t, modelFiles(t, dir+"/"+name), want, name, "other bytes than Train")
			}
			inMemory, err := trainer.Run()
			fatal.If(t, err)
			defer inMemory.Close()
			x := slices.Repeat([]float32{0.5}, 64)
			a, errA := run.Encode(x)
			b, errB := inMemory.Encode(x)
			if err := errors.Join(errA, errB); err != nil || !slices.Equal(a, b) {
				t.Errorf("the run in memory: %v, other codes than the run of Train", err)
			}
			if result, err := inMemory.Evaluate(t.Context(), nil); err != nil || len(result.Values) == 0 {
				t.Errorf("the run in memory: %v", err)
			}
		})
	}
}

// Values and gradients of a trainer are those of the step: plain gradient descent subtracts the rate times the gradient.
func TestATrainerShowsItsGradients(t *testing.T) {
	trainer, err := tessera.NewTrainer(t.Context(), declare(t, `
encoder   = [{ kind = "dense", units = 3, activation = "tanh" }]
optimizer = { kind = "sgd", learning_rate = 0.5 }
train     = { epochs = 2, batch = 16 }
`), tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer trainer.Close()
	expect.AnyError(t, expect.Err(trainer.Gradient("encoder.0.weight")), "there is a gradient before the first step")
	for range 3 {
		before := map[string][]float32{}
		for _, path := range trainer.Parameters() {
			if before[path], _, err = trainer.Parameter(path); err != nil {
				t.Fatal(err)
			}
		}
		step, err := trainer.Step(t.Context())
		if err != nil || len(trainer.Batch()) != 16 || !(step.Loss > 0) || step.Terms["mse"] != step.Loss {
			t.Fatalf("%v, %d samples, %+v", err, len(trainer.Batch()), step)
		}
		for path, old := range before {
			now, shape, err := trainer.Parameter(path)
			fatal.If(t, err)
			g, err := trainer.Gradient(path)
			if err != nil || len(shape) == 0 {
				t.Fatal(err)
			}
			for i := range old {
				if d := float64(now[i] - (old[i] - 0.5*g[i])); d > 1e-6 || d < -1e-6 {
					t.Fatalf("%s[%d]: %v became %v by the gradient %v", path, i, old[i], now[i], g[i])
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Is(t, expect.Err(trainer.Step(ctx)), tessera.ErrInterrupted, "a cancelled step")
	expect.AnyError(t, expect.Err(trainer.Gradient("no.weight")), "there is a gradient of no.weight")
}
