package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tessera"
	"tessera/internal/numeral"
	"tessera/internal/parallel/mpi"
	"tessera/internal/train"
)

type distributedFlags struct {
	Distributed bool          `flag:"distributed" doc:"train with all processes that mpirun or srun started, each on a part of every mini-batch; --threads is then that of each process, by default those of the machine divided among its processes"`
	Shard       bool          `flag:"shard-optimizer" needs:"distributed" doc:"with --distributed: divide the optimizer's state among the processes"`
	Weights     int           `flag:"check-weights" want:">= 0" needs:"distributed" doc:"with --distributed: compare the weights of all processes every N steps; 0 never"`
	Deadline    time.Duration `flag:"deadline" want:">= 1s" needs:"distributed" doc:"with --distributed: longest wait for another process"`
}

func oneProcess() distributedFlags {
	return distributedFlags{Weights: train.DefaultCheckWeights, Deadline: mpi.DefaultDeadline}
}

// options joins the group of processes, if the flags ask for one, and adds the group to the options. runFlags gives each
// process its share of the CPUs.
func (f *distributedFlags) options(cmd *Call, run *runFlags) (o tessera.Options, err error) {
	if !f.Distributed {
		if l, ok := mpi.Launched(); ok && l.Size > 1 {
			return o, usagef("started by %s as %d processes, which would each train the whole model: give --distributed, or start one process", l.Program(), l.Size)
		}
		return run.options()
	}
	launch, launched := mpi.Launched()
	if launched && !cmd.Given("threads") {
		run.Threads = launch.Threads()
	}
	if o, err = run.options(); err != nil {
		return o, err
	}
	group, err := joinedGroup(cmd.Context(), mpi.Options{Deadline: f.Deadline})
	if err != nil {
		return o, err
	}
	memberOf(cmd).group = group
	signal.Notify(make(chan os.Signal, 1), syscall.SIGABRT) // UCX aborts if another process died: without the stacks of Go
	runtime.GOMAXPROCS(o.Threads + 1)                       // one for the messages, while the callers compute
	o.Group, o.ShardOptimizer, o.CheckWeights = group, f.Shard, cmp.Or(f.Weights, -1)
	return o, nil
}

// joinedGroup joins the group and waits for all processes; Ctrl-C ends the wait.
func joinedGroup(ctx context.Context, o mpi.Options) (*mpi.Group, error) {
	type result struct {
		group *mpi.Group
		err   error
	}
	done := make(chan result, 1)
	go func() {
		g, err := mpi.Join(o)
		done <- result{g, err}
	}()
	select {
	case r := <-done:
		return r.group, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// member describes this process within the group that mpirun or srun started. Without a group it is a single process.
type member struct {
	group  *mpi.Group
	quiet  bool // another process writes the messages
	halted bool // all processes halted together
	stderr io.Writer
	run    string // folder of the training, "" if unknown
}

// began prints the number of processes and threads of a training. A resumed run uses the number of threads of its first start.
func (m *member) began(stderr io.Writer, threads int) {
	if m.group == nil {
		return
	}
	if threads == 0 {
		if a, err := train.ArithmeticOf(m.run); err == nil {
			threads = a.Threads
		}
	}
	text := "1 process, " + numeral.Of(threads, "thread")
	if n := m.group.Size(); n > 1 {
		text = fmt.Sprintf("%d processes, %s each", n, numeral.Of(threads, "thread"))
	}
	library, _, _ := strings.Cut(m.group.Version(), ",")
	fmt.Fprintf(stderr, "tessera: %s, %s\n", text, strings.Join(strings.Fields(library), " "))
}

// code returns the exit code for an error. Processes that halted together return the same code.
func (m *member) code(ctx context.Context, err error, code int) int {
	if m.group != nil && agreed(err) {
		return code
	}
	return preempted(ctx, code)
}

// agreed reports whether all processes of a group have returned this error.
func agreed(err error) bool {
	var halted *train.Interruption
	return errors.As(err, &halted)
}

type memberKey struct{}

// joinable returns the context in which a command can join a group, and the outputs of this process. Only rank 0 of several processes
// writes.
func joinable(ctx context.Context, args []string, stdout, stderr io.Writer) (*member, context.Context, io.Writer, io.Writer) {
	m := &member{stderr: stderr}
	if l, ok := mpi.Launched(); ok && l.Rank > 0 && distributes(args) {
		m.quiet, stdout, stderr = true, io.Discard, io.Discard
	}
	return m, context.WithValue(ctx, memberKey{}, m), stdout, stderr
}

// distributes reports whether the arguments contain --distributed, before they are parsed.
func distributes(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, value, given := strings.Cut(arg, "=")
		yes, err := strconv.ParseBool(value)
		return name == "--distributed" && (!given || err == nil && yes)
	})
}

func memberOf(cmd *Call) *member {
	if m, ok := cmd.Context().Value(memberKey{}).(*member); ok {
		return m
	}
	return &member{}
}

// follows reports whether another process reads models.toml and prints results.
func (m *member) follows() bool { return m.group != nil && m.group.Rank() > 0 }

// done leaves the group after a training.
func (m *member) done() error {
	if m.group == nil {
		return nil
	}
	return m.group.Close()
}

// announce sends an error to the other processes before it is printed, unless they have it too, and returns the output to print it
// to. If rank 0 is lost, the first remaining process prints. A process that could not join a group prints its own error, unless the
// launcher ends it because of rank 0.
func (m *member) announce(ctx context.Context, err error, stderr io.Writer) io.Writer {
	switch {
	case err == nil || m.group == nil && !m.quiet:
		return stderr
	case m.group == nil:
		select {
		case <-ctx.Done():
			return stderr
		case <-time.After(grace):
			return visible{m.stderr}
		}
	case agreed(err):
		m.halted = true
		return stderr
	}
	m.group.Fail(m.code(ctx, err, exitCode(err)), concise(err).Error())
	if lost, ok := errors.AsType[*mpi.Lost](err); ok {
		first := 0
		for slices.Contains(lost.Ranks, first) {
			first++
		}
		if first == m.group.Rank() {
			return visible{m.stderr}
		}
	}
	return stderr
}

// grace is the time for which a failed process waits for rank 0 to print the error.
const grace = 2 * time.Second

// end ends all processes after an error, when what they printed has been read. Processes that halted together leave the group as after
// a training: none ends before all are here, and each ends with its exit code.
func (m *member) end(code int) {
	if code == 0 || m.group == nil || m.halted && m.group.Close() == nil {
		return
	}
	if m.quiet {
		time.Sleep(grace)
	}
	delivered(os.Stderr, grace)
	m.group.Abort(code)
}
