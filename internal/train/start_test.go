package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/data"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
	"tessera/metrics"
)

// from returns the edit that makes a model start from a run.
func from(run, on string) string { return `start={run="` + run + `",on="` + on + `"}` }

// another returns a trained run with another seed and another encoder.
func another(t *testing.T) string {
	return trained(t, model(t, normalised, "train.seed=7", "train.epochs=2", "hook.early_stopping=false"), Options{}).Run
}

// beginning returns the initial parameters of a run of the model.
func beginning(t *testing.T, sets ...string) *Trained {
	t.Helper()
	run := place(t)
	if _, err := Run(cancelled(), model(t, normalised, sets...), Options{Backend: tape.Backend{}, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	m, err := Open(run)
	fatal.If(t, err)
	return m
}

func TestARunStartsFromAnotherRunsParameters(t *testing.T) {
	source := another(t)
	want, err := Open(source)
	fatal.If(t, err)
	drawn, all, some := beginning(t), beginning(t, from(source, "*")), beginning(t, from(source, "encoder.*"))
	for i, p := range want.Parameters {
		expect.Slice(t, all.Parameters[i].Data, p.Data, "on everything", p.Path, "is not the other run's")
		expected := p.Data
		if strings.HasPrefix(p.Path, "decoder.") {
			expected = drawn.Parameters[i].Data
		}
		expect.Slice(t, some.Parameters[i].Data, expected, "on the encoder", p.Path, "is wrong")
	}
}

// The rescaling of a decomposition is a parameter: it is copied if `on` matches it, else computed from the images.
func TestAStartedDecompositionKeepsTheOtherRunsRange(t *testing.T) {
	source := trained(t, model(t, channelled(amdLayer), `freeze=["encoder.0.*"]`, "train.epochs=1", "hook.early_stopping=false"), Options{}).Run
	for on, want := range map[string]float32{"*": 0, "encoder.3.*": -0.5} {
		opened, err := Open(trained(t, model(t, channelled(amdLayer), from(source, on), "train.epochs=1"), Options{}).Run)
		fatal.If(t, err)
		if low, err := opened.Parameter("encoder.0.low"); err != nil || low.Data[0] != want {
			t.Errorf("on %s: low is %v, want %v first (%v)", on, low.Data, want, err)
		}
	}
}

func TestAStartIsProjected(t *testing.T) {
	source := trained(t, model(t, everything, "constraint=[]"), Options{}).Run
	run := place(t)
	_, err := Run(cancelled(), model(t, everything, from(source, "*")), Options{Backend: tape.Backend{}, Out: run})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	m, err := Open(run)
	fatal.If(t, err)
	w, err := m.Parameter("decoder.0.weight")
	if err != nil || slices.Min(w.Data) != 0 {
		t.Errorf("the smallest weight is %v, want 0 (%v)", slices.Min(w.Data), err)
	}
}

func TestAStartedRunResumesWithoutTheOtherRun(t *testing.T) {
	source := another(t)
	m := model(t, normalised, from(source, "encoder.*"), "train.epochs=2")
	want := trained(t, m, Options{})
	for _, at := range []int{15, 22, 30} {
		run := place(t)
		_, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: run, Disk: &faulty.Disk{DieAt: at}})
		if !errors.Is(err, faulty.ErrDead) {
			t.Fatalf("killed before operation %d: got %v", at, err)
		}
		away := source + "-away"
		fatal.If(t, os.Rename(source, away))
		fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}})))
		sameRun(t, run, want.Run)
		fatal.If(t, os.Rename(away, source))
	}
}

func TestTheRecordNamesTheParametersThatARunStartedFrom(t *testing.T) {
	source := another(t)
	run := trained(t, model(t, normalised, from(source, "*"), "train.epochs=1"), Options{}).Run
	e, err := ReadEnvironment(run)
	fatal.If(t, err)
	sum := sha256.Sum256(read(t, source, folder.Model))
	if want := (data.File{Path: source + "/" + folder.Model, SHA256: hex.EncodeToString(sum[:])}); e.Start == nil || *e.Start != want {
		t.Errorf("got %v, want %v", e.Start, want)
	}
	if e, err := ReadEnvironment(source); err != nil || e.Start != nil {
		t.Errorf("a run that started by itself names %v (%v)", e.Start, err)
	}
}

