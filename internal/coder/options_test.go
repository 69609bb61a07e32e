package coder_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tessera"
	"tessera/apps/serve"
	"tessera/apps/show"
	"tessera/apps/show/comparison"
	"tessera/apps/show/figures"
	"tessera/apps/show/page"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/coder"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/mpi"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/evaluation"
	"tessera/layers"
	"tessera/metrics"
	"tessera/posthoc/refit"
)

// sourceFolder is the folder of this package, because the tests change the working directory.
var sourceFolder, _ = filepath.Abs("../..")

func dense(units int) layers.Layer { return &layers.Dense{Units: units} }

// bareModel returns a complete declaration of a small model.
func bareModel(t *testing.T) *config.Model {
	t.Helper()
	m, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: rows(t, 1)}, Train: config.Train{Epochs: 1},
		Encoder: []config.Layer{{Kind: "dense", Layer: dense(3)}}})
	fatal.If(t, err)
	return m
}

// withOptions returns a call of every exported function and method that has options, by package and name. Each call has zero
// options, and must either have a reasonable default or return an error.
func withOptions(t *testing.T) map[string]func() error {
	ctx, m := t.Context(), bareModel(t)
	g, err := graph.New(m, []int{6, 5})
	fatal.If(t, err)
	t.Chdir(t.TempDir()) // a run without Out goes to runs/
	run := &tessera.Run{Coder: coder.New(nil, coder.Options{})}
	return map[string]func() error{
		"tessera.Train":  func() error { r, err := tessera.Train(ctx, m, tessera.Options{}); return closed(r, err) },
		"tessera.Resume": func() error { r, err := tessera.Resume(ctx, "", tessera.Options{}); return closed(r, err) },
		"tessera.NewTrainer": func() error {
			tr, err := tessera.NewTrainer(ctx, nil, tessera.Options{})
			if err == nil {
				tr.Close()
			}
			return err
		},
		"tessera.Open":               func() error { r, err := tessera.Open("", tessera.Options{}); return closed(r, err) },
		"tessera.OpenFS":             func() error { r, err := tessera.OpenFS(nil, "", tessera.Options{}); return closed(r, err) },
		"tessera.ReadModel":          func() error { r, err := tessera.ReadModel(nil, tessera.Options{}); return closed(r, err) },
		"coder.Coder.Encoder":        func() error { _, err := run.Encoder(tessera.EncoderOptions{}); return err },
		"classical.NewModel":         func() error { _, err := classical.NewModel(nil, nil, 0, nil); return err },
		"tessera.Run.Evaluate":       func() error { _, err := run.Evaluate(ctx, nil); return err },
		"train.Run":                  func() error { _, err := train.Run(ctx, m, train.Options{}); return err },
		"train.Resume":               func() error { _, err := train.Resume(ctx, "", train.Options{}); return err },
		"train.Examine":              func() error { _, err := train.Examine(ctx, m, train.Options{}); return err },
		"graph.Model.Program":        func() error { _, err := g.Program(graph.Request{}); return err },
		"comparison.Compare":         func() error { _, err := comparison.Compare(ctx, nil, comparison.Options{}); return err },
		"sweep.New":                  func() error { _, err := sweep.New(ctx, &config.Sweep{}, sweep.Options{}); return err },
		"sweep.Sweep.Plan":           func() error { _, err := (&sweep.Sweep{}).Plan(ctx, sweep.PlanOptions{}); return err },
		"train.Time":                 func() error { _, err := train.Time(ctx, m, train.Options{}, nil, 0); return err },
		"metrics.Evaluate":           func() error { _, err := metrics.Evaluate(ctx, nil, metrics.Sample{}, nil); return err },
		"metrics.Start":              func() error { _, err := metrics.Start(metrics.Subject{}, 0, nil, nil); return err },
		"data.Set.Split":             func() error { _, err := (&data.Set{}).Split(data.Selection{}, 0); return err },
		"data.Set.Measured":          func() error { _, _, err := (&data.Set{}).Measured(data.Selection{}, 0, ""); return err },
		"data.NeedOf":                func() error { data.NeedOf(nil, data.Selection{}, ""); return nil },
		"evaluation.Take":            func() error { _, err := evaluation.Take(nil, nil, nil, ""); return err },
		"tessera.Run.EvaluateOn":     func() error { _, err := run.EvaluateOn(ctx, "", nil); return err },
		"tessera.Run.Report":         func() error { _, err := run.Report(ctx, nil); return err },
		"tessera.Run.EvaluateWith":   func() error { _, err := run.EvaluateWith(ctx, nil, nil, nil); return err },
		"tessera.Run.EvaluateImages": func() error { _, err := run.EvaluateImages(ctx, "", nil, nil); return err },
		"tessera.Run.EvaluateSample": func() error { _, err := run.EvaluateSample(ctx, nil, nil); return err },
		"page.ReadRun":               func() error { _, err := page.ReadRun(ctx, "", page.Options{}); return err },
		"page.ReadSweep":             func() error { _, err := page.ReadSweep(ctx, "", page.Options{}); return err },
		"serve.New":                  func() error { _, err := serve.New(nil, serve.Options{}); return err },
		"serve.Server.ServeHTTP": func() error {
			zero, answer := &serve.Server{}, httptest.NewRecorder()
			zero.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v2", nil))
			if answer.Code != http.StatusServiceUnavailable {
				return fmt.Errorf("got status %d, want %d", answer.Code, http.StatusServiceUnavailable)
			}
			return zero.Close()
		},
		"fleet.NewCoordinator": func() error { fleet.NewCoordinator(fleet.Options{}); return nil },
		"fleet.Work":           func() error { return fleet.Work(ctx, fleet.WorkerOptions{}) },
		"mpi.Join":             func() error { _, err := mpi.Join(mpi.Options{}); return err },
		"evaluation.OnFitted": func() error {
			evaluation.OnFitted(nil, nil)
			evaluation.OnFitted(nil, metrics.Selection{{}})
			return nil
		},
		"evaluation.Measure":    func() error { _, err := evaluation.Measure(ctx, nil, nil, nil, nil); return err },
		"show.Also":             func() error { _, err := show.Also(nil); return err },
		"metrics.Selection.Add": func() error { metrics.Selection(nil).Add(nil); return nil },
		"metrics.ValuesOf":      func() error { metrics.ValuesOf(nil); metrics.ValuesOf(metrics.Selection{{}}); return nil },
		"metrics.ColumnsOf":     func() error { metrics.ColumnsOf(nil, nil); metrics.ColumnsOf(metrics.Selection{{}}, nil); return nil },
		"refit.Thresholds": func() error {
			_, err := refit.Thresholds(ctx, run, refit.ThresholdOptions{})
			return err
		},
		"metrics.WithHoles": func() error { metrics.WithHoles(nil); metrics.WithHoles(metrics.Selection{{}}); return nil },
	}
}

