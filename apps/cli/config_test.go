package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"tessera"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestMistakesAreReportedWithLineCaretAndSuggestionAndExitCode3(t *testing.T) {
	b := newBench(t)
	b.write("bad.toml", `[model.first]
[[model.first.encoder]]
kind = "dense"
unitz = 5

[[model.first.encoder]]
kind = "sigmiod"

[model.first.train]
batch = 0
`)
	want := `bad.toml:4:1: model "first": encoder[0] (dense): unknown key "unitz"
    unitz = 5
    ^^^^^ did you mean "units"?
bad.toml:7:8: model "first": encoder[1]: unknown kind "sigmiod"
    kind = "sigmiod"
           ^^^^^^^^^ did you mean "sigmoid"?
bad.toml:10:9: model "first": train: batch: got 0, want an integer > 0
    batch = 0
            ^
`
	for _, args := range []string{"check bad.toml", "train first -f bad.toml", "summary first -f bad.toml", "list models -f bad.toml"} {
		r := b.must(exitConfig, strings.Fields(args)...)
		expect.Equal(t, r.stderr, want, "tessera", args, "prints")
		expect.Equal(t, r.stdout, "", "tessera", args, "prints")
	}
}

func TestMistakesOfSetAreReportedByTheirPath(t *testing.T) {
	b := newBench(t)
	b.contains("a setting of two words", b.must(exitUsage, "train", "small", "--set", "train.epochs", "3").stderr, "as in --set train.epochs=3")
	r := b.must(exitConfig, "train", "small", "--set", "loss.1.wieght=3")
	want := `--set loss.1.wieght: model "small": loss[1] (kl): unknown key "wieght"
    loss.1.wieght=3
           ^^^^^^ did you mean "weight"?
`
	expect.Equal(t, r.stderr, want)
}

func TestSettingsThatOnlyTheImagesProveWrongEndWithExitCode3(t *testing.T) {
	b := newBench(t)
	r := b.must(exitConfig, "train", "small", "--set", "dataset.validation=0.001")
	b.contains("standard error", r.stderr, "validation: 0.001 holds out 0 of 256 samples")
}

func TestMoreBarsThanAnyoneDrawsAreAMistakeInTheModel(t *testing.T) {
	b := newBench(t)
	r := b.must(exitConfig, "train", "small", "--set", "dataset.name=bars", "--set", "dataset.count=1000000000000")
	b.contains("standard error", r.stderr, "count", "[1,1000000]")
}

// A symbolic link to itself exists but cannot be read.
func TestModelsThatCannotBeReadAreNotReplacedByTheShippedOnes(t *testing.T) {
	b := newBench(t)
	b.shipped()
	fatal.If(t, os.Symlink("models.toml", b.path("models.toml")))
	b.contains("standard error", b.must(exitUsage, "check").stderr, "models.toml")
	b.contains("standard error", b.must(exitUsage, "list", "models").stderr, "models.toml")
}

func TestErrorsOfUsageEndWithExitCode2(t *testing.T) {
	b := newBench(t)
	for args, says := range map[string]string{
		"train smal":                      `unknown model "smal" in models.toml and the shipped models: did you mean "small"?`,
		"summary smal":                    `did you mean "small"?`,
		"check --fill smal":               `did you mean "small"?`,
		"trian small":                     "train",
		"train small --out .":             "--out .: is the current directory or contains it",
		"train small --frob":              "unknown flag",
		"train small -f none.toml":        "none.toml",
		"check none.toml":                 "none.toml",
		"resume nothing":                  "nothing: no such folder",
		"eval .":                          ".: is not a run",
		"data frob":                       `unknown command "frob"`,
		"data get swimmer":                `got "swimmer", want one of fashion-mnist, mnist`,
		"summary small --plan --json":     "--json and --plan cannot be given together",
		"check models.toml -f other.toml": "which file, models.toml or --file other.toml?",
		"list frobs":                      `unknown "frobs", want models, layers`,
	} {
		r := b.must(exitUsage, strings.Fields(args)...)
		b.contains("tessera "+args, r.stderr, says)
		expect.Equal(t, r.stdout, "", "tessera", args, "prints to standard output")
	}
}