func TestAStartThatDoesNotFitNamesEveryParameterAndMakesNoRun(t *testing.T) {
	run, source := place(t), trained(t, model(t, everything, "train.epochs=1", "hook.early_stopping=false"), Options{}).Run
	_, err := Run(context.Background(), model(t, normalised, from(source, "*")), Options{Backend: tape.Backend{}, Out: run})
	if _, ok := errors.AsType[*checkpoint.Error](err); !ok {
		t.Fatalf("got %v, want a *checkpoint.Error", err)
	}
	for _, want := range []string{folder.Model, "encoder.2.weight has shape [64 8], want [64 12]", "encoder.3.scale is missing", "encoder.4.bias is missing"} {
		expect.Contains(t, err.Error(), want, err, "does not say")
	}
	if exists(run, folder.Config) {
		t.Error("a run was made")
	}
}

func TestAStartFromNoRunIsAnErrorOfTheDeclaration(t *testing.T) {
	centres := trained(t, model(t, `model.k = { kind = "kmeans", components = 3, dataset = "bars" }`), Options{}).Run
	for run, says := range map[string]string{place(t): "is not the folder of a run", centres: `a run of kind "kmeans"`} {
		_, err := Run(context.Background(), model(t, everything, from(run, "*")), Options{Backend: tape.Backend{}, Out: place(t)})
		expect.As[part.KeyError](t, err, says)
	}
}

const components = `model.p = { kind = "pca", components = 3, dataset = "bars" }`

// Two dense layers that start from principal components compute the codes and the reconstructions of these components.
func TestAStartFromPrincipalComponents(t *testing.T) {
	pca := trained(t, model(t, components), Options{}).Run
	linear := model(t, `model.l = { encoder = [{ kind = "dense", units = 3 }], decoder = [{ kind = "dense" }], dataset = "bars", freeze = ["encoder.*"], train = { epochs = 1 } }`, from(pca, "*"))
	run := place(t)
	if _, err := Run(cancelled(), linear, Options{Backend: tape.Backend{}, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	var coders []metrics.Coder
	for _, folder := range []string{pca, run} {
		opened, err := Open(folder)
		fatal.If(t, err)
		coders = append(coders, opened.Coder(tape.Backend{}))
	}
	images := lists.Of(7*len(coders[0].Atoms().Bias), func(i int) float32 { return float32(i*i%17) / 17 })
	want, err := coders[0].Encode(images)
	fatal.If(t, err)
	got, err := coders[1].Encode(images)
	fatal.If(t, err)
	equalUpToRounding(t, "codes", got, want)
	if want, err = coders[0].Decode(want); err != nil {
		t.Fatal(err)
	}
	if got, err = coders[1].Decode(got); err != nil {
		t.Fatal(err)
	}
	equalUpToRounding(t, "reconstructions", got, want)
}

// equalUpToRounding compares values up to the rounding of float32.
func equalUpToRounding(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i, v := range want {
		if math.Abs(float64(got[i]-v)) > 1e-5 {
			t.Fatalf("%s: value %d is %v, want %v", name, i, got[i], v)
		}
	}
}

// cancelled returns a context that is done, so that a training stops before its first step.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestADamagedStartIsADamagedCheckpoint(t *testing.T) {
	source := another(t)
	path := source + "/" + folder.Model
	fatal.If(t, os.WriteFile(path, read(t, source, folder.Model)[1:], 0o666))
	_, err := Run(context.Background(), model(t, normalised, from(source, "*")), Options{Backend: tape.Backend{}, Out: place(t)})
	if damaged, ok := errors.AsType[*checkpoint.Error](err); !ok || damaged.Path != path {
		t.Errorf("got %v, want a *checkpoint.Error of %s", err, path)
	}
}

func TestAStartFromSamplesOfAnotherScaleIsAWarning(t *testing.T) {
	const text = "[model.m]\nencoder = [{ kind = \"dense\", units = 3 }]\ntrain = { epochs = 1 }\n"
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "x.npy"))
	fatal.If(t, data.WriteImages(file, []int{2}, []float32{1, 2, 3, 5, 0, 1, 4, 4, 2, 0, 1, 1}))
	plain := `dataset={validation=0,file="` + file + `"}`
	scaled := strings.Replace(plain, "{", `{scale="standardise",`, 1)
	run := trained(t, model(t, text, scaled), Options{}).Run
	for set, want := range map[string]int{scaled: 0, plain: 1} {
		var warned []string
		trained(t, model(t, text, set, from(run, "*")), Options{Warn: func(text string) {
			if strings.Contains(text, "are scaled by their statistics, those of this model are not") {
				warned = append(warned, text)
			}
		}})
		expect.Equal(t, len(warned), want, set)
	}
}

