//go:build unix

package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep/scheduler"
	"tessera/internal/train/folder"
)

// preemption contains the signals that Slurm sends before the time limit: SIGUSR1, possibly several times. The process still
// writes a checkpoint.
var preemption = []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR1}

func TestASchedulersSignalLeavesACheckpointAndExitCode75(t *testing.T) {
	b := newBench(t)
	endless := []string{"train", "small", "--epochs", "100000", "--threads", "3", "--out", "cut"}
	r := b.signalled(func() bool { return b.measured("cut") > 0 }, preemption, "cut", endless...)
	if r.code != exitPreempted {
		t.Fatalf("train: exit code %d, want %d: %s", r.code, exitPreempted, r.stderr)
	}
	b.contains("standard error", r.stderr, "preempted by a scheduler's signal", "cut: interrupted at step ", "resume")
	before := b.measured("cut")
	r = b.signalled(func() bool { return b.measured("cut") > before }, preemption, "", "resume", "cut")
	if r.code != exitPreempted {
		t.Fatalf("resume: exit code %d, want %d: %s", r.code, exitPreempted, r.stderr)
	}
	epochs := strconv.Itoa(b.complete("cut") + 5)
	b.must(0, "resume", "cut", "--epochs", epochs)
	b.must(0, "train", "small", "--epochs", epochs, "--threads", "3", "--out", "whole")
	b.sameRun("whole", "cut")
}

// slow declares a sweep whose trials take long enough to be interrupted.
const slow = smallModels + `
[sweep.slow]
model = "small"
seeds = [1, 2]
set.train.epochs = 30
set.loss.1.target = [0.1, 0.3]
`

// gathered fails the test unless a collected array has the same files as the sweep whole, which ran on one machine.
func (b *bench) gathered(whole, array string) {
	b.Helper()
	want, got := b.files(whole), b.files(array)
	for name, text := range want {
		expect.Equal(b, got[name], text, name)
	}
	for _, trial := range trialsOf(b.T, want["results.json"]) {
		expect.Equal(b, b.timeless(whole+"/trials/"+trial), b.timeless(array+"/trials/"+trial), "metrics of", trial)
	}
}

func TestAPreemptedSweepAndPreemptedTasksEndWithTheBytesOfAWholeSweep(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", slow)
	b.must(0, "sweep", "slow", "--out", "whole")
	r := b.signalled(func() bool { return b.epochs("cut") > 0 }, preemption, "cut", "sweep", "slow", "--out", "cut")
	if r.code != exitPreempted {
		t.Fatalf("sweep: exit code %d, want %d: %s", r.code, exitPreempted, r.stderr)
	}
	b.must(0, "sweep", "slow", "--out", "cut")
	b.gathered("whole", "cut")

	b.must(0, "sweep", "slow", "--emit", "slurm", "--per-task", "2", "--parallel", "1", "-o", "array")
	r = b.must(exitSweep, "sweep", "slow", "--collect", "array")
	b.contains("standard error", r.stderr, "task", "4 waiting")
	expect.Equal(b, r.stdout, "", "results of no trial")
	r = b.signalled(func() bool { return b.epochs("array") > 0 }, preemption, "array/trials", "trial", "array", "0")
	if r.code != exitPreempted {
		t.Fatalf("trial: exit code %d, want %d: %s", r.code, exitPreempted, r.stderr)
	}
	b.contains("standard error", r.stderr, "run the same command again")
	r = b.must(exitSweep, "sweep", "slow", "--collect", "array")
	if strings.Contains(r.stderr, "1 done") { // the signal came in the second trial of the task, or between its two
		b.contains("standard error", r.stderr, " 1 done, ", " waiting", "3 of 4 trials are not done")
	} else {
		b.contains("standard error", r.stderr, "1 begun, 3 waiting", "4 of 4 trials are not done")
	}
	b.contains("standard error", r.stderr, "sbatch --array=0-1%1 array/array.sh")
	b.must(0, "trial", "array", "0")
	b.must(0, "trial", "array", "1")
	r = b.must(0, "sweep", "slow", "--collect", "array")
	b.contains("standard output", r.stdout, "array/results.csv")
	b.gathered("whole", "array")
}

