package tessera_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"tessera"
	"tessera/baselines"
	"tessera/config"
	"tessera/engine"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/metrics"
	"tessera/sweep"
	"tessera/train"
)

// entries are the calls that begin to compute, with what they need: a run and its files.
func entries(t *testing.T, run string) map[string]func() error {
	ctx, m := t.Context(), bareModel(t)
	network, err := graph.New(m, []int{6, 5})
	if err != nil {
		t.Fatal(err)
	}
	program, err := network.Program(graph.Request{Batch: 1, Want: []string{"code"}})
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := tessera.Declare(config.Model{Kind: "kmeans", Baseline: &baselines.KMeans{Components: 2}, Dataset: config.Dataset{Source: rows(t, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(run + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := os.ReadFile(run + "/config.toml")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"config.toml": {Data: declared}, "model.safetensors": {Data: file}}
	var none tessera.Options
	alone := train.Options{Backend: tape.Backend{}, Out: t.TempDir() + "/new"}
	return map[string]func() error{
		"tessera.Train":     func() error { r, err := tessera.Train(ctx, m, none); return closed(r, err) },
		"tessera.Resume":    func() error { r, err := tessera.Resume(ctx, run, none); return closed(r, err) },
		"tessera.Open":      func() error { r, err := tessera.Open(run, none); return closed(r, err) },
		"tessera.OpenFS":    func() error { r, err := tessera.OpenFS(files, ".", none); return closed(r, err) },
		"tessera.ReadModel": func() error { r, err := tessera.ReadModel(file, none); return closed(r, err) },
		"train.Run":         func() error { _, err := train.Run(ctx, m, train.Options{}); return err },
		"train.Run, tape":   func() error { _, err := train.Run(ctx, m, alone); return err },
		"train.Run, kmeans": func() error { _, err := train.Run(ctx, fitted, alone); return err },
		"train.Resume":      func() error { _, err := train.Resume(ctx, run, alone); return err },
		"baselines":         func() error { _, err := (&baselines.KMeans{Components: 2}).New([]int{6, 5}, 1); return err },
		"sweep.New":         func() error { _, err := sweep.New(ctx, &config.Sweep{}, sweep.Options{}); return err },
		"metrics.Start":     func() error { _, err := metrics.Start(metrics.Subject{}, 0, nil, nil); return err },
		"tape.Backend":      func() error { _, err := tape.Backend{}.Compile(program); return err },
		"engine.Backend":    func() error { _, err := engine.Backend{}.Compile(program); return err },
	}
}

// The library is chosen once in a process: the test calls itself with another environment.
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
	if err := closed(trained, err); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), variable+"=none.so", of+"="+run)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("with %s=none.so:\n%s", variable, out)
	}
}
