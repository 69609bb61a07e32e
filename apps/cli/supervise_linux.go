package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"tessera/internal/parallel/mpi"
)

// superviseVariable is an environment variable that marks the process that a supervisor started.
const superviseVariable = "TESSERA_SUPERVISED"

// supervise runs the command of a distributed training in a child process and returns its exit code. A process that was ended
// by a signal (out of memory, kill -9) has no exit code: mpirun would report 137 or the number of the signal, which may be the
// exit code of another error. The supervisor reports 9. ok is false for other commands.
func supervise(args []string) (code int, ok bool) {
	l, launched := mpi.Launched()
	if !launched || !distributes(args) || os.Getenv(superviseVariable) != "" {
		return 0, false
	}
	program, err := os.Executable()
	if err != nil {
		return 0, false
	}
	runtime.LockOSThread() // the child ends with the thread that started it
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), superviseVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // signals arrive once, from here
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	stopped, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for s := range signals {
			if s == syscall.SIGINT || s == syscall.SIGTERM {
				stop()
			}
			_ = cmd.Process.Signal(s) // an error says that it has ended
		}
	}()
	if ended, ok := errors.AsType[*exec.ExitError](cmd.Wait()); ok && ended.ExitCode() < 0 {
		// A library of MPI aborts when it loses another process. It may notice before the supervisor of that process, whose
		// message names the rank that was lost.
		if ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGABRT {
			yield(stopped, time.Second)
		}
		if stopped.Err() != nil { // mpirun ends all
			return exitInterrupted, true
		}
		fmt.Fprintf(os.Stderr, "tessera: rank %d: %v\n", l.Rank, ended)
		fmt.Fprintln(os.Stderr, afterLoss(failure{run: ""}))
		delivered(os.Stderr, grace)
		l.Abort(exitLost)
		return exitLost, true
	}
	return cmd.ProcessState.ExitCode(), true
}

// yield waits, at most for the time most, until mpirun ends this process.
func yield(stopped context.Context, most time.Duration) {
	select {
	case <-stopped.Done():
	case <-time.After(most):
	}
}

// delivered waits until another process has read what this one wrote to a pipe, at most for the time most. MPICH's mpirun loses what it
// has not read when a process aborts.
func delivered(out *os.File, most time.Duration) {
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if unread, err := unix.IoctlGetInt(int(out.Fd()), unix.TIOCINQ); err != nil || unread == 0 {
			return
		}
	}
}
