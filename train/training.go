package train

import (
	"fmt"
	"math/rand/v2"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/losses"
)

// training is what one hook sees of a training; it implements [hooks.Training].
type training struct {
	*trainee
	name string // of the hook
}

// attach makes the running forms of the model's hooks.
func (t *trainee) attach(search bool) error {
	for _, declared := range t.spec.AllHooks() {
		a := &attached{&hooks.Active{}, declared.Name}
		if err := a.call(func() error {
			active, err := declared.Hook.Attach(training{t, declared.Name})
			if active != nil {
				a.Active = active
			}
			return err
		}); err != nil {
			return fmt.Errorf("model %q: %w", t.spec.Name, err)
		}
		t.around = append(t.around, a)
	}
	if err := t.around.check(search, t.spec.Optimizer.Kind); err != nil {
		return fmt.Errorf("model %q: %w", t.spec.Name, err)
	}
	t.stepper.surround(t.around)
	t.model.Lent = t.around.lent()
	if t.around.shows() != nil {
		t.twin = t.model.Twin()
	}
	return nil
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

// Shown implements [hooks.Training].
func (t training) Shown(p *hooks.Parameter) []float32 { return t.shown().Parameters[p.Index].Data }

// Rewrite implements [hooks.Training].
func (t training) Rewrite(p *hooks.Parameter, change func(values []float32)) {
	change(p.Data)
	for _, a := range t.around {
		if a.Follows == nil {
			continue
		}
		if values := a.Follows(p); values != nil {
			change(values)
		}
	}
}

// Project implements [hooks.Training].
func (t training) Project(p *hooks.Parameter) { t.stepper.projectOne(p) }

// Images implements [hooks.Training].
func (t training) Images() *data.Images { return t.images }

// BatchSizes implements [hooks.Training].
func (t training) BatchSizes() []int { return t.batchSizes() }

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

// Compile implements [hooks.Training].
func (t training) Compile(images int, want hooks.Value) (hooks.Program, error) {
	name := map[hooks.Value]string{hooks.Code: losses.Code, hooks.Output: losses.Output, hooks.ImageGradient: graph.InputGradient}[want]
	p, err := compilePlain(t.model, t.options.Backend, graph.Request{Batch: images, Want: []string{name}})
	if err != nil {
		return nil, err
	}
	return valueOf{p.runner}, nil
}

// valueOf is a program of which one value is read; it implements [hooks.Program].
type valueOf struct{ graph.Runner[float32] }

// Value implements [hooks.Program].
func (v valueOf) Value() []float32 { return v.Tap(0) }