func closed(r *tessera.Run, err error) error {
	if err != nil {
		return err
	}
	return r.Close()
}

func TestZeroOptionsPanicNowhere(t *testing.T) {
	calls := withOptions(t)
	for name, call := range calls {
		calmly(t, name, call)
	}
	for _, name := range []string{"tessera.Train", "train.Run"} { // which have all that they need
		expect.NoError(t, calls[name](), name)
	}
	for _, name := range takingOptions(t) {
		if _, ok := calls[name]; !ok {
			t.Errorf("%s takes options and is not in the table of this test", name)
		}
	}
}

func TestNilAndZeroValuesPanicNowhere(t *testing.T) {
	ctx := t.Context()
	fails := func(call func() error) func() error {
		return func() error {
			err := call()
			if err == nil {
				panic("neither a default nor an error")
			}
			return err
		}
	}
	for name, call := range map[string]func() error{
		"train nil":           fails(func() error { _, err := train.Run(ctx, nil, train.Options{}); return err }),
		"train zero":          fails(func() error { _, err := train.Run(ctx, &config.Model{}, train.Options{}); return err }),
		"train.StartOf":       func() error { _, err := train.StartOf(nil); return err },
		"train.Trained.Coder": fails(func() error { _, err := (&train.Trained{}).Coder(nil).Encode(nil); return err }),
		"graph.New nil":       fails(func() error { _, err := graph.New(nil, []int{2, 2}); return err }),
		"graph.New zero":      func() error { _, err := graph.New(&config.Model{}, nil); return err },
		"graph.Program nil":   fails(func() error { _, err := (*graph.Model)(nil).Program(graph.Request{Batch: 1}); return err }),
		"graph.Program zero":  fails(func() error { _, err := (&graph.Model{}).Program(graph.Request{Batch: 1}); return err }),
		"graph.NewCoder":      fails(func() error { _, err := graph.NewCoder(nil, nil).Decode([]float32{1}); return err }),
		"engine.Compile":      fails(func() error { _, err := engine.Compile[float32](nil, nil); return err }),
		"engine.Compile zero": func() error { _, err := engine.Compile[float32](&ir.Module{}, nil); return err },
		"engine.Backend":      fails(func() error { _, err := engine.Backend{}.Compile(nil); return err }),
		"tape.Backend":        fails(func() error { _, err := tape.Backend{}.Compile(nil); return err }),
		"config.Model.Text":   func() error { (*config.Model)(nil).Text(); (&config.Model{}).Text(); return nil },
		"config.Complete":     fails(func() error { _, err := config.Complete(nil); return err }),
		"config.File.Check":   func() error { return (&config.File{}).Check() },
		"config.File.Names":   func() error { (&config.File{}).Names(); (&config.File{}).SweepNames(); return nil },
		"config.File.Model":   fails(func() error { _, err := (&config.File{}).Model("m"); return err }),
		"config.File.Sweep":   fails(func() error { _, err := (&config.File{}).Sweep("s"); return err }),
		"sweep.New":           fails(func() error { _, err := sweep.New(ctx, nil, sweep.Options{}); return err }),
		"metrics choice":      fails(func() error { _, err := metrics.Start(metrics.Subject{}, 0, nil, metrics.Selection{{}}); return err }),
		"baselines.Fit":       fails(func() error { _, err := classical.Fit(ctx, nil, nil, nil); return err }),
		"baselines.Matrix":    func() error { return fmt.Errorf("%d images", classical.Matrix{}.Len()) },
		"sweep trial": fails(func() error {
			_, err := sweep.New(ctx, &config.Sweep{Trials: []config.Trial{{}}}, sweep.Options{})
			return err
		}),
		"sweep metric": fails(func() error {
			_, err := sweep.New(ctx, &config.Sweep{}, sweep.Options{Metrics: metrics.Selection{{}}})
			return err
		}),
		"data.Set.Split":      fails(func() error { _, err := (*data.Set)(nil).Split(data.Selection{}, 0); return err }),
		"data.Set.Evaluation": fails(func() error { _, err := (*data.Set)(nil).Evaluation(); return err }),
		"figures.Figure":      fails(func() error { return (&figures.Figure{}).Save("a.png") }),
		"attack.Perturb":      fails(func() error { _, err := (&attack.Trial{Attack: &attack.FGSM{}}).Perturb(ctx, nil, nil); return err }),
		"attack.Measure":      fails(func() error { _, err := attack.Measure(ctx, nil, nil, nil); return err }),
		"figures.Atoms":       fails(func() error { _, err := figures.Atoms(nil); return err }),
		"figures.Curves":      func() error { _, _ = figures.Curves(nil, nil); return nil },
		"figures.Training":    fails(func() error { _, err := figures.Training(); return err }),
		"checkpoint.Encode":   fails(func() error { _, err := checkpoint.Encode(nil, nil); return err }),
		"tessera.Plan":        fails(func() error { _, err := tessera.Plan(nil); return err }),
		"tessera.Declare":     fails(func() error { _, err := tessera.Declare(config.Model{}); return err }),
		"data.Memory":         fails(func() error { _, err := (*data.Memory)(nil).Load(ctx, nil, data.Both); return err }),
		"tessera.Encoder": fails(func() error {
			e := &tessera.Encoder{}
			_, _, _ = e.Units(), e.Programs(), e.Close()
			_, err := e.Encode(ctx, nil, nil)
			return err
		}),
	} {
		calmly(t, name, call)
	}
	for name, e := range map[string]*tessera.Encoder{"nil": nil, "zero": {}} {
		calmly(t, name+" encoder", fails(func() (last error) {
			for _, last = range e.Stream(ctx, nil) {
			}
			return last
		}))
	}
}

