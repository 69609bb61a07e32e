package coder_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/laws"
	"tessera/metrics"
)

const teacherText = `dataset = { name = "credit", count = 300, test = 40 }
encoder = [{ kind = "dense", units = 5, activation = "relu" }]
decoder = []
head.class.layers = [{ kind = "dense" }]
loss = [{ kind = "cross_entropy", on = "class" }]
train.epochs = 1`

// answering trains a small classifier of the data set credit in the folder "teacher" of the current directory.
func answering(t *testing.T) *tessera.Run {
	t.Helper()
	t.Chdir(t.TempDir())
	return declared(t, teacherText, "teacher")
}

// declared trains a declared model in a folder.
func declared(t *testing.T, text, out string) *tessera.Run {
	t.Helper()
	run, err := trainedIn(t, text, out)
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}

func trainedIn(t *testing.T, text, out string) (*tessera.Run, error) {
	t.Helper()
	f, err := config.Load("models.toml", []byte("[model.m]\n"+text))
	fatal.If(t, err)
	m, err := f.Model("m")
	if err != nil {
		return nil, err
	}
	return tessera.Train(t.Context(), m, tessera.Options{Out: out, Force: true, Threads: 1})
}

// sourceOf returns the data set of a declared model.
func sourceOf(t *testing.T, dataset string) data.Source {
	t.Helper()
	f, err := config.Load("models.toml", []byte("[model.m]\nkind = \"gmm\"\ncomponents = 2\ndataset = "+dataset))
	fatal.If(t, err)
	m, err := f.Model("m")
	fatal.If(t, err)
	return m.Dataset.Source
}

func TestADataSetHasTheValuesOfARun(t *testing.T) {
	teacher := answering(t)
	const text = `{ run = "teacher", value = "code", labels = "class", columns = { logits = "class" } }`
	set, err := data.Load(t.Context(), sourceOf(t, text), nil, data.Both.WithColumns([]string{"logits", "group"}))
	fatal.If(t, err)
	own, err := data.Load(t.Context(), teacher.Model.Dataset.Source, nil, data.Both.WithColumns([]string{"group"}))
	fatal.If(t, err)
	for _, pair := range [][2]*data.Images{{set.Train, own.Train}, {set.Test, own.Test}} {
		got, from := pair[0], pair[1]
		for i := range from.Len() { // one at a time: no block, no neighbours
			image := make([]float32, from.Pixels())
			from.Batch(image, []int{i})
			code, err := teacher.Encode(image)
			fatal.If(t, err)
			logits, err := teacher.Value("class", image)
			fatal.If(t, err)
			gotCode, gotLogits, group, wantGroup := make([]float32, 5), make([]float32, 2), make([]float32, 1), make([]float32, 1)
			got.Batch(gotCode, []int{i})
			got.Gather(gotLogits, "logits", []int{i})
			got.Gather(group, "group", []int{i})
			from.Gather(wantGroup, "group", []int{i})
			label := 0
			if logits[1] > logits[0] {
				label = 1
			}
			if !slices.Equal(gotCode, code) || !slices.Equal(gotLogits, logits) || group[0] != wantGroup[0] || got.Labels()[i] != label {
				t.Fatalf("sample %d: got code %v, logits %v, group %v, label %d, want %v, %v, %v, %d", i, gotCode, gotLogits, group, got.Labels()[i], code, logits, wantGroup, label)
			}
		}
	}
	if len(set.Files) != 1 || set.Files[0].Path != "teacher" || !slices.Equal(set.Classes, own.Classes) {
		t.Errorf("got files %v, classes %q", set.Files, set.Classes)
	}
	for _, text := range []string{text, `{ run = "teacher", labels = "class", of = { name = "credit", count = 30, test = 0, seed = 9 } }`} {
		for law, err := range laws.Source.Test(func() data.Source { return sourceOf(t, text) }) {
			expect.NoError(t, err, text, law)
		}
	}
}

// A run may read which values a sample has.
func TestARunOfMissingValuesGivesValues(t *testing.T) {
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("table.csv", []byte("a,b\n1,2\n2,\n,4\n4,5\n3,1\n5,2\n"), 0o600))
	run := declared(t, `dataset = { file = "table.csv", missing = "nan", validation = 0 }
encoder = [{ kind = "dense", units = 2, from = ["images", "observed"] }]
train.epochs = 1`, "holed")
	set, err := data.Load(t.Context(), sourceOf(t, `{ run = "holed", value = "code" }`), nil, data.Both)
	fatal.If(t, err)
	nan := float32(math.NaN())
	want, err := run.ValueOf("code", map[string][]float32{"images": {1, 2, 2, nan, nan, 4, 4, 5, 3, 1, 5, 2}, "observed": {1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1}})
	fatal.If(t, err)
	expect.Slice(t, set.Train.Float32(), want, "codes")
	codes, err := run.Encode([]float32{1, 2, 2, nan, nan, 4, 4, 5, 3, 1, 5, 2})
	fatal.If(t, err)
	expect.Slice(t, codes, want, "codes of samples alone")
}

