package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/mpi"
	"tessera/internal/train"
	"tessera/internal/train/folder"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

var mpirun = flag.String("mpirun", "", "the mpirun to test distributed trainings with, for example mpirun.openmpi or mpirun.mpich")

// mpi returns a command line that runs the command in n processes.
func (b *bench) mpi(n int, args ...string) *exec.Cmd {
	b.Helper()
	if *mpirun == "" {
		b.Skip("needs mpirun: go test ./apps/cli -mpirun mpirun.openmpi, or make mpi")
	}
	cmd := b.wrapped(append([]string{*mpirun, "-n", strconv.Itoa(n), b.binary}, args...)...)
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
	return cmd
}

// together runs the command in n processes, and fails the test unless mpirun ends with the given exit code.
func (b *bench) together(code, n int, args ...string) result {
	b.Helper()
	r := b.finish(b.mpi(n, args...))
	if r.code != code {
		b.Fatalf("%d processes of tessera %s: exit code %d, want %d\nstdout: %s\nstderr: %s", n, strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// several returns the arguments of a distributed training of the small model, with a checkpoint after every epoch.
func several(out string, args ...string) []string {
	return append([]string{"train", "small", "--distributed", "--threads", "1", "--quiet", "--deadline", "5s", "--set", "hook.early_stopping.patience=1000",
		"--out", out}, args...)
}

func TestTrainingsBySeveralProcessesGiveEqualBytes(t *testing.T) {
	b := newBench(t)
	b.together(0, 1, several("one")...)
	b.must(0, "train", "small", "--threads", "1", "--set", "hook.early_stopping.patience=1000", "--out", "alone")
	b.sameRun("alone", "one")
	for _, n := range []int{2, 4} {
		first := fmt.Sprintf("first%d", n)
		b.together(0, n, several(first)...)
		b.together(0, n, several("again"+first)...)
		b.sameRun(first, "again"+first)
		b.together(0, n, several("divided"+first, "--shard-optimizer", "--check-weights", "1")...)
		b.sameRun(first, "divided"+first)
	}
}

// ranks lists the processes of a training in the order of their ranks.
func (b *bench) ranks(n int) []int {
	b.Helper()
	ids := make([]int, n)
	for ; slices.Contains(ids, 0); time.Sleep(10 * time.Millisecond) {
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range all {
			text, _ := os.ReadFile(path)
			here, _ := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
			if here != b.dir || !bytes.Contains(text, []byte(superviseVariable+"=1")) {
				continue
			}
			for variable := range strings.SplitSeq(string(text), "\x00") {
				name, value, _ := strings.Cut(variable, "=")
				if rank, err := strconv.Atoi(value); err == nil && (name == "OMPI_COMM_WORLD_RANK" || name == "PMI_RANK") {
					ids[rank], _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				}
			}
		}
	}
	return ids
}

// hit trains with two processes and calls how for one of them after some epochs. It returns the result of mpirun and the time
// until its end.
func (b *bench) hit(out string, rank int, how func(pid int) error, more ...string) (result, time.Duration) {
	b.Helper()
	cmd := b.mpi(2, several(out, append([]string{"--epochs", "100000"}, more...)...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	fatal.If(b, cmd.Start())
	ids := b.ranks(2)
	for b.measured(out) < 3 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	target := cmd.Process.Pid
	if rank >= 0 {
		target = ids[rank]
	}
	expect.NoError(b, how(target), "rank", rank, "process", target)
	_ = cmd.Wait()
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}, time.Since(began)
}

// resumesExactly compares a run that was stopped and is resumed for a few more epochs with an uninterrupted run.
func (b *bench) resumesExactly(out string) {
	b.Helper()
	epochs := strconv.Itoa(b.complete(out) + 5)
	b.together(0, 2, "resume", out, "--distributed", "--quiet", "--epochs", epochs)
	b.together(0, 2, several("whole-"+out, "--epochs", epochs)...)
	b.sameRun("whole-"+out, out)
}

func signals(s syscall.Signal) func(pid int) error {
	return func(pid int) error { return syscall.Kill(pid, s) }
}

func TestAKilledProcessEndsAllWithExitCode9(t *testing.T) {
	b := newBench(t)
	b.lost("killed", syscall.SIGKILL, "rank %d: signal: killed")
}

func TestAStoppedProcessEndsAllWithExitCode9(t *testing.T) {
	b := newBench(t)
	b.lost("stopped", syscall.SIGSTOP, "no answer from rank %d on ")
}

// lost sends a signal to each of two ranks in turn. All processes must end, the message must name the rank, and the run must
// be resumable.
func (b *bench) lost(name string, s syscall.Signal, message string) {
	b.Helper()
	for rank := range 2 {
		out := name + strconv.Itoa(rank)
		r, took := b.hit(out, rank, signals(s))
		b.Logf("rank %d %s: exit code %d after %v", rank, name, r.code, took.Round(time.Millisecond))
		if r.code != exitLost {
			b.Fatalf("exit code %d, want %d\n%s", r.code, exitLost, r.stderr)
		}
		b.contains("standard error", r.stderr, fmt.Sprintf(message, rank), "the last checkpoint is kept")
		b.resumesExactly(out)
	}
}

// A limit of the file size simulates a full disk.
func TestAFullDiskOfRank0EndsAllWithExitCode7(t *testing.T) {
	b := newBench(t)
	r, took := b.hit("full", 0, func(pid int) error {
		limit := unix.Rlimit{Cur: uint64(len(b.read("full/metrics.jsonl")) + 2000), Max: unix.RLIM_INFINITY}
		return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
	})
	t.Logf("full disk: exit code %d after %v", r.code, took.Round(time.Millisecond))
	if r.code != exitWrite {
		t.Fatalf("exit code %d, want %d\n%s", r.code, exitWrite, r.stderr)
	}
	b.contains("standard error", r.stderr, "cannot write", "the last checkpoint is kept", "`mpirun -n 2 tessera resume full --distributed` continues")
	b.resumesExactly("full")
}

func TestAnInterruptEndsAllWithACheckpoint(t *testing.T) {
	b := newBench(t)
	r, took := b.hit("cut", -1, signals(syscall.SIGTERM)) // of mpirun
	t.Logf("mpirun terminated: exit code %d after %v", r.code, took.Round(time.Millisecond))
	b.contains("standard error", r.stderr, "cut: interrupted at step ")
	b.resumesExactly("cut")
	r, took = b.hit("alone", 1, signals(syscall.SIGTERM)) // of one process
	t.Logf("rank 1 terminated: exit code %d after %v", r.code, took.Round(time.Millisecond))
	expect.Equal(t, r.code, exitInterrupted, "exit code", r.stderr)
	b.contains("standard error", r.stderr, "`mpirun -n 2 tessera resume alone --distributed` continues")
	b.resumesExactly("alone")
	r, took = b.hit("preempted", 1, signals(syscall.SIGUSR1))
	t.Logf("USR1 to rank 1: exit code %d after %v", r.code, took.Round(time.Millisecond))
	expect.Equal(t, r.code, exitPreempted, "exit code", r.stderr)
	b.resumesExactly("preempted")
}

func TestErrorsOfADistributedTrainingAreReportedOnce(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "unknown model \"smal\"", []string{"train", "smal", "--distributed"}},
		{exitConfig, "gaussian_noise draws noise", []string{"train", "small", "--distributed", "--set", "optimizer.kind=lbfgs", "--set", "encoder.1.rate=0"}},
		{exitData, "train-images-idx3-ubyte.gz: not found", []string{"train", "clothes", "--distributed"}},
	} {
		r := b.together(c.code, 2, c.args...)
		expect.Equal(t, strings.Count(r.stderr, c.want), 1, "tessera", strings.Join(c.args, " "), "is printed", r.stderr)
	}
}

func TestDistributedWithoutALauncherSaysWhatToDo(t *testing.T) {
	b := newBench(t)
	r := b.must(exitUsage, "train", "small", "--distributed")
	b.contains("standard error", r.stderr, "mpirun -n 4")
	r = b.must(exitUsage, "train", "small", "--shard-optimizer")
	b.contains("standard error", r.stderr, "--shard-optimizer: needs --distributed")
	for _, args := range [][]string{{"0", "--distributed"}, {"1", "--distributed=true"}} { // rank 0 may have no error
		cmd := b.command("train", "small", args[1])
		cmd.Env = append(cmd.Env, "OMPI_COMM_WORLD_RANK="+args[0], "OMPI_COMM_WORLD_SIZE=2", "TESSERA_MPI=/nowhere/libmpi.so")
		if r = b.finish(cmd); r.code != exitUsage {
			t.Errorf("a missing library: exit code %d of rank %s, want %d", r.code, args[0], exitUsage)
		}
		b.contains("standard error of rank "+args[0], r.stderr, "TESSERA_MPI=/nowhere/libmpi.so")
	}
}

func TestSeveralProcessesNeedTheFlag(t *testing.T) {
	b := newBench(t)
	b.trained("run", 1)
	for _, args := range [][]string{{"train", "small", "--epochs", "1"}, {"resume", "run"}} {
		for size, code := range map[string]int{"1": 0, "2": exitUsage} {
			cmd := b.command(args...)
			cmd.Env = append(cmd.Env, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE="+size)
			r := b.finish(cmd)
			expect.Equal(t, r.code, code, "tessera", args, "as one of", size, "processes: exit code", r.stderr)
			if code != 0 {
				b.contains("standard error", r.stderr, "started by mpirun as 2 processes", "give --distributed")
			}
		}
	}
}

func TestAnInterruptedProcessOfSeveralSaysHowToResumeAll(t *testing.T) {
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	args := []string{"train", "small", "--distributed"}
	expect.Equal(t, halting(syscall.SIGTERM, args), "ended by mpirun: finishing the current batch", "SIGTERM")
	if got := halting(syscall.SIGINT, args); !strings.HasPrefix(got, "interrupted: ") {
		t.Errorf("SIGINT: %s", got)
	}
	err := fmt.Errorf("engine: all-reduce sum 1.0 late: %w", &mpi.Lost{What: "an all-reduce", Ranks: []int{1}, Hosts: []string{"b"}, After: time.Second})
	for run, want := range map[string]string{"runs/small": "`mpirun -n 2 tessera resume runs/small --distributed` continues", "": "resume the run with `mpirun -n 2` and --distributed"} {
		var stderr bytes.Buffer
		code := explain(failure{err: err, run: run}, &stderr)
		if text := stderr.String(); code != exitLost || strings.Contains(text, "late") || !strings.Contains(text, "no answer from rank 1 on b") || !strings.Contains(text, want) {
			t.Errorf("run %q: exit code %d, %s", run, code, text)
		}
	}
	dir := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(dir, folder.State), nil, 0o666))
	full := &folder.WriteError{Path: filepath.Join(dir, "metrics.jsonl"), Err: syscall.ENOSPC}
	for distributed, want := range map[bool]string{true: "`mpirun -n 2 tessera resume " + dir + " --distributed` continues", false: "`tessera resume " + dir + "` continues"} {
		cmd := &cobra.Command{}
		cmd.Flags().Bool("distributed", distributed, "")
		if got := afterWriting(failure{err: full, command: cmd}); !strings.HasSuffix(got, want) {
			t.Errorf("distributed %v: %s, want %s", distributed, got, want)
		}
	}
	halted := &train.Interruption{Run: "runs/small", Preempted: true}
	expect.Equal(t, exitCode(halted), exitPreempted, "preempted: exit code")
	expect.Equal(t, (&member{group: &mpi.Group{}}).code(context.Background(), halted, exitPreempted), exitPreempted, "preempted elsewhere: exit code")
}

func TestAnErrorIsReadBeforeTheProcessesEnd(t *testing.T) {
	here, there, err := os.Pipe()
	fatal.If(t, err)
	defer here.Close()
	defer there.Close()
	fatal.If(t, expect.Err(there.WriteString("an error\n")))
	var begun atomic.Bool
	go func() {
		begun.Store(true)
		_, _ = here.Read(make([]byte, 100))
	}()
	delivered(there, time.Hour)
	if !begun.Load() {
		t.Error("nothing has read the error")
	}
	delivered(there, time.Hour) // nothing is left to read
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	fatal.If(t, err)
	defer file.Close()
	_, _ = file.WriteString("an error\n")
	delivered(file, time.Hour) // nobody reads a file
}

func TestTheFlagIsFoundBeforeItIsParsed(t *testing.T) {
	for flag, want := range map[string]bool{"--distributed": true, "--distributed=true": true, "--distributed=1": true, "--distributed=false": false,
		"--distributed=": false, "--deadline=1": false, "distributed": false} {
		expect.Equal(t, distributes([]string{"train", "small", flag}), want, flag)
	}
}