func TestACallWithoutAContextIsAnError(t *testing.T) {
	m := bareModel(t)
	out := t.TempDir() + "/run"
	run, err := tessera.Train(t.Context(), m, tessera.Options{Out: out})
	fatal.If(t, err)
	defer run.Close()
	e := encoder(t, run, tessera.EncoderOptions{})
	var none context.Context
	for name, call := range map[string]func() error{
		"Train": func() error {
			r, err := tessera.Train(none, m, tessera.Options{Out: out + "-2"})
			return closed(r, err)
		},
		"Resume":           func() error { r, err := tessera.Resume(none, out, tessera.Options{}); return closed(r, err) },
		"Evaluate":         func() error { _, err := run.Evaluate(none, nil); return err },
		"Attack":           func() error { _, err := runs.Measure(none, run, []attack.Trial{usualAttack}, 0); return err },
		"Images":           func() error { _, err := run.Images(none); return err },
		"Encode":           func() error { _, err := e.Encode(none, nil, nil); return err },
		"attack.Measure":   func() error { _, err := attack.Measure(none, nil, nil, nil); return err },
		"metrics.Evaluate": func() error { _, err := metrics.Evaluate(none, run, metrics.Sample{}, nil); return err },
	} {
		calmly(t, name, func() error {
			err := call()
			expect.Error(t, err, "no context", name)
			return err
		})
	}
	expect.Is(t, expect.Err(os.Stat(out+"-2")), fs.ErrNotExist, "the refused training left a folder")
}

