package laws_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"tessera/classical"
	"tessera/internal/lists"
	"tessera/laws"
	"tessera/metrics"
)

// centre is a baseline with one atom, the mean of the samples, which it reaches in three iterations. Each instance has one
// fault.
type centre struct {
	Mistake string
	Calls   int
}

func (c *centre) Describe() classical.Fitting {
	return classical.Fitting{Name: "centre", Units: 1, Iterations: 3, Signed: true, Absolute: c.Mistake != "unit"} // codes are decoded by their squares
}

func (c *centre) New(shape []int, _ uint64) (classical.Model, error) {
	if c.Mistake == "settings" {
		c.Calls++
	}
	return &centred{mistake: c.Mistake, mean: make([]float32, shape[0])}, nil
}

type centred struct {
	mistake string
	mean    []float32
	images  classical.Images
	done    int
	begun   bool
	hidden  float32 // a value that is missing from the state
	scale   float32 // factor of the codes for other atoms
}

func (m *centred) Shape() []int { return []int{len(m.mean)} }
func (m *centred) Units() int   { return 1 }

func (m *centred) Begin(_ context.Context, images classical.Images) error {
	if m.mistake != "accepts" && (images.Pixels() != len(m.mean) || images.Len() == 0) {
		return errors.New("other samples")
	}
	if m.mistake == "accepts" && images.Len() == 0 {
		return nil
	}
	x := m.all(images)
	if slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 }) {
		return errors.New("not finite")
	}
	m.images, m.begun = images, true
	return nil
}

func (m *centred) all(images classical.Images) []float32 {
	x := make([]float32, images.Len()*images.Pixels())
	indices := lists.Range(0, images.Len())
	images.Batch(x, indices)
	return x
}

func (m *centred) Step(ctx context.Context) (classical.Progress, error) {
	if m.mistake == "context" {
		m.mean[0]++ // half an iteration
	}
	if err := ctx.Err(); err != nil {
		return classical.Progress{}, err
	}
	if m.images != nil {
		x := m.all(m.images)
		for j := range m.mean {
			var sum float32
			for i := j; i < len(x); i += len(m.mean) {
				sum += x[i]
			}
			m.mean[j] += (sum/float32(m.images.Len()) - m.mean[j]) / 2
		}
	}
	m.done++
	m.hidden++
	switch m.mistake {
	case "processors":
		m.mean[0] += float32(runtime.GOMAXPROCS(0))
	case "forgets":
		m.mean[0] += m.hidden
	}
	p := classical.Progress{Iteration: m.done, Objective: 1 / float64(m.done), Done: m.Done()}
	if m.mistake == "objective" {
		p.Objective = math.NaN()
	}
	return p, nil
}

func (m *centred) Done() bool { return m.done >= 3 }

func (m *centred) State() classical.State {
	return classical.State{Tensors: map[string]classical.Tensor{"atoms": {Shape: []int{1, len(m.mean)}, Values: m.mean}}, Numbers: map[string]float64{"done": float64(m.done)}}
}

func (m *centred) Restore(s classical.State) error {
	atoms, ok := s.Tensors["atoms"]
	done, known := s.Numbers["done"]
	if m.mistake != "state" && (!ok || !known || len(atoms.Values) != len(m.mean)) {
		return errors.New("a damaged state")
	}
	copy(m.mean, atoms.Values)
	m.done, m.begun = int(done), done > 0
	if m.mistake == "restore" {
		m.done, m.hidden = int(done), 5
	}
	return nil
}

func (m *centred) Codes() []float32 { return nil }

func (m *centred) Encode(images []float32) ([]float32, error) {
	n := len(m.mean)
	if m.mistake != "early" && (!m.begun || len(images)%n > 0) {
		return nil, errors.New("not fitted, or a part of a sample")
	}
	var codes []float32
	for x := range slices.Chunk(images, n) {
		codes = append(codes, x[0])
	}
	if m.mistake == "size" {
		codes = append(codes, 1)
	}
	if m.mistake == "restore" && m.hidden == 5 && len(codes) > 0 {
		codes[0]++
	}
	if m.mistake == "atoms" && m.scale > 0 && len(codes) > 0 {
		codes[0] *= m.scale
	}
	return codes, nil
}

func (m *centred) Decode(codes []float32) (images []float32, err error) {
	if m.mistake != "early" && !m.begun {
		return nil, errors.New("not fitted")
	}
	for _, c := range codes {
		for _, v := range m.mean {
			images = append(images, c*v)
		}
	}
	return images, nil
}

func (m *centred) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: m.Shape(), Count: 1, Values: slices.Clone(m.mean)}
}

func (m *centred) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	if a == nil {
		return nil, errors.New("no atoms")
	}
	other := *m
	other.mean, other.scale = slices.Clone(a.Values), 2
	return &other, nil
}

func TestWrongBaselinesBreakTheirLaws(t *testing.T) {
	wrong := map[string]func() classical.Method{}
	for law, mistake := range map[string]string{
		"fits samples, in at most the iterations that it names":                                          "objective",
		"has codes and atoms of the sizes that it declares, and finite values":                           "size",
		"gives the same bytes again, on any number of processors":                                        "processors",
		"ends in the same bytes if it is saved and restored after any iteration":                         "forgets",
		"ends in the same bytes if its context ended before":                                             "context",
		"codes the same after it is restored, and nearly the same alone as in a batch":                   "restore",
		"decodes other atoms with the same codes":                                                        "atoms",
		"refuses samples that are not finite, negative without need, of another size, or none":           "accepts",
		"refuses to code before it is fitted, and parts of samples":                                      "early",
		"refuses a damaged state":                                                                        "state",
		"never changes its settings, nor the samples":                                                    "settings",
		"has the same parts for samples in another unit, unless its settings are in that of the samples": "unit",
	} {
		wrong[law] = func() classical.Method { return &centre{Mistake: mistake} }
	}
	mustBreak(t, laws.Baseline, wrong)
	if broken := laws.Broken(laws.Baseline, func() classical.Method { return &centre{} }); len(broken) > 0 {
		t.Errorf("a baseline without a mistake breaks %q: %v", broken, laws.Baseline.Test(func() classical.Method { return &centre{} }))
	}
}
