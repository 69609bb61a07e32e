package train

import (
	"fmt"
	"math"

	"tessera/attack"
	"tessera/config"
	"tessera/graph"
)

// adversary attacks the batches that are learned from, at the parameters as they are: the first images of each batch, whose
// order is random, by a program that gives the gradient with respect to them. The model is attacked as it will be used,
// without noise and with its running averages.
type adversary struct {
	attack   attack.Attack
	share    float64
	pixels   int
	team     Team
	programs compiled // by the number of attacked images

	x, clean, gradient []float32 // of this step

	move func(thread int) // bound once: a method value allocates
}

// newAdversary compiles the programs for batches of these sizes; nil for a model that learns from clean images.
func newAdversary(m *graph.Model, declared *config.Adversarial, o Options, sizes []int) (*adversary, error) {
	if declared == nil {
		return nil, nil
	}
	a := &adversary{attack: declared.Attack, share: declared.Share, pixels: m.Pixels(), team: o.Team, programs: compiled{}}
	for _, size := range sizes {
		n := a.attacked(size)
		if a.programs[n] != nil {
			continue
		}
		p, err := compile(m, o.Backend, graph.Options{Batch: n, Part: graph.Adversary})
		if err != nil {
			a.close()
			return nil, fmt.Errorf("attack: %w", err)
		}
		a.programs[n] = p
	}
	a.move = a.moveRows
	return a, nil
}

// attacked is how many images of a batch are attacked: one at least.
func (a *adversary) attacked(size int) int {
	return min(size, max(1, int(math.Round(a.share*float64(size)))))
}

// Attack moves images of a batch, which holds two copies of them: what is encoded, and what should be given back. Without an
// adversary they stay as they are.
func (a *adversary) Attack(b *batch) error {
	if a == nil {
		return nil
	}
	n := a.attacked(b.size)
	p := a.programs[n]
	a.x, a.clean = b.values[0][:n*a.pixels], b.values[targetInput][:n*a.pixels]
	for range a.attack.Rounds() {
		if err := p.runner.Bind(0, a.x); err != nil {
			return err
		}
		if err := p.runner.Bind(1, a.clean); err != nil {
			return err
		}
		if err := p.runner.Run(); err != nil {
			return err
		}
		a.gradient = p.runner.Tap(0)
		a.team.Do(a.move)
	}
	return nil
}

// targetInput is the place of the clean images among the inputs of a program that learns from attacked ones.
const targetInput = 1

// moveRows moves a thread's part of the images; each by itself, so that the number of threads changes no bit.
func (a *adversary) moveRows(thread int) {
	n, threads := len(a.x)/a.pixels, a.team.Threads()
	from, to := thread*n/threads*a.pixels, (thread+1)*n/threads*a.pixels
	a.attack.Move(a.x[from:to], a.clean[from:to], a.gradient[from:to], a.pixels)
}

// close frees the programs.
func (a *adversary) close() {
	if a != nil {
		_ = a.programs.Close() // what cannot be freed does not make the result wrong
	}
}
