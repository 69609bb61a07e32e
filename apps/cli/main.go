// Package cli implements the command tessera. Each sub-command is one file that translates flags into calls of the library;
// errors.go defines the exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"tessera/config/part/table"
	"tessera/internal/parallel/mpi"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
)

// Main runs the command with the arguments of the process and ends the process with its exit code. Every sub-command knows
// the parts that the program has registered.
func Main() {
	if code, ok := supervise(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command and returns the exit code. Results go to stdout, progress and messages to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	together, ctx, stdout, stderr := joinable(ctx, args, stdout, stderr)
	stdout, stderr = visible{stdout}, visible{stderr}
	defer func() { together.end(code) }()
	defer func() {
		if cause := recover(); cause != nil { // Go would exit with code 2, which means a usage error
			stack := debug.Stack()
			if p, ok := cause.(*team.Panic); ok {
				stack = p.Stack
			}
			fmt.Fprintf(stderr, "tessera: internal error: %v\n%splease report this, with the command that you gave and the lines above\n", cause, stack)
			code = exitInternal
		}
	}()
	ctx, stop := interruptible(ctx, args, stderr)
	defer stop()
	root := newRoot(lineWidth(stdout))
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFlags(root)
	}
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err = plainly(err); err == nil {
		err = out.err
	}
	return together.code(ctx, err, explain(failure{err, command, together.run}, together.announce(ctx, err, stderr)))
}

// newRoot returns the command with all sub-commands; each has a separate file. width is the length of lines in help texts.
func newRoot(width int) *cobra.Command {
	root := &cobra.Command{
		Use:           "tessera",
		Short:         "Train auto-encoders that learn the parts of images",
		Long:          "Tessera trains and evaluates models that are declared in models.toml: part-based auto-encoders, classifiers, baselines.\nTo begin: `tessera train swimmer-parts`, or `tessera init` for a models.toml, which `tessera help models` explains.",
		SilenceUsage:  true,
		SilenceErrors: true, // explain prints them
		Version:       versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n") // the same line as the command version
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
		}
		return errors.New(err.Error() + nearFlag(cmd, err))
	})
	addCommands(root)
	root.AddCommand(&cobra.Command{Use: "models", Short: "How models.toml declares models and sweeps", Long: modelsText})
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil { // cobra prints help for an unknown shell
		completion.Args = cobra.NoArgs
		completion.RunE = work(func(cmd *Call, _ []string) error { return cmd.Help() })
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil { // cobra prints the help of the root for an unknown command
		show := help.Run
		help.Run, help.RunE = nil, work(func(cmd *Call, args []string) error {
			if _, _, err := root.Find(args); err != nil {
				return usageError{err}
			}
			show(cmd.Command, args)
			return nil
		})
	}
	wrapHelp(root, width)
	return root
}

// otherFlags maps flags that users know from other programs to the equivalents of this command.
var otherFlags = map[string]string{
	"lr": "write --set optimizer.learning_rate=0.01", "learning-rate": "write --set optimizer.learning_rate=0.01",
	"batch": "write --set train.batch=64", "batch-size": "write --set train.batch=64",
	"gpu": "models run on the CPU; --threads sets the number of threads", "device": "models run on the CPU; --threads sets the number of threads",
	"resume": "`tessera resume RUN` continues a run", "model": "the name of the model is an argument, its file is --file", "config": "the file of the models is --file",
}

// nearFlag suggests a flag similar to an unknown one, "" if there is none.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	if other := otherFlags[unknown.GetSpecifiedName()]; other != "" {
		return ": " + other
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	if s := table.Suggest("--"+unknown.GetSpecifiedName(), names); strings.HasPrefix(s, "did you mean") {
		return ": " + s
	}
	return ""
}

// trainsModels lists the commands that write a checkpoint and exit with [exitPreempted] after a scheduler's signal; a worker
// returns its trials to the queue. For other commands the signal has its default effect.
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

// liveTable prints lines above the live table of a sweep on a terminal.
type liveTable struct {
	out io.Writer

	mu   sync.Mutex
	note func(string) // prints a line above the table; nil without a table
}

// liveKey is the key of the [liveTable] in the context of a command.
type liveKey struct{}

// say prints a line above the table. Without a table it prints the line below an unfinished line.
func (l *liveTable) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.note != nil {
		l.note(text)
		return
	}
	fmt.Fprintln(l.out, "\n"+text)
}

// aboveTable passes lines to note until the returned function is called.
func aboveTable(ctx context.Context, note func(string)) (end func()) {
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

// halting returns a description of the effect of a signal.
func halting(s os.Signal, args []string) string {
	if l, ok := mpi.Launched(); ok && s == syscall.SIGTERM && distributes(args) {
		return "ended by " + l.Program() + ": " + finishing(args)
	}
	return "interrupted: " + finishing(args) + "; press Ctrl-C again to stop immediately"
}

// finishing returns a description of the work that an interrupted command still completes.
func finishing(args []string) string {
	switch {
	case len(args) > 0 && args[0] == "serve":
		return "answering the open requests"
	case len(args) > 0 && slices.Contains(trainsModels, args[0]):
		return "finishing the current batch"
	}
	return "stopping"
}

// preempted replaces the exit code of an interrupted training by the one of a preemption, if a scheduler's signal stopped it.
func preempted(ctx context.Context, code int) int {
	if code == exitInterrupted && errors.Is(context.Cause(ctx), train.ErrPreempted) {
		return exitPreempted
	}
	return code
}
