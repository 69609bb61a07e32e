//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tessera/internal/fatal"
)

// Opening a named pipe blocks until another process opens it for writing, and no signal interrupts this.
func TestAPipeIsRefusedInsteadOfAwaited(t *testing.T) {
	b := benchOf(t)
	b.write("models.toml", smallModels+"[sweep.s]\nmodel = \"small\"\n")
	b.must(0, "sweep", "s", "--epochs", "1")
	trials, _ := filepath.Glob(b.path("sweeps/s/trials/*"))
	run, err := filepath.Rel(b.dir, trials[0])
	fatal.If(t, err)
	pipe := func(name string) {
		t.Helper()
		if err := os.Remove(b.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(b.path(name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	const problem = "is not a regular file"
	pipe(run + "/metrics.jsonl")
	b.contains("metrics", b.must(exitCheckpoint, "figure", "training", run).stderr, problem)
	pipe(run + "/eval.json")
	b.contains("of a trial", b.must(exitSweep, "sweep", "s", "--epochs", "1").stderr, problem)
	fatal.If(t, os.Remove(b.path(run+"/metrics.jsonl")))
	pipe("sweeps/s/timings.csv")
	b.must(0, "sweep", "s", "--epochs", "1") // which measures again
	pipe("sweeps/s/results.json")
	b.contains("results", b.must(exitCheckpoint, "figure", "pareto", "sweeps/s").stderr, problem)
	pipe("pipe")
	t.Setenv("TESSERA_BLAS", b.path("pipe"))
	b.contains("a library", b.must(exitUsage, "doctor").stderr, problem)
	t.Setenv("TESSERA_BLAS", "")
	pipe("models.toml")
	const advice = "; give the path of a models.toml"
	b.contains("models", b.must(exitUsage, "check").stderr, "models.toml: cannot be read: "+problem+advice)
	b.contains("a folder", b.must(exitUsage, "check", "sweeps").stderr, "sweeps: cannot be read: is a directory"+advice)
	b.contains("a device", b.must(exitUsage, "check", "/dev/zero").stderr, problem)
}