func TestANewRunHasTheEpochsOfItsModel(t *testing.T) {
	for _, epochs := range []int{-1, 3} {
		if r, err := tessera.Train(t.Context(), bareModel(t), tessera.Options{Out: t.TempDir() + "/run", Epochs: epochs}); closed(r, err) == nil {
			t.Errorf("Epochs %d, which Resume takes: trained", epochs)
		}
	}
}

// calmly fails the test if the call panics.
func calmly(t *testing.T, name string, call func() error) {
	t.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("%s: panic: %v", name, cause)
		}
	}()
	if err := call(); err != nil {
		if err.Error() == "" {
			t.Errorf("%s: an error without a text", name)
		}
		t.Logf("%s: %v", name, err)
	}
}

// takingOptions lists the exported functions and methods of this module with a parameter whose type is named Selection or
// Request or has a name that ends in Options. The form is package.Function or package.Type.Method.
func takingOptions(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(sourceFolder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && path != sourceFolder && (base == "testdata" || base == "internal" || strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Name.IsExported() && takesOptions(f.Type) {
				if name, ok := exportedName(f); ok {
					found[file.Name.Name+"."+name] = true
				}
			}
		}
		return nil
	})
	fatal.If(t, err)
	if len(found) < 8 {
		t.Fatalf("only %d functions take options: %v", len(found), found)
	}
	return slices.Sorted(maps.Keys(found))
}

