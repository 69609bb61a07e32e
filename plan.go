package tessera

import (
	"errors"

	"tessera/engine"
	"tessera/graph"
	"tessera/parallel/team"
)

// Plan prints how the engine runs one training step of a model: every step with its shapes, bytes and FLOPs; and what two
// processes that train it together send each other.
func Plan(m *graph.Model) (string, error) {
	if m == nil || m.Spec == nil {
		return "", errors.New("tessera: no model to plan: make one with graph.New")
	}
	p, err := m.Program(graph.Request{Batch: m.Spec.Train.Batch, Want: m.TrainingOutputs(), Prepared: true})
	if err != nil {
		return "", err
	}
	program, err := p.Module()
	if err != nil {
		return "", err
	}
	team := team.New(0)
	defer team.Close()
	plan, err := engine.Compile[float32](program, team)
	if err != nil {
		return "", err
	}
	defer plan.Close()
	traffic, err := engine.Traffic(program, 2)
	if err != nil {
		return "", err
	}
	return plan.String() + traffic, nil
}
