package metrics

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/lists"
)

func init() {
	Registry.Register("kl", "divergence of mean activations from their target", func() Metric { return &KL{} })
}

// KLTarget is the study's target activation, used if a model declares none.
const KLTarget = 0.01

// klClip keeps means away from 0 and 1, where the divergence is infinite.
const klClip = 1e-7

// KL is the divergence of the mean activations from a target. The means are clipped to [1e-7, 1-1e-7].
type KL struct {
	Target float64 `toml:"target" want:"in (0,1)" doc:"p, the expected mean activation of every unit; 0 means the target of the model's first kl term, or else 0.01"`
}

func (*KL) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "kl", Unit: "nats", Better: Neither,
			Doc: "Σ_j p ln(p/t_j) + (1-p) ln((1-p)/(1-t_j)), t_j the mean activation of unit j. p is the target of the model's first `kl` " +
				"term, else 0.01; the sum is not multiplied by the weight of that term. Not applicable if codes leave [0,1]"}},
		Reads: ReadsCodes, Partial: true,
	}
}

func (m *KL) Start(s *Subject) (Meter, error) {
	target := m.Target
	if target == 0 {
		target = s.Known["kl.target"]
	}
	if target == 0 {
		target = KLTarget
	}
	if !(target > 0 && target < 1) {
		return nil, fmt.Errorf("metrics: kl target %g, want in (0,1)", target)
	}
	outside := false // a code left [0,1]
	means := ofMeans(s.Units, func(means []float64) Value {
		if outside {
			return NotApplicable("codes leave [0,1]")
		}
		sum := 0.0
		for _, t := range means {
			t = min(max(t, klClip), 1-klClip)
			sum += target*math.Log(target/t) + (1-target)*math.Log((1-target)/(1-t))
		}
		return Number(sum)
	})
	return meter{func(b *Batch) error {
		outside = outside || slices.ContainsFunc(b.Codes, func(v float32) bool { return !(v >= 0 && v <= 1) })
		return means.add(b)
	}, means.values}, nil
}

// ofMeans returns the meter for a value that is computed from the mean activations of the units.
func ofMeans(units int, result func(means []float64) Value) meter {
	sums := unitSums{sums: make([]float64, units)}
	return meter{func(b *Batch) error {
		sums.add(b.Codes)
		return nil
	}, func() []Value { return []Value{result(sums.means())} }}
}

// unitSums sums the activations of every unit, code by code.
type unitSums struct {
	sums []float64
	n    int
}

func (u *unitSums) add(codes []float32) {
	units := len(u.sums)
	n := len(codes) / units
	for i := range n {
		for j, v := range codes[i*units : (i+1)*units] {
			u.sums[j] += float64(v)
		}
	}
	u.n += n
}

// means returns the mean activations of the units; zeros if there are no codes.
func (u *unitSums) means() []float64 {
	means := lists.Map(u.sums, func(sum float64) float64 { return sum / float64(max(u.n, 1)) })
	return means
}