func TestALibraryThatCannotBeUsedIsAnError(t *testing.T) {
	b := newBench(t)
	b.trained("run", 12)
	for _, variable := range []string{"TESSERA_BLAS=none.so", "TESSERA_SIMD=sse9"} {
		if strings.HasPrefix(variable, "TESSERA_SIMD") && runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
			continue // nothing to choose from
		}
		for _, args := range []string{"doctor", "train small", "train small", "train small --set kind=pca --set units=2", "resume run", "eval run"} {
			cmd := b.command(strings.Fields(args)...)
			cmd.Env = append(cmd.Env, variable)
			r := b.finish(cmd)
			expect.Equal(t, r.code, exitUsage, variable, "tessera", args, "exit code")
			b.contains(args, r.stderr, variable+": ", "unset the variable")
		}
	}
}

func TestTheFileInTheFolderAddsToTheShippedModels(t *testing.T) {
	b := newBench(t)
	for _, args := range []string{"check", "check models.toml", "check -f models.toml", "check models.toml --file models.toml"} {
		b.contains(args, b.must(0, strings.Fields(args)...).stdout, "models.toml: 2 models, no errors\nalso available: ", "that are shipped")
	}
	b.contains("summary", b.must(0, "summary", "shallow").stdout, "parameters  157,684\ntrainable   ")
	b.write("models.toml", smallModels+"[model.mine]\nextends = \"shallow\"\n[model.shallow-nonneg]\nextends = \"small\"\n[sweep.both]\nmodel = [\"shallow-nonneg\", \"swimmer-parts\"]\n")
	b.contains("check", b.must(0, "check").stdout, "models.toml: 4 models, 1 sweep, no errors\n")
	b.contains("mine", b.must(0, "summary", "mine").stdout, "parameters  157,684\ntrainable   ")
	b.contains("sweep", b.must(0, "sweep", "both", "--dry-run").stdout, "shallow-nonneg", "swimmer-parts")
	b.contains("shallow-nonneg", b.must(0, "check", "--fill", "shallow-nonneg").stdout, "epochs = 12")
	b.contains("shallow-nonneg", b.must(0, "check", "--fill", "shallow-nonneg", "-f", "shipped").stdout, "epochs = 500")
	b.contains("changed", b.must(0, "check", "--fill", "shallow-nonneg", "--set", "train.epochs=13").stdout, "epochs = 13")
	b.contains("unknown", b.must(exitConfig, "check", "--fill", "shallow-nonneg", "--set", "x.y=z").stderr, `unknown table "x"`)
	b.contains("no model", b.must(exitUsage, "check", "--set", "train.epochs=13").stderr, "name it with --fill")
	list := b.must(0, "list", "models", "sweeps").stdout
	b.contains("list", list, "models of models.toml\n  small\n", "\nshipped models\n", "\nsweeps of models.toml\n  both", "\nshipped sweeps\n")
	if strings.Count(list, "  shallow-nonneg\n") != 1 || strings.Contains(list, "  shallow-nonneg ") {
		t.Errorf("a model that replaces a shipped one is not listed once:\n%s", list)
	}
	b.shipped()
	b.contains("check", b.must(0, "check").stdout, "there is no models.toml in this folder; `tessera init` writes one\n",
		fmt.Sprintf("the shipped models: %d models, %d sweeps, no errors", len(tessera.Shipped().Names()), len(tessera.Shipped().SweepNames())))
	b.contains("summary shallow", b.must(0, "summary", "shallow").stdout, "parameters  157,684\ntrainable   ") // the study's number
}

func TestFillPrintsAModelThatIsTheSame(t *testing.T) {
	b := newBench(t)
	once := b.must(0, "check", "--fill", "small").stdout
	b.contains("the filled model", once, "beta1 = 0.9", `init = "glorot_uniform"`, "min_epoch_steps = 0")
	b.write("filled.toml", once)
	expect.Equal(t, b.must(0, "check", "filled.toml", "--fill", "small").stdout, once, "filled again")
}

func TestSummaryCountsParameters(t *testing.T) {
	b := newBench(t)
	b.contains("summary", b.must(0, "summary", "clothes").stdout, "encoder.2", "dense", "28x28", "parameters  10,198\ntrainable   ")
	var s struct {
		Parameters, Trainable int
		Layers                []struct {
			Path, Kind  string
			OutputShape []int `json:"output_shape"`
			Parameters  int
		}
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "summary", "clothes", "--json").stdout), &s))
	if s.Parameters != 784*6+6+6*784+784 || s.Trainable != s.Parameters || len(s.Layers) != 4 ||
		s.Layers[2].Path != "encoder.2" || s.Layers[2].Kind != "dense" || s.Layers[2].OutputShape[0] != 6 || s.Layers[2].Parameters != 4710 {
		t.Errorf("got %+v", s)
	}
	b.contains("the plan", b.must(0, "summary", "clothes", "--plan").stdout, "phase 1", "steps in", "on 2 processes: ")
}