func TestAStartFromAnotherVocabularyIsRefused(t *testing.T) {
	const text = `[model.m]
dataset = { name = "tokens", file = "a.txt", length = 4, tokens = "characters", validation = 0 }
encoder = [{ kind = "embedding", vocabulary = 8, units = 2 }]
decoder = []
head.next = { from = "encoder.0", layers = [{ kind = "token_dense", units = 8 }] }
loss = [{ kind = "next_token", on = "next", length = "length" }]
train = { epochs = 1 }
`
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("a.txt", []byte("eeeeeebbbaaeebba"), 0o600))
	fatal.If(t, os.WriteFile("b.txt", []byte("aaaaaabbbeebbaaa"), 0o600))
	trained(t, model(t, text), Options{Out: "run"})
	_, err := Run(t.Context(), model(t, text, "dataset.file=b.txt", from("run", "*")), Options{Backend: tape.Backend{}, Out: "other"})
	expect.Error(t, err, `run has another vocabulary (number 0 is "e" there and "a" here): the rows of encoder.0.weight would be those of other words; `+
		`data set tokens: take its vocabulary with tokenizer = "run/model.safetensors"`)
	trained(t, model(t, text, "dataset.file=b.txt"), Options{Out: "other"})
	took := model(t, text, "dataset.file=b.txt", "dataset.tokenizer=run/model.safetensors", from("run", "*"), "train.epochs=0")
	got := trained(t, took, Options{Out: "took"}).Trained.Tokens
	expect.Slice(t, got.Names, []string{"e", "b", "a"}, "the vocabulary")
	fatal.If(t, errors.Join(os.Rename("run", "former"), os.Rename("other", "run"))) // which has another vocabulary
	_, err = Resume(t.Context(), "took", Options{Epochs: 1, Backend: tape.Backend{}})
	expect.Error(t, err, "run/model.safetensors has changed since the run was trained")
	_, err = Run(t.Context(), model(t, text, "dataset.tokens=words", "dataset.tokenizer=run/model.safetensors"), Options{Backend: tape.Backend{}, Out: "words"})
	expect.Error(t, err, `has a vocabulary of characters, and the key tokens is "words"; write tokens = "characters"`)
}

func TestAStartFromColumnsOrClassesOfOtherNamesIsAWarning(t *testing.T) {
	const text = `[model.m]
dataset = { name = "csv", file = "a.csv", labels = "k", validation = 0 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
head.class = { layers = [{ kind = "dense" }] }
loss = [{ kind = "cross_entropy", on = "class" }]
train = { epochs = 1 }
`
	t.Chdir(t.TempDir())
	for name, table := range map[string]string{
		"a.csv": "x,y,k\n1,2,cat\n3,5,dog\n2,9,cat\n", "b.csv": "y,x,k\n1,2,cat\n3,5,dog\n2,9,cat\n", "c.csv": "x,y,k\n1,2,cow\n3,5,dog\n2,9,cow\n"} {
		fatal.If(t, os.WriteFile(name, []byte(table), 0o600))
	}
	trained(t, model(t, text), Options{Out: "run"})
	for _, c := range [][3]string{{"a.csv", "*", ""}, {"b.csv", "*", `the values of run differ from those of this model (number 0 is "x" there and "y" here)`}, {"b.csv", "head.*", ""},
		{"c.csv", "*", `the classes of run differ from those of this model (number 0 is "cat" there and "cow" here)`}, {"c.csv", "encoder.*", ""}} {
		warned := ""
		trained(t, model(t, text, "dataset.file="+c[0], from("run", c[1])), Options{Warn: func(text string) {
			if strings.HasPrefix(text, "start:") {
				warned += text
			}
		}})
		if !strings.Contains(warned, c[2]) || c[2] == "" && warned != "" {
			t.Errorf("%s on %s: got %q, want %q", c[0], c[1], warned, c[2])
		}
	}
}