// A density of codes finds its samples also from another working directory. After the run has changed, the density can be
// neither resumed nor measured.
func TestAModelOfARunsValuesKnowsThatRun(t *testing.T) {
	answering(t)
	const text = "kind = \"gmm\"\ncomponents = 2\ndataset = { run = \"teacher\", value = \"code\" }\n"
	fatal.If(t, expect.Err(trainedIn(t, text+"iterations = 5\ntolerance = 0", "density")))
	there, err := os.Getwd()
	fatal.If(t, err)
	t.Chdir(t.TempDir())
	measure := func() error {
		r, err := tessera.Open(filepath.Join(there, "density"), tessera.Options{})
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.Evaluate(t.Context(), nil)
		return err
	}
	fatal.If(t, measure())
	t.Chdir(there)
	stop, cancel := context.WithCancel(t.Context())
	f, err := config.Load("models.toml", []byte("[model.m]\n"+text+"iterations = 50\ntolerance = 0"))
	fatal.If(t, err)
	m, err := f.Model("m")
	fatal.If(t, err)
	_, err = tessera.Train(stop, m, tessera.Options{Out: "begun", Report: func(train.Progress) { cancel() }})
	if !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("got %v, want an interruption", err)
	}
	declared(t, teacherText+"\ntrain.seed = 2", "teacher")
	expect.Error(t, measure(), "teacher: has changed since the run was trained")
	expect.Error(t, expect.Err(tessera.Resume(t.Context(), "begun", tessera.Options{})), "has changed since the run was trained", "resume")
	fatal.If(t, os.RemoveAll("teacher"))
	var missing *data.Error
	if err := measure(); !errors.As(err, &missing) || missing.Problem != data.NotFound {
		t.Errorf("got %v, want an error for the missing run", err)
	}
}

func TestWrongValuesOfARunAreErrors(t *testing.T) {
	answering(t)
	fatal.If(t, os.Mkdir("empty", 0o700))
	for text, want := range map[string]string{
		`{ run = "nothing", value = "code" }`:                                                 "run: nothing: not found; train that run first",
		`{ run = "empty", value = "code" }`:                                                   "run: empty: not found; train that run first",
		`{ run = "teacher", value = "cod" }`:                                                  `run: teacher: value: got "cod", want one of "code"`,
		`{ run = "teacher", labels = "code" }`:                                                `run: teacher: labels: got "code", want one of "class"`,
		`{ run = "teacher", columns = { a = "b" } }`:                                          `run: teacher: columns.a: got "b", want one of`,
		`{ run = "teacher", value = "code", of = { name = "bars" } }`:                         "the run reads samples of shape [6], those of bars have [8 8]",
		`{ run = "teacher", value = "code", of = { name = "csv", file = "x.csv" } }`:          "csv: x.csv: not found",
		`{ run = "teacher" }`:                                                                 "nothing of the run is used",
		`{ run = "teacher", columns = { labels = "class" } }`:                                 `write value = "class" or labels = "class"`,
		`{ run = "teacher", columns = { a = ["class", "code"] } }`:                            "a: got 2 values, want one",
		`{ run = "teacher", value = "code", of = { name = "run", run = "own", value="code"}}`: "run: own: not found",
	} {
		_, err := trainedIn(t, "kind = \"kmeans\"\ncomponents = 2\ndataset = "+text, "wrong")
		expect.Error(t, err, want, text)
		if _, err := os.Stat("wrong"); err == nil {
			t.Fatalf("%s: a folder was written", text)
		}
	}
	// a run that replaces the one whose values it was trained on
	fatal.If(t, expect.Err(trainedIn(t, "kind = \"kmeans\"\ncomponents = 2\ndataset = { run = \"teacher\", value = \"code\" }", "teacher")))
	_, err := trainedIn(t, "kind = \"kmeans\"\ncomponents = 2\ndataset = { run = \"teacher\", value = \"code\" }", "wrong")
	expect.Error(t, err, "run: teacher: it was trained on its own values")
}

// Values of a run that are scaled by statistics of the fitted samples are others with other fitted samples.
func TestAScaleOfAnswersIsFitted(t *testing.T) {
	for want, s := range map[bool]*tessera.Answers{
		true:  {Run: "r", Value: "code", Scale: data.Scale{&data.Standardise{Centre: true}}},
		false: {Run: "r", Value: "code"},
	} {
		expect.Equal(t, data.ScaleIsFitted(s), want, s)
	}
}