func TestListShowsWhatThereIsWithKeysAndDefaults(t *testing.T) {
	b := newBench(t)
	r := b.must(0, "list")
	b.contains("list", r.stdout, "models of models.toml\n", "small", "shipped models\n", "layers\n", "dense", "masking_noise", "losses\n", "asymmetric_decay", "constraints\n",
		"nonneg", "optimizers\n", "adadelta", "datasets\n", "swimmer", "learning_rate", "= 0.001")
	one := b.must(0, "list", "constraints").stdout
	if strings.Contains(one, "dense") || !strings.Contains(one, "max_norm") {
		t.Errorf("list constraints prints\n%s", one)
	}
	var all map[string][]struct{ Name, About string }
	if err := json.Unmarshal([]byte(b.must(0, "list", "--json").stdout), &all); err != nil || len(all["layers"]) < 10 {
		t.Errorf("list --json: %v, %d layers", err, len(all["layers"]))
	}
}

func TestDoctorVersionAndDataTellWhatTheyFind(t *testing.T) {
	b := newBench(t)
	b.contains("doctor", b.must(0, "doctor").stdout, "cpu", "threads", "GOMAXPROCS", "kernels", "fashion-mnist", "not found")
	line := b.must(0, "version").stdout
	b.contains("version", line, "tessera ", "go1.")
	expect.Equal(t, b.must(0, "--version").stdout, line, "--version prints")
	b.contains("data list", b.must(0, "data", "list").stdout, "swimmer", "generated", "mnist", "not found")
}

func TestDoctorNamesTheVersionsOfTheModulesThatCompute(t *testing.T) {
	read := readBuildInfo
	defer func() { readBuildInfo = read }()
	readBuildInfo = func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{Deps: []*debug.Module{{Path: "gonum.org/v1/gonum", Version: "v1.2.3"}, {Path: "example.org/other", Version: "v9.9.9"},
			{Path: "gorgonia.org/gorgonia", Version: "v4.5.6"}}}, true
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"doctor"}, &out, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	expect.Contains(t, strings.Join(strings.Fields(out.String()), " "), "gorgonia.org/gorgonia v4.5.6 gonum.org/v1/gonum v1.2.3 cpu", out.String())
}

func TestTheShellCompletesModels(t *testing.T) {
	b := newBench(t)
	b.contains("completion", b.must(0, "__complete", "train", "").stdout, "small\n", "clothes\n")
	b.contains("completion", b.must(0, "__complete", "check", "--fill", "").stdout, "small\n")
	b.contains("completion", b.must(0, "__complete", "list", "").stdout, "losses\n")
}

// check and summary also report errors that occur only when the graph of a model is built.
func TestCheckBuildsTheGraph(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"softmax\" }, { kind = \"dense\", units = 5 }]\ndecoder = []\nloss = [{ kind = \"contractive\" }]\n")
	for _, args := range [][]string{{"check"}, {"summary", "m"}, {"train", "m", "--epochs", "1"}} {
		b.contains(args[0], b.must(exitConfig, args...).stderr, `model "m"`, "encoder.1.bias")
	}
}

func TestDoctorMeasuresTheLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("measures whole steps")
	}
	defer func(budget time.Duration) { limitBudget = budget }(limitBudget)
	limitBudget = 0
	var got struct {
		Bench []struct {
			What string  `json:"what"`
			All  float64 `json:"all"`
			Time float64 `json:"time"`
		} `json:"bench"`
	}
	if r := inProcess("doctor", "--bench", "--json"); r.code != 0 || json.Unmarshal([]byte(r.stdout), &got) != nil {
		t.Fatalf("%+v", r)
	}
	steps := 0
	for _, row := range got.Bench {
		if row.All <= 0 && row.What != "multiply-adds" { // there is no peak in portable Go
			t.Errorf("%+v: not measured", row)
		}
		if row.Time > 0 {
			steps++
		}
	}
	expect.Equal(t, steps, len(limited), "steps", got.Bench)
}
