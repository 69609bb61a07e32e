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

// training is what one hook sees of a training; it implements [hooks.Training].
type training struct {
	*trainee
	name   string // of the hook
	search bool
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
func (t training) Shown(p *hooks.Parameter) []float32 {
	m, err := t.shown()
	if err != nil {
		panic(err) // an error of this hook
	}
	return m.Parameters[p.Index].Data
}

// Rewrite implements [hooks.Training].
func (t training) Rewrite(p *hooks.Parameter, change func(values []float32)) {
	if t.search {
		panic(fmt.Sprintf("it changes %s, but %s does not continue from changed parameters", p.Path, t.spec.Optimizer.Kind))
	}
	change(p.Data)
	for _, a := range t.around {
		if values := a.Follows(p); values != nil {
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
func (t training) Compile(images int, want hooks.Value) (hooks.Program, error) {
	name := map[hooks.Value]string{hooks.Code: losses.Code, hooks.Output: losses.Output, hooks.ImageGradient: graph.InputGradient}[want]
	p, err := compile(t.model, t.options.Backend, graph.Request{Batch: images, Want: []string{name}})
	if err != nil {
		return nil, err
	}
	return valueOf{p.runner}, nil
}

// valueOf is a program of which one value is read; it implements [hooks.Program].
type valueOf struct{ graph.Runner[float32] }

// Value implements [hooks.Program].
func (v valueOf) Value() []float32 { return v.Tap(0) }
