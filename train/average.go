package train

import (
	"math"
	"slices"

	"tessera/graph"
	"tessera/kernel"
	"tessera/optim"
	"tessera/train/checkpoint"
)

// averages are moving averages of a model's parameters, running averages included: after step t
//
//	a = (1-decay) / (1-decay^t) sum over the steps s = 1..t of decay^(t-s) w_s
//
// where w_s are the weights after step s and its projection. That is the mean of the weights so far, each step before
// counting decay times as much as the one after it: the first draw has no part in it. In another form, a moves by
// (1-decay)/(1-decay^t) (w_t - a). Polyak and Juditsky 1992; the correction is that of Adam's moments.
type averages struct {
	decay  float64
	of     []*graph.Parameter
	values [][]float32  // by parameter
	model  *graph.Model // the averages, projected, as a model: a set that is not convex does not hold them
}

// newAverages returns those of a model, nil where it has none.
func newAverages(m *graph.Model) *averages {
	if m.Spec.Average == nil {
		return nil
	}
	a := &averages{decay: m.Spec.Average.Decay, of: m.Parameters, model: m.Twin()}
	for _, p := range m.Parameters {
		a.values = append(a.values, slices.Clone(p.Data))
	}
	return a
}

// averaged begins the averages with the parameters as they are.
func (n *network) averaged() {
	n.average = newAverages(n.model)
	n.stepper.keep(n.average, n.model)
}

// keep makes every step move the averages of a model, nil for none.
func (s *stepper) keep(a *averages, m *graph.Model) {
	if s.averages, s.carried = a, nil; a == nil {
		return
	}
	for i, p := range m.Parameters {
		if !p.Trainable && !p.Frozen {
			s.carried = append(s.carried, i)
		}
	}
	for _, m := range s.moved {
		m.average = a.values[m.at]
	}
}

// carry moves the averages of what the graph moves, running averages of a few values.
func (s *stepper) carry() {
	for _, i := range s.carried {
		follow(s.averages.values[i], s.averages.of[i].Data, s.scratch[0], s.pull)
	}
}

// pull is how much of the way to the weights after a step the averages go.
func (a *averages) pull(step int) float32 {
	return float32((1 - a.decay) / -math.Expm1(float64(step)*math.Log(a.decay)))
}

// follow moves an average towards the weights, in blocks that leave the caches last.
func follow(average, w, scratch []float32, pull float32) {
	k := kernel.Float32()
	for from := 0; from < len(w); from += optim.NormBlock {
		to := min(from+optim.NormBlock, len(w))
		a, way := average[from:to], scratch[:to-from]
		k.Sub(way, w[from:to], a)
		k.AddScaled(a, a, way, pull)
	}
}

// shown returns the model of the run as it is now: that of the averages where there are some, else the trained one.
func (n *network) shown() *graph.Model {
	a := n.average
	if a == nil {
		return n.model
	}
	for i, p := range a.model.Parameters {
		copy(p.Data, a.values[i])
	}
	n.stepper.projectOnto(a.model)
	return a.model
}

// saveAverages adds the averages to a state.
func (n *network) saveAverages(state *checkpoint.File) {
	if n.average == nil {
		return
	}
	for i, p := range n.model.Parameters {
		state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: averagePrefix + p.Path, Shape: p.Shape, Data: n.average.values[i]})
	}
}

// openAverages makes the averages of a state the parameters of a model, projected as [network.shown] does.
func openAverages(m *graph.Model, path string, f *checkpoint.File) error {
	if err := loadParameters(m, path, f, averagePrefix, current(m)); err != nil {
		return err
	}
	from, err := stateOf(path, f)
	if err != nil {
		return err
	}
	s := newStepper(m, alone{})
	phases, err := s.loadPruned(m.Spec.Prune, from)
	if err != nil {
		return err
	}
	s.hold(phases)
	s.Project()
	return nil
}
