package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"tessera/parallel/mpi"
	"tessera/train"
)

// trainsModels lists the commands that write a checkpoint and exit with [exitPreempted] on a scheduler's signal; a worker gives its
// trials back. In other commands the signal keeps its default effect.
var trainsModels = []string{"train", "resume", "sweep", "reproduce", "trial", "worker"}

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels: training then writes a checkpoint, serve answers
// the open requests. The second one ends the process immediately. A scheduler's signal cancels a training with the cause
// [train.ErrPreempted] and never ends the process by itself: schedulers repeat it, and send SIGTERM after it.
func interruptible(parent context.Context, args []string, stderr io.Writer) (context.Context, func()) {
	screen := &liveTable{out: stderr}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, liveKey{}, screen))
	signals, preemptions := make(chan os.Signal, 2), make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if len(args) > 0 && slices.Contains(trainsModels, args[0]) && len(preempting) > 0 {
		signal.Notify(preemptions, preempting...)
	}
	ended := make(chan struct{})
	go func() {
		for interrupted := false; ; {
			select {
			case <-ended:
				return
			case <-preemptions:
				if context.Cause(ctx) == nil {
					screen.say("tessera: " + train.ErrPreempted.Error() + ": finishing the current batch")
				}
				cancel(train.ErrPreempted)
			case s := <-signals:
				if interrupted {
					os.Exit(exitInterrupted)
				}
				interrupted = true
				screen.say("tessera: " + halting(s, args))
				cancel(nil)
			}
		}
	}()
	return ctx, func() {
		close(ended)
		cancel(nil)
		signal.Stop(signals)
		signal.Stop(preemptions)
	}
}

// liveTable is the table of a sweep on a terminal, through which other lines are printed while it is there.
type liveTable struct {
	out io.Writer

	mu   sync.Mutex
	note func(string) // nil without a table
}

// liveKey is the key of the [liveTable] in the context of a command.
type liveKey struct{}

// say prints a line above the table, or below an unfinished line.
func (l *liveTable) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.note != nil {
		l.note(text)
		return
	}
	fmt.Fprintln(l.out, "\n"+text)
}

// beside makes lines go through note until the returned function is called.
func beside(ctx context.Context, note func(string)) (end func()) {
	l, ok := ctx.Value(liveKey{}).(*liveTable)
	if !ok {
		return func() {}
	}
	set := func(note func(string)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.note = note
	}
	set(note)
	return func() { set(nil) }
}

// halting says what follows a signal.
func halting(s os.Signal, args []string) string {
	if l, ok := mpi.Launched(); ok && s == syscall.SIGTERM && distributes(args) {
		return "ended by " + l.Program() + ": " + finishing(args)
	}
	return "interrupted: " + finishing(args) + "; press Ctrl-C again to stop immediately"
}

// finishing says what an interrupted command still does.
func finishing(args []string) string {
	if len(args) > 0 && args[0] == "serve" {
		return "answering the open requests"
	}
	return "finishing the current batch"
}

// preempted replaces the exit code of an interrupted training by the one of a preemption, if a scheduler's signal stopped it.
func preempted(ctx context.Context, code int) int {
	if code == exitInterrupted && errors.Is(context.Cause(ctx), train.ErrPreempted) {
		return exitPreempted
	}
	return code
}
