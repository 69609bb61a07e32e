package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/machine"
	"tessera/internal/parallel/team"
	"tessera/internal/sweep/scheduler"
	"tessera/internal/train"
	"tessera/metrics"
)

// Plan estimates the time and memory of a sweep before it is run. Times are in seconds of this machine, memory is in bytes.
type Plan struct {
	Sweep    string      `json:"sweep"`
	Trials   int         `json:"trials"`
	Done     int         `json:"done"`    // number of trials that are not trained again
	Machine  string      `json:"machine"` // processor and kernels of the machine that measured the times
	AtOnce   int         `json:"at_once"` // number of trials that were timed concurrently
	Cores    []int       `json:"cores"`   // number of cores of each machine
	Seconds  float64     `json:"seconds"` // duration of the sweep in seconds, from a simulated schedule
	Work     float64     `json:"work"`    // total work in core-seconds
	Longest  float64     `json:"longest"` // duration of the longest trial in seconds: a lower bound for any number of cores
	Images   int64       `json:"images"`  // memory of a process before it runs trials, mainly for the shared data sets
	Memory   []int64     `json:"memory"`  // memory of each machine: the images, and the largest trials, one per core
	PerModel []ModelPlan `json:"models"`
	PerShape []ShapePlan `json:"shapes"`
	Assumes  []string    `json:"assumes"`
}

// ModelPlan is the part of a [Plan] for one model.
type ModelPlan struct {
	Model  string  `json:"model"`
	Trials int     `json:"trials"` // number of remaining trials
	Work   float64 `json:"work"`   // work in core-seconds
}

// ShapePlan is the part of a [Plan] for trials with the same cost per step. The models of these trials may differ in
// seeds, in numbers of epochs, and in numbers such as the weights of losses, but not in sizes.
type ShapePlan struct {
	Models     []string `json:"models"`
	Values     []string `json:"values"`  // values of the sweep's keys; "..." if there are several
	Trials     int      `json:"trials"`  // number of remaining trials
	Step       float64  `json:"step"`    // seconds per step, or per iteration of a baseline or a full-batch optimizer
	Steps      int      `json:"steps"`   // number of steps per epoch
	Timed      int      `json:"timed"`   // number of timed steps
	Epochs     int      `json:"epochs"`  // epochs or iterations of the first of these trials
	AtMost     bool     `json:"at_most"` // it may end sooner, which the timing was too short to see
	Epoch      float64  `json:"epoch"`   // seconds per epoch, including the measurement at its end
	Evaluation float64  `json:"evaluation"`
	Trial      float64  `json:"trial"`  // estimated seconds for the first of these trials
	Memory     int64    `json:"memory"` // memory of one trial, without the images
}

// PlanOptions are the options of [Sweep.Plan].
type PlanOptions struct {
	Cores  []int               // number of cores of each machine; nil: one machine with Options.Jobs cores
	Budget time.Duration       // time spent on timing the steps of one shape; 0: half a second
	Now    func() time.Time    // the clock; nil: time.Now
	Report func(shape, of int) // called before a shape is timed; may be nil
}

// assumptions is the text that is printed with every plan.
var assumptions = []string{
	"a trial that ends early (early stopping, convergence) ends after as many epochs or iterations as the timed copy; \"at most\": the copy was timed too briefly to see that, and the time is an upper bound",
	"all cores are as fast as those of this machine, and a trial has one core",
	"the selection, if any, is measured on the test images once more; this is not included",
}

