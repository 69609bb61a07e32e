package train

import (
	"fmt"
	"math/rand/v2"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
)

// training implements [hooks.Training] for one hook.
type training struct {
	*trainee
	name string // of the hook
}

// Parameters implements [hooks.Training].
func (t training) Parameters(glob string) (list []*hooks.Parameter) {
	for _, p := range t.stepper.views {
		if config.MatchPath(glob, p.Path) {
			list = append(list, p)
		}
	}
	return list
}

// Evaluated implements [hooks.Training].
func (t training) Evaluated(p *hooks.Parameter) []float32 {
	m, err := t.shown()
	if err != nil {
		panic(err) // an error of this hook
	}
	return m.Parameters[p.Index].Data
}

// Rewrite implements [hooks.Training].
func (t training) Rewrite(p *hooks.Parameter, change func(values []float32)) {
	if t.searches() {
		panic(fmt.Sprintf("it changes %s, but %s cannot continue from changed parameters", p.Path, t.spec.Optimizer.Kind))
	}
	change(p.Data)
	for _, a := range t.around {
		if values := a.Average(p); values != nil {
			change(values)
		}
	}
}

// Project implements [hooks.Training].
func (t training) Project(p *hooks.Parameter) { t.stepper.projectOne(p) }

// Preparation implements [hooks.Training].
func (t training) Preparation() any {
	if len(t.spec.Encoder) > 0 {
		if first, ok := t.spec.Encoder[0].Layer.(layers.Preparing); ok {
			return first.Preparation()
		}
	}
	return nil
}

// Images implements [hooks.Training].
func (t training) Images() *data.Images { return t.images }

// Random implements [hooks.Training].
func (t training) Random(counter int) *rand.Rand {
	return random.Stream(t.spec.Train.Seed, "hook/"+t.name, uint64(counter))
}

// Epoch implements [hooks.Training].
func (t training) Epoch() int { return t.progress.Epoch }

// Step implements [hooks.Training].
func (t training) Step() int { return t.progress.Step }

// Stop implements [hooks.Training].
func (t training) Stop() { t.progress.Stopped = true }

// Threads implements [hooks.Training].
func (t training) Threads() int { return t.options.Team.Threads() }

// Do implements [hooks.Training].
func (t training) Do(f func(thread int)) { t.options.Team.Do(f) }

// BatchSizes implements [hooks.Training].
func (t training) BatchSizes() []int { return batchSizes(t.images.Len(), t.spec.Train.Batch) }

// Compile implements [hooks.Training].
func (t training) Compile(want hooks.Value, images ...int) (hooks.Program, error) {
	name := map[hooks.Value]string{hooks.Code: losses.Code, hooks.Output: losses.Output, hooks.ImageGradient: graph.InputGradient}[want]
	p := &valueProgram{t.trainee, name, compiled{}}
	t.compiled = append(t.compiled, p.of)
	for _, n := range images {
		if _, err := p.program(n); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// valueProgram computes one value for any number of images; it implements [hooks.Program].
type valueProgram struct {
	*trainee
	want string
	of   compiled
}

// program returns the program for n images.
func (v *valueProgram) program(n int) (p *program, err error) {
	if v.of[n] == nil {
		if p, err = compile(v.model, v.options.Backend, graph.Request{Batch: n, Want: []string{v.want}}); err == nil {
			v.of[n] = p
		}
	}
	return v.of[n], err
}

// Run implements [hooks.Program].
func (v *valueProgram) Run(images, clean []float32) ([]float32, error) {
	p, err := v.program(len(images) / v.model.Pixels())
	if err != nil {
		return nil, err
	}
	for i, values := range [][]float32{images, clean}[:len(p.Inputs)] {
		if err := p.runner.Bind(i, values); err != nil {
			return nil, err
		}
	}
	err = p.runner.Run()
	return p.runner.Tap(0), err
}
