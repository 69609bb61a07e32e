package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tessera/config"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/train/folder"
)

// inProcesses runs f for each of n processes, which are goroutines, with one thread each.
func inProcesses(t testing.TB, n int, f func(o Options) (*Result, error)) ([]*Result, []error) {
	t.Helper()
	results, errs := make([]*Result, n), make([]error, n)
	var all sync.WaitGroup
	for _, g := range collective.Local(n) {
		all.Go(func() {
			members := team.New(1)
			defer members.Close()
			results[g.Rank()], errs[g.Rank()] = f(Options{Backend: engine.Backend{Team: members}, Team: members, Group: g})
		})
	}
	all.Wait()
	return results, errs
}

// distributed trains a model on n processes; set changes the options.
func distributed(t testing.TB, n int, m *config.Model, set func(o *Options)) string {
	t.Helper()
	run := place(t)
	results, errs := inProcesses(t, n, func(o Options) (*Result, error) {
		spec := m
		if o.Group.Rank() > 0 {
			spec = nil // rank 0 has the model and the folder
		} else {
			o.Out = run
		}
		set(&o)
		return Run(context.Background(), spec, o)
	})
	for rank, err := range errs {
		fatal.If(t, err, "rank", rank, n)
		if other := results[rank]; other.Step != results[0].Step || rank > 0 && other.Run != "" {
			t.Errorf("rank %d: got %+v, rank 0 %+v", rank, other, results[0])
		}
	}
	return run
}

// many returns the model everything with the features that read the parameters between steps: averages, pruning, revived
// units, and a schedule that depends on metrics.
func many(t testing.TB, sets ...string) *config.Model {
	t.Helper()
	return model(t, everything+`
[model.everything.hook.average]
decay = 0.9
[model.everything.hook.teacher]
decay = 0.8
[model.everything.hook.plateau]
patience = 0
[model.everything.hook.prune]
on = "encoder.*.weight"
fraction = 0.25
from = 1
until = 3
`, sets...)
}

func plain(*Options) {}

func TestOneProcessOfAGroupTrainsLikeAProcessAlone(t *testing.T) {
	m := many(t)
	members := team.New(1)
	defer members.Close()
	alone := trained(t, m, Options{Backend: engine.Backend{Team: members}, Team: members}).Run
	sameRun(t, distributed(t, 1, m, plain), alone)
	sameRun(t, distributed(t, 1, m, func(o *Options) { o.ShardOptimizer = true }), alone)
}

func TestTrainingsByAsManyProcessesGiveEqualBytes(t *testing.T) {
	m := many(t)
	first := distributed(t, 3, m, plain)
	sameRun(t, distributed(t, 3, m, func(o *Options) { o.CheckWeights = 1 }), first)
	sameRun(t, distributed(t, 3, m, func(o *Options) { o.ShardOptimizer = true }), first)
	e, err := ReadEnvironment(first)
	if err != nil || e.Ranks != 3 || e.Threads != 1 {
		t.Errorf("the environment records %d processes of %d threads (%v)", e.Ranks, e.Threads, err)
	}
}

func TestTheTrainingOfSeveralProcessesIsThatOfOne(t *testing.T) {
	m := many(t)
	members := team.New(1)
	defer members.Close()
	alone := trained(t, m, Options{Backend: engine.Backend{Team: members}, Team: members}).Run
	a, b := lines(t, alone), lines(t, distributed(t, 4, m, plain))
	for i := range a {
		x, y := a[i]["loss"].(float64), b[i]["loss"].(float64)
		expect.Near(t, x, y, 1e-5*math.Abs(x), "epoch", i+1, "loss", y, "want", x, "of one process")
	}
}

func TestARunOfSeveralProcessesResumesToTheSameBytes(t *testing.T) {
	m := many(t)
	for _, shard := range []bool{false, true} {
		want := distributed(t, 2, m, func(o *Options) { o.ShardOptimizer = shard })
		for _, asked := range []int{3, 8, 11, 14} {
			run, preempted := place(t), asked == 8
			_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
				o.Out, o.ShardOptimizer = run, shard
				ctx := context.Background()
				if o.Group.Rank() == 1 { // one of the processes gets the signal
					left := asked
					if preempted {
						stopped, stop := context.WithCancelCause(ctx)
						stop(ErrPreempted)
						ctx = stopped
					}
					ctx = countdown{ctx, &left}
				}
				return Run(ctx, m, o)
			})
			for rank, err := range errs {
				if !errors.Is(err, ErrInterrupted) {
					t.Fatalf("rank %d: got %v", rank, err)
				}
				if told, ok := errors.AsType[*Interruption](err); !ok || told.Preempted != preempted || told.Launcher != "mpirun -n 2" {
					t.Errorf("rank %d: got %+v (%v), want preempted %v", rank, told, err, preempted)
				}
			}
			_, errs = inProcesses(t, 2, func(o Options) (*Result, error) {
				o.ShardOptimizer = shard
				folder := run
				if o.Group.Rank() > 0 {
					folder = "on another machine"
				}
				return Resume(context.Background(), folder, o)
			})
			fatal.If(t, errors.Join(errs...))
			sameRun(t, run, want)
		}
	}
}