// Plan estimates the time and the memory of a sweep. It times some steps and one evaluation of every shape, and
// simulates the schedule of the sweep. It does not write to the sweep's folder. The errors are those of [Sweep.Run].
func (s *Sweep) Plan(ctx context.Context, o PlanOptions) (*Plan, error) {
	if err := s.labelled(); err != nil {
		return nil, err
	}
	if o.Cores == nil {
		o.Cores = []int{s.options.Jobs}
	}
	if o.Budget == 0 {
		o.Budget = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Plan{Sweep: s.Name, Trials: len(s.Trials), Cores: o.Cores, Machine: machine.CPU() + ", " + kernel.Float32().Name,
		PerModel: []ModelPlan{}, PerShape: []ShapePlan{}, Assumes: assumptions, Images: liveBytes(true)}
	shapes := s.shapes()
	left := 0
	for _, one := range shapes {
		left += len(one.trials)
	}
	cores := lists.Sum(o.Cores)
	p.Done, p.AtOnce = len(s.Trials)-left, max(1, min(s.options.Jobs, cores, left))
	for i, one := range shapes {
		if o.Report != nil {
			o.Report(i+1, len(shapes))
		}
		if err := s.time(ctx, one, p.AtOnce, o); err != nil {
			return nil, err
		}
		p.PerShape = append(p.PerShape, one.described())
	}
	s.schedule(p, shapes, cores)
	return p, nil
}

// schedule sums the trials of all shapes, in the order of the sweep, and simulates their schedule.
func (s *Sweep) schedule(p *Plan, shapes []*shape, cores int) {
	var tasks []time.Duration
	var largest int64
	for _, t := range s.Trials {
		for _, one := range shapes {
			if !slices.Contains(one.trials, t) {
				continue
			}
			d := one.duration(t)
			tasks = append(tasks, d)
			p.Work += d.Seconds()
			p.Longest = max(p.Longest, d.Seconds())
			largest = max(largest, one.memory)
			p.addToModel(t.Model.Name, d)
		}
	}
	p.Seconds = scheduler.Simulate(tasks, cores).Seconds()
	for _, n := range p.Cores {
		p.Memory = append(p.Memory, p.Images+int64(n)*largest)
	}
}

func (p *Plan) addToModel(model string, d time.Duration) {
	i := slices.IndexFunc(p.PerModel, func(m ModelPlan) bool { return m.Model == model })
	if i < 0 {
		i = len(p.PerModel)
		p.PerModel = append(p.PerModel, ModelPlan{Model: model})
	}
	p.PerModel[i].Trials++
	p.PerModel[i].Work += d.Seconds()
}

// shape is a group of trials with the same cost per step.
type shape struct {
	trials     []*Trial
	pace       train.Pace
	evaluation time.Duration
	memory     int64
}

// shapes groups the unfinished trials by their cost per step.
func (s *Sweep) shapes() (all []*shape) {
	by := map[string]*shape{}
	for _, t := range s.Trials {
		if s.kept(t) != nil {
			continue
		}
		key := costKey(t.Model)
		if by[key] == nil {
			by[key] = &shape{}
			all = append(all, by[key])
		}
		by[key].trials = append(by[key].trials, t)
	}
	return all
}

// costless lists settings that do not affect the cost of a step, whatever their table.
var costless = []string{"about", "seed", "epochs", "iterations", "patience", "min_delta", "checkpoint_seconds"}

// sizeless lists tables in which non-integer numbers, such as weights and rates, affect the cost of a step only if they
// are 0; a tolerance affects the number of steps. "" stands for the keys of the model itself, which a baseline has.
var sizeless = []string{"", "loss", "optimizer", "constraint", "encoder", "decoder", "train"}

// costKey returns a text that is equal for models with the same cost per step.
func costKey(m *config.Model) string {
	var b strings.Builder
	for key, value := range m.Settings() {
		if key == "name" || slices.Contains(costless, key[strings.LastIndex(key, ".")+1:]) {
			continue
		}
		table, _, below := strings.Cut(key, ".")
		if !below {
			table = ""
		}
		if _, err := strconv.Atoi(value); err != nil && slices.Contains(sizeless, table) && !strings.HasSuffix(key, "tolerance") {
			if v, err := strconv.ParseFloat(value, 64); err == nil && v != 0 {
				value = "#"
			}
		}
		fmt.Fprintf(&b, "%s = %s\n", key, value)
	}
	return b.String()
}

// duration returns the estimated time of the remaining epochs and the evaluation of a trial of the shape.
func (one *shape) duration(t *Trial) time.Duration {
	pace := one.pace
	return pace.Training(t.Model, max(0, pace.EpochsOf(t.Model)-train.StatusOf(t.Path).Epoch)) + one.evaluation
}

func (one *shape) described() ShapePlan {
	first := one.trials[0]
	p := ShapePlan{Values: append([]string{}, first.Texts()...), Trials: len(one.trials),
		Step: one.pace.Step.Seconds(), Steps: one.pace.Steps, Timed: one.pace.Timed,
		Epoch: float64(one.pace.Steps)*one.pace.Step.Seconds() + one.pace.End.Seconds(), Evaluation: one.evaluation.Seconds(),
		Trial: one.duration(first).Seconds(), Memory: one.memory}
	training := first.Model.Training()
	p.Epochs = one.pace.EpochsOf(first.Model)
	p.AtMost = one.pace.Ended == 0 && p.Epochs > 1 && (training.Iterates || first.Model.EarlyStops())
	for _, t := range one.trials {
		if !slices.Contains(p.Models, t.Model.Name) {
			p.Models = append(p.Models, t.Model.Name)
		}
		for i, text := range t.Texts() {
			if text != p.Values[i] {
				p.Values[i] = "..."
			}
		}
	}
	return p
}

// time times the first trial of a shape that does not diverge. If all trials diverge, it returns the error of the first
// one.
func (s *Sweep) time(ctx context.Context, one *shape, copies int, o PlanOptions) (err error) {
	for _, t := range one.trials {
		failed := s.timeTrial(ctx, one, t, copies, o)
		if failed == nil {
			return nil
		}
		err = cmp.Or(err, failed)
		var notFinite *metrics.NotFinite
		if _, ok := errors.AsType[*train.Diverged](failed); !ok && !errors.As(failed, &notFinite) {
			return failed
		}
	}
	return err
}

// timeTrial times several concurrent copies of a trial and stores the mean times. The copies run concurrently because
// the trials of a sweep share the memory of the machine.
func (s *Sweep) timeTrial(ctx context.Context, one *shape, t *Trial, copies int, o PlanOptions) error {
	dir, err := os.MkdirTemp("", "tessera-plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before := liveBytes(true)
	paces, evaluations := make([]train.Pace, copies), make([]time.Duration, copies)
	peak := watchMemory()
	var running team.Group
	errs := make([]error, copies)
	for i := range copies {
		running.Go(func() {
			paces[i], evaluations[i], errs[i] = s.timeOne(ctx, t, filepath.Join(dir, fmt.Sprint(i)), o)
		})
	}
	running.Wait()
	most := peak()
	if err := cmp.Or(errs...); err != nil { // all copies have the same error
		return fmt.Errorf("trial %s: %w", t.ID, err)
	}
	one.pace, one.evaluation = means(paces, evaluations)
	one.memory = max(0, most-before) / int64(copies)
	return nil
}

// means returns the mean times of several copies.
func means(paces []train.Pace, evaluations []time.Duration) (p train.Pace, evaluation time.Duration) {
	p = paces[0]
	mean := func(of func(i int) time.Duration) (sum time.Duration) {
		for i := range paces {
			sum += of(i)
		}
		return sum / time.Duration(len(paces))
	}
	p.Start = mean(func(i int) time.Duration { return paces[i].Start })
	p.Step = mean(func(i int) time.Duration { return paces[i].Step })
	p.End = mean(func(i int) time.Duration { return paces[i].End })
	p.Checkpoint = mean(func(i int) time.Duration { return paces[i].Checkpoint })
	return p, mean(func(i int) time.Duration { return evaluations[i] })
}

// timeOne times a trial in a temporary folder: some steps, and the evaluation of the untrained model.
func (s *Sweep) timeOne(ctx context.Context, t *Trial, dir string, o PlanOptions) (p train.Pace, evaluation time.Duration, err error) {
	team := team.New(1)
	defer team.Close()
	backend := engine.Backend{Team: team}
	p, err = train.Time(ctx, t.Model, train.Options{Backend: backend, Team: team, Dirs: s.options.Dirs, Out: dir,
		Load: func(context.Context, *config.Dataset) (*data.Set, error) { return t.fitted, nil }}, o.Now, o.Budget)
	if err != nil {
		return p, 0, err
	}
	run := s.Standalone(t)
	run.Out = dir
	from := o.Now()
	_, err = run.evaluate(ctx, backend, s.split)
	return p, o.Now().Sub(from), err
}

// watchMemory samples the used memory every hundredth of a second. stop ends the sampling and returns the maximum in
// bytes.
func watchMemory() (stop func() int64) {
	var most int64
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			most = max(most, liveBytes(false))
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(ended)
		<-done
		return max(most, liveBytes(false))
	}
}

// liveBytes returns the size of the objects on the heap in bytes. If collected is true, it first runs a garbage
// collection.
func liveBytes(collected bool) int64 {
	if collected {
		runtime.GC()
	}
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