func TestTheIndexOfATaskIsThatOfItsScheduler(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.write("models.toml", strings.Replace(smallSweeps, "epochs = 12", "epochs = 1", 1))
	b.must(0, "sweep", "wild", "--emit", "kubernetes", "-o", "array")
	for name, code := range map[string]int{"SLURM_ARRAY_TASK_ID": 0, "JOB_COMPLETION_INDEX": exitDiverged} {
		cmd := b.command("trial", "array")
		cmd.Env = append(cmd.Env, name+"="+map[int]string{0: "0", exitDiverged: "1"}[code])
		if r := b.finish(cmd); r.code != code {
			t.Errorf("%s: exit code %d, want %d: %s", name, r.code, code, r.stderr)
		}
	}
	r := b.must(exitSweep, "sweep", "wild", "--collect", "array")
	b.contains("standard error", r.stderr, "1 done, 1 failed", "training diverged", "run again: tessera trial array 1")
	b.contains("results.csv", b.read("array/results.csv"), "training diverged")
}

func TestWrongUsesOfArrayJobsSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.must(0, "sweep", "wild", "--emit", "kubernetes", "-o", "array")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"INDEX is missing", []string{"trial", "array"}},
		{"want 0 to 1", []string{"trial", "array", "2"}},
		{"want an index from 0", []string{"trial", "array", "x"}},
		{"--emit slurm -o .` writes it", []string{"trial", ".", "0"}},
		{"no such folder", []string{"trial", "nowhere", "0"}},
		{"has the trials of sweep \"wild\"", []string{"sweep", "targets", "--collect", "array"}},
		{"--collect and --epochs cannot be given together", []string{"sweep", "wild", "--collect", "array", "--epochs", "3"}},
		{"--parallel: needs --emit", []string{"sweep", "wild", "--parallel", "3"}},
		{"has the manifest.json of other trials", []string{"sweep", "targets", "--emit", "slurm", "-o", "array"}},
	} {
		r := b.must(exitUsage, c.args...)
		b.contains(strings.Join(c.args, " "), r.stderr, c.want)
	}
	text := b.read("array/manifest.json")
	b.write("array/manifest.json", strings.Replace(text, "small", "smell", 1))
	r := b.must(exitCheckpoint, "trial", "array", "0")
	b.contains("standard error", r.stderr, "manifest.json: damaged", "--emit")
}

// The exit codes after which Kubernetes does not restart a pod are those of errors that a restart would repeat.
func TestTheKubernetesJobKnowsTheExitCodes(t *testing.T) {
	job, err := scheduler.Job{Sweep: "s", Folder: "/s", Work: "/", Program: "/tessera", Tasks: 2, PerJob: 1}.Kubernetes()
	fatal.If(t, err)
	for _, want := range []string{
		list(exitPreempted, exitInterrupted),
		list(exitUsage, exitConfig, exitData, exitDiverged, exitCheckpoint, exitSweep),
	} {
		expect.Contains(t, job.Text, "values: "+want+"\n", filepath.Base(job.Name), "lacks the exit codes", want)
	}
}

func TestATrialOfAnotherProcessIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", slow)
	b.must(0, "sweep", "slow", "--emit", "kubernetes", "-o", "array")
	b.signalled(func() bool { return b.epochs("array") > 0 }, preemption, "array/trials", "trial", "array", "0")
	trials, err := filepath.Glob(b.path("array/trials/*"))
	if err != nil || len(trials) != 1 {
		t.Fatal(err, trials)
	}
	held, err := folder.Open(trials[0], folder.OS{})
	fatal.If(t, err)
	r := b.must(exitPreempted, "trial", "array", "0")
	b.contains("standard error", r.stderr, "another process is working on it")
	fatal.If(t, held.Close())
	b.must(0, "trial", "array", "0")
}

// list formats codes as a YAML list.
func list(codes ...int) string {
	return strings.ReplaceAll(fmt.Sprint(codes), " ", ", ")
}