// exportedName returns the name of a function, or Type.Method for a method. ok is false for an unexported function, and for a
// method of an unexported type.
func exportedName(f *ast.FuncDecl) (name string, ok bool) {
	if f.Recv == nil {
		return f.Name.Name, true
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	receiver := of.(*ast.Ident)
	return receiver.Name + "." + f.Name.Name, receiver.IsExported()
}

func takesOptions(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		of := p.Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		var name string
		switch named := of.(type) {
		case *ast.Ident:
			name = named.Name
		case *ast.SelectorExpr:
			name = named.Sel.Name
		}
		return strings.HasSuffix(name, "Options") || name == "Selection" || name == "Request"
	})
}

// entries returns a call of every function that starts a computation. run is the run that the calls use.
func entries(t *testing.T, run string) map[string]func() error {
	ctx, m := t.Context(), bareModel(t)
	network, err := graph.New(m, []int{6, 5})
	fatal.If(t, err)
	program, err := network.Program(graph.Request{Batch: 1, Want: []string{"code"}})
	fatal.If(t, err)
	fitted, err := tessera.Declare(config.Model{Kind: "kmeans", Baseline: &classical.KMeans{Components: 2}, Dataset: config.Dataset{Source: rows(t, 1)}})
	fatal.If(t, err)
	file, err := os.ReadFile(run + "/model.safetensors")
	fatal.If(t, err)
	declared, err := os.ReadFile(run + "/config.toml")
	fatal.If(t, err)
	files := fstest.MapFS{"config.toml": {Data: declared}, "model.safetensors": {Data: file}}
	var none tessera.Options
	alone := train.Options{Backend: tape.Backend{}, Out: t.TempDir() + "/new"}
	return map[string]func() error{
		"tessera.Train":  func() error { r, err := tessera.Train(ctx, m, none); return closed(r, err) },
		"tessera.Resume": func() error { r, err := tessera.Resume(ctx, run, none); return closed(r, err) },
		"tessera.NewTrainer": func() error {
			tr, err := tessera.NewTrainer(ctx, nil, tessera.Options{})
			if err == nil {
				tr.Close()
			}
			return err
		},
		"tessera.Open":      func() error { r, err := tessera.Open(run, none); return closed(r, err) },
		"tessera.OpenFS":    func() error { r, err := tessera.OpenFS(files, ".", none); return closed(r, err) },
		"tessera.ReadModel": func() error { r, err := tessera.ReadModel(file, none); return closed(r, err) },
		"train.Run":         func() error { _, err := train.Run(ctx, m, train.Options{}); return err },
		"train.Run, tape":   func() error { _, err := train.Run(ctx, m, alone); return err },
		"train.Run, kmeans": func() error { _, err := train.Run(ctx, fitted, alone); return err },
		"train.Resume":      func() error { _, err := train.Resume(ctx, run, alone); return err },
		"baselines":         func() error { _, err := (&classical.KMeans{Components: 2}).New([]int{6, 5}, 1); return err },
		"sweep.New":         func() error { _, err := sweep.New(ctx, &config.Sweep{}, sweep.Options{}); return err },
		"metrics.Start":     func() error { _, err := metrics.Start(metrics.Subject{}, 0, nil, nil); return err },
		"tape.Backend":      func() error { _, err := tape.Backend{}.Compile(program); return err },
		"engine.Backend":    func() error { _, err := engine.Backend{}.Compile(program); return err },
	}
}

// The BLAS library is selected once per process, so the test runs itself in another process with another environment.
func TestALibraryThatCannotBeUsedIsAnErrorOfEveryEntry(t *testing.T) {
	const variable, of = "TESSERA_BLAS", "TESSERA_TEST_RUN"
	if run := os.Getenv(of); run != "" {
		for name, call := range entries(t, run) {
			if err := call(); err == nil || !strings.Contains(err.Error(), variable+"="+os.Getenv(variable)) {
				t.Errorf("%s: got %v, want an error that names %s", name, err, variable)
			}
		}
		return
	}
	run := t.TempDir() + "/run"
	trained, err := tessera.Train(t.Context(), bareModel(t), tessera.Options{Out: run})
	fatal.If(t, closed(trained, err))
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), variable+"=none.so", of+"="+run)
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("with %s=none.so:\n%s", variable, out)
	}
}
