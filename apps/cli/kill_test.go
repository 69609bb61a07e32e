//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// long makes the small model train for about a second, with a number of threads that differs from the default of resume.
var long = []string{"--epochs", "60", "--set", "hook.early_stopping.patience=1000", "--threads", "3"}

func TestKilledTrainingsResumeToTheBytesOfAnUninterruptedOne(t *testing.T) {
	b := newBench(t)
	b.survivesKills(append([]string{"train", "small"}, long...)...)
}

// survivesKills trains a model once without interruption and once with kills at random moments, and compares the two runs. A
// kill waits for an epoch instead of a time, so that it also interrupts the training on a slow machine.
func (b *bench) survivesKills(train ...string) {
	b.Helper()
	b.killed(*kills, train...)
}

// killed is like [bench.survivesKills], with the given number of kills.
func (b *bench) killed(times int, train ...string) {
	b.Helper()
	b.must(0, append(slices.Clone(train), "--out", "whole")...)
	stretch := max(1, b.measured("whole")*2/3/times) // the last kill leaves a third of the run
	r := b.moments()
	killed, resumed := 0, 0
	for resumed == 0 { // a run that ends before its first kill tests nothing: another one is begun
		b.remove("killed")
		killed, resumed = b.killedOften(r, times, stretch, train)
	}
	b.must(0, b.next("killed", train)...)
	b.sameRun("whole", "killed")
	b.Logf("killed %d of %d times, resumed %d times", killed, times, resumed)
}

// next returns the command that starts or resumes a run. After a kill before the run's folder exists, the run is started
// again.
func (b *bench) next(run string, train []string) []string {
	if b.exists(run) {
		return []string{"resume", run}
	}
	return append(slices.Clone(train), "--out", run)
}

// killedOften kills a training and its resumes until one of them ends without a kill. It returns the number of kills, and of
// those the number that left a run.
func (b *bench) killedOften(r *rand.Rand, times, stretch int, train []string) (killed, resumed int) {
	b.Helper()
	for i := range times {
		epochs, moment := i*stretch+r.IntN(stretch), time.Duration(r.IntN(5000))*time.Microsecond
		if !b.killWhen(func() bool { return b.measured("killed") >= epochs }, moment, b.next("killed", train)...) {
			break // it ended by itself
		}
		killed++
		if b.exists("killed") {
			resumed++
		}
	}
	return killed, resumed
}

func TestKilledFitsResumeToTheBytesOfAnUninterruptedOne(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallBaselines)
	b.survivesKills("train", "factors", "--set", "iterations=400", "--set", "tolerance=0.0", "--set", "train.checkpoint_seconds=0.0")
}

func TestKilledSearchesResumeToTheBytesOfAnUninterruptedOne(t *testing.T) {
	b := newBench(t)
	b.survivesKills(append([]string{"train", "small", "--set", "optimizer.kind=lbfgs", "--set", "optimizer.history=4",
		"--set", `encoder=[{kind="dense",units=6,activation="sigmoid"}]`}, long...)...)
}

// After a kill before the first checkpoint, either a complete run or no run exists. In both cases the training can continue.
func TestATrainingKilledBeforeItsFirstCheckpointLeavesAWholeRunOrNone(t *testing.T) {
	b := newBench(t)
	b.trained("whole", 12)
	killed := 0
	for i := range *kills {
		run := filepath.Join("early", string(rune('a'+i)))
		args := []string{"train", "small", "--out", run}
		if b.killWhen(func() bool { return true }, time.Duration(i)*40*time.Millisecond/time.Duration(*kills), args...) {
			killed++
		}
		if b.exists(run) {
			args = []string{"resume", run}
		}
		b.must(0, args...)
		b.sameRun("whole", run)
	}
	if killed == 0 {
		t.Error("every training was over before it was killed")
	}
}

