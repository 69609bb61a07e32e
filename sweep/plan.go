package sweep

import (
	"context"
	"slices"
	"time"

	"tessera/internal/machine"
	"tessera/kernel"
	"tessera/sweep/scheduler"
)

// Plan estimates what a sweep takes before it is run. Times are in seconds of this machine, memory is in bytes.
type Plan struct {
	Sweep    string      `json:"sweep"`
	Trials   int         `json:"trials"`
	Done     int         `json:"done"`    // trials that are not trained again
	Machine  string      `json:"machine"` // processor and kernels of the timing
	AtOnce   int         `json:"at_once"` // trials that were timed side by side
	Cores    []int       `json:"cores"`   // per machine
	Seconds  float64     `json:"seconds"` // from the beginning to the end of the sweep, by a simulated schedule
	Work     float64     `json:"work"`    // seconds of one core
	Longest  float64     `json:"longest"` // seconds of the longest trial: no number of cores is faster
	Images   int64       `json:"images"`  // memory of a process before its trials, which share it: the data sets above all
	Memory   []int64     `json:"memory"`  // per machine: the images, and as many of the largest trials as it has cores
	PerModel []ModelPlan `json:"models"`
	PerShape []ShapePlan `json:"shapes"`
	Assumes  []string    `json:"assumes"`
}

// ModelPlan is the part of a [Plan] that belongs to one model.
type ModelPlan struct {
	Model  string  `json:"model"`
	Trials int     `json:"trials"` // that are left
	Work   float64 `json:"work"`   // seconds of one core
}

// ShapePlan is the part of a [Plan] that belongs to trials of equal cost: their models differ in seeds, in numbers of epochs, and in
// numbers such as the weights of losses, but in no size.
type ShapePlan struct {
	Models     []string `json:"models"`
	Values     []string `json:"values"` // of the sweep's keys; "..." where they differ
	Trials     int      `json:"trials"` // that are left
	Step       float64  `json:"step"`   // seconds of one step; of a baseline or a full-batch optimizer, of one iteration
	Steps      int      `json:"steps"`  // of one epoch
	Timed      int      `json:"timed"`  // steps that were timed
	Epoch      float64  `json:"epoch"`  // seconds, with the measurement at its end
	Evaluation float64  `json:"evaluation"`
	Trial      float64  `json:"trial"`  // seconds of the first of these trials
	Memory     int64    `json:"memory"` // of one trial, without the images
}

// PlanOptions are the options of [Sweep.Plan].
type PlanOptions struct {
	Cores  []int               // of each machine; nil: one machine with as many as Options.Jobs
	Budget time.Duration       // that the steps of one shape are timed; 0: half a second
	Now    func() time.Time    // the clock; nil: time.Now
	Report func(shape, of int) // called before a shape is timed; may be nil
}

// assumptions are printed with every plan.
var assumptions = []string{
	"every trial trains for all of its epochs or iterations; early stopping and convergence are not foreseen",
	"all cores are as fast as those of this machine, and a trial has one core",
	"the selection, if any, is measured on the test images once more; this is not included",
}

// Plan times some steps and one evaluation of every shape, and simulates the schedule of the sweep. It trains no trial and writes
// nothing into the sweep's folder. The errors are those of [Sweep.Run].
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
	cores := 0
	for _, n := range o.Cores {
		cores += n
	}
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

// schedule adds up the trials of all shapes, in the order of the sweep, and simulates their schedule.
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
