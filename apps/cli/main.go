// Package cli implements the command tessera. Each sub-command is one file that translates flags into calls of the library;
// exit.go defines the exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"tessera/parallel/team"
	"tessera/train/folder"
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
	root := newRoot()
	root.SetArgs(args)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err = plainly(err); err == nil {
		err = out.err
	}
	return together.code(ctx, err, explain(command, err, together.tell(ctx, err, stderr), together.run))
}

// standardOutput is its path in errors.
const standardOutput = "standard output"

// output is standard output. It stores the first write error, because not every print call checks for errors.
type output struct {
	io.Writer
	err error
}

// Write implements [io.Writer]; its error is a [*folder.WriteError].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &folder.WriteError{Path: standardOutput, Err: err}
		o.err = err
	}
	return n, err
}