// moments returns the random generator for the moments of kills, and logs its seed.
func (b *bench) moments() *rand.Rand {
	b.Helper()
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	b.Logf("the moments of the kills are those of -kill-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// remove removes a folder with its contents.
func (b *bench) remove(name string) {
	b.Helper()
	fatal.If(b, os.RemoveAll(b.path(name)))
}

// interrupted runs the command and sends one Ctrl-C after the run has started; see [bench.signalled].
func (b *bench) interrupted(run, fresh string, args ...string) result {
	b.Helper()
	return b.signalled(func() bool { return b.measured(run) > 0 }, []syscall.Signal{syscall.SIGINT}, fresh, args...)
}

// signalled runs the command and sends signals when a condition holds. If the command ends before, which happens on a loaded
// machine, the folder fresh is removed ("" for none) and the command is started again, at most ten times.
func (b *bench) signalled(reached func() bool, signals []syscall.Signal, fresh string, args ...string) result {
	b.Helper()
	for try := 1; ; try++ {
		cmd := b.command(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		ended := b.start(cmd)
		b.until(reached, ended)
		for _, signal := range signals {
			_ = cmd.Process.Signal(signal) // an error says that it has ended
		}
		<-ended
		if r := (result{code: cmd.ProcessState.ExitCode(), stderr: stderr.String()}); r.code != 0 || fresh == "" || try == 10 {
			return r
		}
		b.remove(fresh)
	}
}

func TestOneInterruptLeavesACheckpointInTheMiddleOfAnEpoch(t *testing.T) {
	b := newBench(t)
	b.must(0, append([]string{"train", "small", "--out", "whole"}, long...)...)
	r := b.interrupted("cut", "cut", append([]string{"train", "small", "--out", "cut"}, long...)...)
	if r.code != exitInterrupted {
		t.Fatalf("exit code %d, want %d: %s", r.code, exitInterrupted, r.stderr)
	}
	b.contains("standard error", r.stderr, "cut: interrupted at step ", "resume")
	b.must(0, "resume", "cut")
	b.sameRun("whole", "cut")
}

// The runs of rank are in a temporary folder that is gone afterwards.
func TestAnInterruptedRankNamesNoRun(t *testing.T) {
	b := benchOf(t)
	t.Setenv("TMPDIR", b.dir)
	r := b.signalled(func() bool {
		runs, _ := filepath.Glob(b.path("tessera-rank-*/run/metrics.jsonl"))
		return len(runs) > 0
	}, []syscall.Signal{syscall.SIGINT}, "", "rank", "small", "--ranks", "3,4", "--epochs", "1000000", "--set", "dataset=bars")
	b.contains("standard error", r.stderr, "rank: interrupted after 0 of 4 trainings; none is kept")
	if r.code != exitInterrupted || strings.Contains(r.stderr, "resume") || strings.Contains(r.stderr, "tessera-rank-") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	if left, _ := filepath.Glob(b.path("tessera-rank-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestResumingAFinishedRunChangesNothing(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	before := b.everything("runs")
	r := b.must(0, "resume", "runs/small")
	b.contains("standard error", r.stderr, "runs/small is finished")
	expect.Equal(t, b.everything("runs"), before, "before")
}

// everything lists the files below a folder with their times and sizes.
func (b *bench) everything(dir string) string {
	b.Helper()
	var list strings.Builder
	err := filepath.WalkDir(b.path(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list.WriteString(path + " " + info.ModTime().String() + " " + info.Mode().String() + "\n")
		}
		return err
	})
	fatal.If(b, err)
	return list.String()
}

// A limit of the file size simulates a full disk.
func TestAFullDiskEndsWithExitCode7AndKeepsTheLastCheckpoint(t *testing.T) {
	b := newBench(t)
	limited := func(bytes int, args ...string) result {
		script := fmt.Sprintf(`ulimit -f %d && exec "$0" "$@"`, bytes/512)
		return b.finish(b.wrapped(append([]string{"sh", "-c", script, b.binary}, args...)...))
	}
	tiny := []string{"train", "small", "--set", "dataset=bars", "--set", "encoder.2.units=5", "--set", "train.batch=512", "--epochs", "80", "--out"}
	b.must(0, append(tiny, "whole")...)
	r := limited(8192, append(tiny, "none")...)
	if r.code != exitWrite || b.exists("none") {
		t.Errorf("no space for a checkpoint: exit code %d, want %d; a run was left: %v", r.code, exitWrite, b.exists("none"))
	}
	b.contains("before the first checkpoint", r.stderr, "cannot write ", "none/state.safetensors",
		"free space or get the permission, then run the command again; or write to another place with --out")

	limit := len(b.read("whole/state.safetensors")) + 1024
	if metrics := len(b.read("whole/metrics.jsonl")); metrics < limit {
		t.Fatalf("%d bytes of metrics fit into %d", metrics, limit)
	}
	r = limited(limit, append(tiny, "full")...)
	if r.code != exitWrite {
		t.Fatalf("no space for the metrics: exit code %d, want %d\n%s", r.code, exitWrite, r.stderr)
	}
	b.contains("later", r.stderr, "cannot write full/metrics.jsonl", "the last checkpoint is kept: free space or get the permission, then `tessera resume full` continues")
	b.must(0, "eval", "full")
	b.must(0, "resume", "full")
	b.sameRun("whole", "full")
}

func TestAFolderThatCannotBeWrittenToEndsWithExitCode7(t *testing.T) {
	b := newBench(t)
	b.write("file", "")
	for _, out := range []string{"file/run", "/dev/null/run"} {
		r := b.must(exitWrite, "train", "small", "--epochs", "1", "--out", out)
		b.contains("standard error", r.stderr, "cannot write", out[:5])
	}
}
