package coder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/classical/generate"
	"tessera/config"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/layers"
	"tessera/losses"
)

func TestARunIsReadFromAFileSystemOrFromBytes(t *testing.T) {
	run := bars(t, "2")
	images := randomImages(run, 3, 1)
	want, err := run.Encode(images)
	fatal.If(t, err)
	file, err := os.ReadFile(run.Path + "/model.safetensors")
	fatal.If(t, err)
	for name, open := range map[string]func() (*tessera.Run, error){
		"a file system": func() (*tessera.Run, error) {
			return tessera.OpenFS(os.DirFS(run.Path), ".", tessera.Options{Threads: 1})
		},
		"bytes": func() (*tessera.Run, error) { return tessera.ReadModel(file, tessera.Options{Threads: 1}) },
	} {
		opened, err := open()
		fatal.If(t, err, name)
		got, err := opened.Encode(images)
		if err != nil || !slices.Equal(got, want) || opened.Epoch != 2 || opened.Model.Name != "m" {
			t.Errorf("%s: other codes, epoch %d, model %q, error %v", name, opened.Epoch, opened.Model.Name, err)
		}
		expect.NoError(t, opened.Close())
	}
}

// cancelled trains a small model with early stopping, momentum and shuffling, stops in the third epoch, and returns the folder
// of the run.
func cancelled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "models.toml")
	text := "[model.m]\ndataset = { name = \"bars\", count = 60, validation = 0.2 }\nencoder = [{ kind = \"dense\", units = 4, activation = \"sigmoid\" }]\n" +
		"optimizer = { kind = \"adam\", learning_rate = 0.01 }\ntrain = { epochs = 4, batch = 16, checkpoint_seconds = 0 }\nhook.early_stopping.patience = 3\n"
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	models, err := tessera.Load(file)
	fatal.If(t, err)
	m, err := models.Model("m")
	fatal.If(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	_, err = tessera.Train(ctx, m, tessera.Options{Out: filepath.Join(dir, "run"), Threads: 1, Report: func(p train.Progress) {
		if p.Epoch == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("got %v, want ErrInterrupted", err)
	}
	return filepath.Join(dir, "run")
}

// numbers returns the numbers that a user can read from a run: computed values, the history of the training, and the
// parameters after a resume. A warning is an error.
func numbers(run string) (string, error) {
	var all strings.Builder
	opened, err := tessera.Open(run, tessera.Options{Threads: 1})
	if err != nil {
		return "", err
	}
	measured, err := opened.Evaluate(context.Background(), nil)
	if err := errors.Join(err, opened.Close()); err != nil {
		return "", err
	}
	fmt.Fprintln(&all, opened.Epoch, opened.Step, measured.Values)
	history, err := train.ReadHistory(run)
	if err != nil {
		return "", err
	}
	warned := ""
	resumed, err := tessera.Resume(context.Background(), run, tessera.Options{Warn: func(text string) { warned += text }})
	if err != nil {
		return "", err
	}
	if warned != "" {
		err = errors.New(warned)
	}
	fmt.Fprintln(&all, history, resumed.Epoch)
	for _, name := range []string{folder.Model, folder.Best} {
		b, unread := os.ReadFile(filepath.Join(run, name))
		err = errors.Join(err, unread)
		all.Write(b)
	}
	return all.String(), errors.Join(err, resumed.Close())
}

// For every damaged file of an unfinished run, either the numbers do not change or an error or warning is reported.
func TestNoDamageOfARunChangesANumberInSilence(t *testing.T) {
	flips, cuts := 200, 60
	if testing.Short() {
		flips, cuts = 50, 15
	}
	run := cancelled(t)
	whole := map[string][]byte{}
	entries, err := os.ReadDir(run)
	fatal.If(t, err)
	var names []string
	for _, e := range entries {
		if whole[e.Name()], err = os.ReadFile(filepath.Join(run, e.Name())); err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name())
	}
	for _, name := range []string{folder.Config, folder.Environment, folder.Metrics, folder.Model, folder.Best, folder.State} {
		if !slices.Contains(names, name) {
			t.Errorf("the run has no %s to damage: %q", name, names)
		}
	}
	restore := func() {
		for name, b := range whole {
			fatal.If(t, os.WriteFile(filepath.Join(run, name), b, 0o600))
		}
	}
	want, err := numbers(run)
	fatal.If(t, err)
	const seed = 12
	r := rand.New(rand.NewPCG(seed, 1))
	refused, silent := 0, 0
	for i := range flips + cuts {
		restore()
		name := names[i%len(names)]
		b := bytes.Clone(whole[name])
		if i < flips {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		} else {
			b = b[:r.IntN(len(b))]
		}
		fatal.If(t, os.WriteFile(filepath.Join(run, name), b, 0o600))
		got, err := numbers(run)
		if err != nil {
			refused++
		} else if got != want {
			silent++
			t.Errorf("damage %d of %s changed a number in silence", i, name)
			if testing.Verbose() {
				t.Logf("%.400q", b)
			}
		}
	}
	t.Logf("seed %d: %d flips and %d truncations of %d files: %d refused or warned of, %d without effect, %d silent", seed, flips, cuts, len(names), refused,
		flips+cuts-refused-silent, silent)
	if refused == 0 {
		t.Error("no damage was found")
	}
}

// A run that was started on one thread is resumed on one thread even without its env.json, because the state contains the
// number of threads.
func TestResumeTakesThreadsAndBackEndFromTheState(t *testing.T) {
	parameters := func(damage func(path string) error) []byte {
		r := bars(t, "2")
		fatal.If(t, errors.Join(r.Close(), damage(filepath.Join(r.Path, folder.Environment))))
		var warned string
		resumed, err := tessera.Resume(context.Background(), r.Path, tessera.Options{Epochs: 4, Warn: func(text string) { warned += text }})
		if err != nil || strings.Contains(warned, "threads") {
			t.Fatalf("warned %q, %v", warned, err)
		}
		b, err := os.ReadFile(filepath.Join(r.Path, folder.Model))
		fatal.If(t, errors.Join(err, resumed.Close()))
		return b
	}
	want := parameters(func(string) error { return nil })
	for what, damage := range map[string]func(path string) error{
		"removed":     os.Remove,
		"empty":       func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"other lines": func(path string) error { return os.WriteFile(path, []byte(`{"threads": 7, "backend": "tape"}`), 0o600) },
		"a folder":    func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if !bytes.Equal(parameters(damage), want) {
			t.Errorf("env.json %s: other parameters", what)
		}
	}
}

func TestARunWithoutAModelPanicsNowhere(t *testing.T) {
	ctx := context.Background()
	for of, r := range map[string]*tessera.Run{"empty": {Coder: coder.New(nil, coder.Options{})}} {
		for name, call := range map[string]func() error{
			"Encode":          func() error { _, err := r.Encode(nil); return err },
			"Decode":          func() error { _, err := r.Decode(nil); return err },
			"ValueNames":      func() error { _, err := r.ValueNames(ctx); return err },
			"WithAtoms":       func() error { _, err := r.WithAtoms(nil); return err },
			"Value":           func() error { _, err := r.Value("code", nil); return err },
			"Predict":         func() error { _, err := r.Predict("", nil); return err },
			"Evaluate":        func() error { _, err := r.Evaluate(ctx, nil); return err },
			"EvaluateOn":      func() error { _, err := r.EvaluateOn(ctx, data.TestSplit, nil); return err },
			"EvaluateSample":  func() error { _, err := r.EvaluateSample(ctx, nil, nil); return err },
			"EvaluateImages":  func() error { _, err := r.EvaluateImages(ctx, "", nil, nil); return err },
			"Report":          func() error { _, err := r.Report(ctx, nil); return err },
			"Attack":          func() error { _, err := runs.Measure(ctx, r, []attack.Trial{usualAttack}, 0); return err },
			"Images":          func() error { _, err := r.Images(ctx); return err },
			"Sample":          func() error { _, err := r.Sample(ctx, data.TestSplit); return err },
			"Parts":           func() error { _, err := r.Parts(ctx); return err },
			"Encoder":         func() error { _, err := r.Encoder(tessera.EncoderOptions{}); return err },
			"Draw":            func() error { _, err := generate.New(r).Draw(ctx, 1, 1); return err },
			"DrawFromCodes":   func() error { _, err := generate.New(r).DrawFromCodes(ctx, 1, 1); return err },
			"DrawInSteps":     func() error { _, err := generate.New(r).DrawInSteps(ctx, 1, 1, 0, -1); return err },
			"Quality":         func() error { _, err := generate.Measure(ctx, r, nil, r, "code"); return err },
			"DrawFromIndices": func() error { _, err := generate.New(r).DrawFromIndices(ctx, 1, 1); return err },
			"IndexPrior":      func() error { _, err := generate.New(r).IndexPrior(ctx); return err },
			"CodeDensity":     func() error { _, err := generate.New(r).CodeDensity(ctx); return err },
			"Codes":           func() error { _, err := r.Codes(ctx, nil); return err },
			"Traverse":        func() error { _, err := generate.New(r).Traverse(ctx, generate.Traversal{}); return err },
			"Interpolate":     func() error { _, err := generate.New(r).Interpolate(ctx, nil, 2); return err },
		} {
			calmly(t, of+" "+name, func() error {
				err := call()
				expect.AnyError(t, err, of, name)
				return nil
			})
		}
		calmly(t, of, func() error {
			if low, high := r.Range(); low != 0 || high != 0 || r.Shape() != nil || r.Units() != 0 || r.Atoms() != nil || r.LastWeight() != nil ||
				r.Values() != nil || r.ClassHeads() != nil {
				t.Errorf("the %s run knows something", of)
			}
			r.PredictionOf("", nil, 0)
			return r.Close()
		})
	}
}

// rows returns images of 6 x 5 pixels, each with one bright row.
func rows(t testing.TB, bright float32) *data.Memory {
	t.Helper()
	values := make([]float32, 36*30)
	for i := range 36 {
		for j := range 5 {
			values[i*30+i%6*5+j] = bright
		}
	}
	m, err := data.FromFloats(values, []int{6, 5}, nil)
	fatal.If(t, err)
	return m
}

func TestARunOfImagesInMemoryNeedsThemAgain(t *testing.T) {
	images := rows(t, 1)
	model, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 4, Activation: "sigmoid"}}}, Train: config.Train{Epochs: 2, Batch: 10}})
	fatal.If(t, err)
	out := t.TempDir() + "/run"
	run, err := tessera.Train(t.Context(), model, tessera.Options{Out: out})
	fatal.If(t, err)
	defer run.Close()
	if report, err := run.Evaluate(t.Context(), nil); err != nil || report.Images != 36 {
		t.Errorf("of the run that was trained: %+v, %v", report, err)
	}
	for want, o := range map[string]tessera.Options{
		"":                                   {Images: images},
		"its images are not in this process": {},
		"not the images that the run was trained on": {Images: rows(t, 0.5)},
	} {
		opened, err := tessera.Open(out, o)
		fatal.If(t, err)
		defer opened.Close()
		_, err = opened.Evaluate(t.Context(), nil)
		if _, ok := errors.AsType[*data.Error](err); want == "" && err != nil || want != "" && (!ok || !strings.Contains(err.Error(), want)) {
			t.Errorf("Images %v: got %v, want %q", o.Images != nil, err, want)
		}
	}
}