func TestAResumeByAnotherNumberOfProcessesWarns(t *testing.T) {
	run := distributed(t, 2, model(t, everything), plain)
	for name, group := range map[string]int{"started with 2 processes, not 1: the last bits": 0, "started with 2 processes, not 3: the last bits": 3} {
		var said string
		resume := func(o Options) (*Result, error) {
			if o.Group == nil || o.Group.Rank() == 0 {
				o.Warn = func(text string) { said += text }
			}
			o.Epochs = 6
			return Resume(context.Background(), run, o)
		}
		if group == 0 {
			members := team.New(1)
			defer members.Close()
			copied := place(t)
			fatal.If(t, os.CopyFS(copied, os.DirFS(run)))
			fatal.If(t, expect.Err(Resume(context.Background(), copied, Options{Backend: engine.Backend{Team: members}, Team: members, Epochs: 6, Warn: func(text string) { said += text }})))
		} else if _, errs := inProcesses(t, group, resume); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		expect.Contains(t, said, "the run was "+name, name, "the warning")
	}
}

func TestWhatSeveralProcessesCannotTrainIsRefused(t *testing.T) {
	for want, m := range map[string]*config.Model{
		"hook: adversarial reads the samples": model(t, everything+"\n[model.everything.hook.adversarial]\nmethod = \"fgsm\"\n"),
		"full-batch optimizer (lbfgs)":        model(t, strings.Replace(minimal, "OPTIMIZER", "lbfgs", 1)),
		"a baseline (nmf)":                    model(t, "[model.parts]\nkind = \"nmf\"\ndataset = \"bars\"\ncomponents = 8\n"),
	} {
		_, errs := inProcesses(t, 2, func(o Options) (*Result, error) { return Run(context.Background(), m, o) })
		for rank, err := range errs {
			expect.Error(t, err, want, want, "rank", rank, "gets")
		}
	}
	m := model(t, everything)
	_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
		o.Backend = tape.Backend{}
		return Run(context.Background(), m, o)
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "only the engine") {
		t.Errorf("the tape: got %v", errs[0])
	}
	expect.Error(t, expect.Err(Run(context.Background(), m, Options{ShardOptimizer: true})), "with the option distributed", "a divided optimizer of one process")
}

// minimal declares a model in which the tests set the optimizer.
const minimal = `
[model.minimal]
dataset = "bars"
[[model.minimal.encoder]]
kind = "dense"
units = 4
[[model.minimal.loss]]
kind = "mse"
[model.minimal.optimizer]
kind = "OPTIMIZER"
`

func TestProcessesThatDifferAreNamed(t *testing.T) {
	_, errs := inProcesses(t, 3, func(o Options) (*Result, error) {
		m := model(t, everything)
		if o.Group.Rank() == 2 {
			m = model(t, everything, "train.seed=7")
		}
		return Run(context.Background(), m, o)
	})
	for rank, err := range errs {
		expect.Error(t, err, "rank 2 and rank 0 have different models", "rank", rank)
	}
}

func TestProcessesWithOtherOptionsAreNamed(t *testing.T) {
	for name, set := range map[string]func(o *Options){
		"the optimizer is divided": func(o *Options) { o.ShardOptimizer = true },
		"the weights are compared": func(o *Options) { o.CheckWeights = 1 },
	} {
		_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
			if o.Group.Rank() == 1 {
				set(&o)
			}
			return Run(context.Background(), model(t, everything), o)
		})
		for rank, err := range errs {
			if different, ok := errors.AsType[*Different](err); !ok || len(different.Ranks) != 1 || different.Ranks[0] != 1 || !strings.HasPrefix(different.What, "options") {
				t.Errorf("%s on one process: rank %d: got %v", name, rank, err)
			}
		}
	}
}

func TestDifferentWeightsNameTheRank(t *testing.T) {
	_, errs := inProcesses(t, 3, func(o Options) (*Result, error) {
		n := newTestNetwork(t, o)
		p := n.processes
		if err := p.compareWeights(n.stepper.views, 5); err != nil {
			return nil, err
		}
		if o.Group.Rank() == 1 {
			bits := math.Float32bits(n.stepper.views[0].Data[3])
			n.stepper.views[0].Data[3] = math.Float32frombits(bits ^ 1)
		}
		return nil, p.compareWeights(n.stepper.views, 6)
	})
	for rank, err := range errs {
		if unequal, ok := errors.AsType[*Unequal](err); !ok || len(unequal.Ranks) != 1 || unequal.Ranks[0] != 1 || unequal.Step != 6 {
			t.Errorf("rank %d: got %v", rank, err)
		}
	}
}

// newTestNetwork returns a network of the model everything, without data.
func newTestNetwork(t testing.TB, o Options) *network {
	t.Helper()
	s, err := bareSession(model(t, everything), []int{8, 8}, o)
	expect.NoError(t, err)
	return s.learner.(*network)
}

// A process that is killed later must not leave a copy of the run on the disk.
func TestTheCopyOfAResumedRunIsGoneBeforeTheFirstStep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := distributed(t, 2, model(t, everything), plain)
	_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
		o.Epochs, o.Report = 6, func(Progress) {
			if left, err := filepath.Glob(filepath.Join(os.TempDir(), "tessera-resume-*")); err != nil || len(left) > 0 {
				t.Errorf("rank %d: there is %v (%v)", o.Group.Rank(), left, err)
			}
		}
		return Resume(context.Background(), run, o)
	})
	fatal.If(t, errors.Join(errs...))
}

func TestOnlyRank0Writes(t *testing.T) {
	t.Chdir(t.TempDir())
	run := distributed(t, 2, model(t, everything), plain)
	if left, err := filepath.Glob("*"); err != nil || len(left) > 0 {
		t.Errorf("beside the run: %v (%v)", left, err)
	}
	if !bytes.Contains(read(t, run, folder.State), []byte(`\"ranks\":2`)) {
		t.Error("the state does not record the number of processes")
	}
}