// Computed values have no bytes to divide by 255.
func TestBytesAreAScaleOfFilesOnly(t *testing.T) {
	for _, text := range []string{`{ name = "topics", scale = "bytes" }`, `{ name = "patches", of = "swimmer", size = 4, scale = "bytes" }`, `{ name = "run", run = "r", value = "code", scale = "bytes" }`} {
		f, err := config.Load("models.toml", []byte("[model.m]\nencoder = [{ kind = \"dense\", units = 2 }]\ndataset = "+text+"\n"))
		if err == nil {
			_, err = f.Model("m")
		}
		expect.Error(t, err, "which is for numbers of files", text)
	}
}

// The logits after reconstructions in place of codes are those of plain loops over the parameters of the head; standardised samples are
// brought back before.
func TestRecoveredLossIsThatOfTheClassifierBehind(t *testing.T) {
	t.Chdir(t.TempDir())
	declared(t, strings.Replace(teacherText, "epochs = 1", "epochs = 60", 1)+"\noptimizer = { kind = \"adam\", learning_rate = 0.01 }", "teacher")
	trained, err := train.Open("teacher")
	fatal.If(t, err)
	weight, bias := parameter(t, trained, "head.class.0.weight"), parameter(t, trained, "head.class.0.bias")
	judged := func(codes []float32, labels []int) (nll, right float64) {
		for i, label := range labels {
			z := []float64{float64(bias[0]), float64(bias[1])}
			for j, h := range codes[i*5 : (i+1)*5] {
				z[0] += float64(h) * float64(weight[2*j])
				z[1] += float64(h) * float64(weight[2*j+1])
			}
			nll += math.Log(math.Exp(z[0])+math.Exp(z[1])) - z[label]
			if z[label] > z[1-label] {
				right++
			}
		}
		return nll / float64(len(labels)), right / float64(len(labels))
	}
	for _, scale := range []string{"", `, scale = "standardise"`} {
		run := declared(t, `dataset = { run = "teacher", value = "code"`+scale+` }
encoder = [{ kind = "dense", units = 3 }]
decoder = [{ kind = "dense" }]
loss = [{ kind = "mse" }]
train.epochs = 2`, "dictionary")
		chosen, err := metrics.Select("recovered_loss", "downstream_accuracy")
		fatal.If(t, err)
		result, err := run.EvaluateOn(t.Context(), data.TestSplit, chosen)
		fatal.If(t, err)
		set, err := data.Load(t.Context(), sourceOf(t, `{ run = "teacher", value = "code" }`), nil, data.Both)
		fatal.If(t, err)
		codes, labels := set.Test.Float32(), set.Test.Labels()
		reconstructions, err := run.Value("output", codes)
		fatal.If(t, err)
		original, _ := judged(codes, labels)
		reconstructed, right := judged(reconstructions, labels)
		zeros, _ := judged(make([]float32, len(codes)), labels)
		expect.Near(t, result.Values[0].Number, (zeros-reconstructed)/(zeros-original), 1e-4, "recovered loss"+scale)
		expect.Near(t, result.Values[1].Number, right, 1e-9, "accuracy"+scale)
	}
}

// A head that is not computed from the value alone has no recovered loss, which is no error; one that is has logits for any rows.
func TestAHeadBesideTheValueIsNotDownstream(t *testing.T) {
	t.Chdir(t.TempDir())
	declared(t, strings.Replace(teacherText, "decoder = []\nhead.class.layers = [{ kind = \"dense\" }]", `decoder = []
head.class = { from = "images", layers = [{ kind = "dense" }] }`, 1), "beside")
	declared(t, teacherText, "behind")
	for run, behind := range map[string]bool{"beside": false, "behind": true} {
		for value, there := range map[string]bool{"code": behind, "encoder.0": behind, "class": true} {
			set, err := data.Load(t.Context(), sourceOf(t, `{ run = "`+run+`", value = "`+value+`" }`), nil, data.Both)
			fatal.If(t, err)
			expect.Equal(t, set.Test.Downstream != nil, there, run, value)
			if there {
				n := 0
				fatal.If(t, set.Test.Following()(set.Test.Float32(), func(i int, logits []float32) error {
					n += len(logits)
					return nil
				}))
				expect.Equal(t, n, 2*set.Test.Len(), run, value, "logits")
			}
		}
	}
}

func parameter(t *testing.T, of *train.Trained, path string) []float32 {
	t.Helper()
	for _, p := range of.Model.Parameters {
		if p.Path == path {
			return p.Data
		}
	}
	t.Fatalf("no parameter %q", path)
	return nil
}