func TestAHeadOnImagesInMemoryHasOneUnitForEachClass(t *testing.T) {
	values, labels := make([]float32, 60*30), make([]int, 60)
	for i := range labels {
		labels[i] = i % 3
		values[i*30+labels[i]] = 1
	}
	images, err := data.FromFloats(values, []int{6, 5}, labels)
	fatal.If(t, err)
	declared := config.Model{Dataset: config.Dataset{Source: images}, Train: config.Train{Epochs: 2, Batch: 10},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 4, Activation: "sigmoid"}}},
		Decoder: []config.Layer{},
		Heads:   map[string]config.Head{"class": {Layers: []config.Layer{{Layer: &layers.Dense{}}}}},
		Losses:  []config.Loss{{Loss: &losses.CrossEntropy{}, On: "class"}}}
	model, err := tessera.Declare(declared)
	fatal.If(t, err)
	out := t.TempDir() + "/run"
	run, err := tessera.Train(t.Context(), model, tessera.Options{Out: out})
	fatal.If(t, err)
	defer run.Close()
	opened, err := tessera.Open(out, tessera.Options{Images: images})
	fatal.If(t, err)
	defer opened.Close()
	for name, r := range map[string]*tessera.Run{"trained": run, "opened": opened} {
		logits, err := r.Value("class", values[:2*30])
		if err != nil || len(logits) != 2*3 {
			t.Errorf("%s: %d logits of two images, want 3 of each (%v)", name, len(logits), err)
		}
		measured, err := r.Evaluate(t.Context(), nil)
		fatal.If(t, err)
		if _, ok := measured.Values.Number("accuracy"); !ok {
			t.Errorf("%s: no accuracy: %v", name, measured.Values)
		}
	}
	images, _ = data.FromFloats(values, []int{6, 5}, nil)
	declared.Dataset.Source = images
	expect.Error(t, expect.Err(tessera.Declare(declared)), "labels", "a loss on labels, and images without any")
}

// bars returns a small model.
func bars(t *testing.T, epochs string, more ...string) *tessera.Run {
	t.Helper()
	text := "dataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 8, activation = \"sigmoid\" }]\n" +
		"loss = [{ kind = \"mse\" }, { kind = \"kl\", target = 0.3 }]\ntrain = { epochs = " + epochs + " }\n" +
		strings.Join(more, "\n")
	run, err := trainedIn(t, text, filepath.Join(t.TempDir(), "run"))
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}
