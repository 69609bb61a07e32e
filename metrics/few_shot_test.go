package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// clusters returns codes of three classes around three points. The last fifth of the labels is unknown.
func clusters(n, units int, spread float64) Batch {
	r := rand.New(rand.NewPCG(8, 8))
	b := Batch{Codes: make([]float32, n*units), Labels: make([]int, n)}
	for i := range b.Labels {
		b.Labels[i] = i % 3
		for j := range units {
			v := spread * r.NormFloat64()
			if j%3 == i%3 {
				v++
			}
			b.Codes[i*units+j] = float32(v) * float32(1+j)
		}
		if i >= n*4/5 {
			b.Labels[i] = -1
		}
	}
	return b
}

// The accuracy equals that of plain loops over the same draws. The interval contains the mean.
func TestFewShotEqualsPlainLoops(t *testing.T) {
	const n, units = 150, 6
	b := clusters(n, units, 0.9)
	m := &FewShot{Shots: 2, Draws: 9, Seed: 4}
	got := added(t, m, Subject{Units: units}, b)
	var of [3][]int
	var scale [units]float64
	for i, l := range b.Labels {
		if l >= 0 {
			of[l] = append(of[l], i)
			for j := range units {
				scale[j] += math.Pow(float64(b.Codes[i*units+j]), 2)
			}
		}
	}
	known := len(of[0]) + len(of[1]) + len(of[2])
	value := func(i, j int) float64 { return float64(b.Codes[i*units+j]) / math.Sqrt(scale[j]/float64(known)) }
	want := 0.0
	for draw := range 9 {
		shots, others := m.draw([][]int{of[0], of[1], of[2]}, uint64(draw))
		if len(shots) != 6 || len(others) != known-6 {
			t.Fatalf("%d shots, %d others", len(shots), len(others))
		}
		var centre [3][units]float64
		for _, i := range shots {
			for j := range units {
				centre[b.Labels[i]][j] += value(i, j) / 2
			}
		}
		right := 0.0
		for _, i := range others {
			best, least := 0, math.Inf(1)
			for class := range centre {
				d := 0.0
				for j := range units {
					d += math.Pow(value(i, j)-centre[class][j], 2)
				}
				if d < least {
					best, least = class, d
				}
			}
			if best == b.Labels[i] {
				right++
			}
		}
		want += right / float64(len(others)) / 9
	}
	close6(t, "few_shot_centroid", got[0].Number, want)
	if !(got[1].Number < got[0].Number && got[0].Number < got[2].Number) || !(got[4].Number <= got[3].Number && got[3].Number <= got[5].Number) {
		t.Errorf("the intervals do not hold their means: %+v", got)
	}
	if got[3].Number < 0.5 {
		t.Errorf("linear: %v", got[3])
	}
}

func TestFewShotOfSeparateClassesIsPerfect(t *testing.T) {
	for i, v := range added(t, &FewShot{Shots: 1, Draws: 5}, Subject{Units: 3, Seed: 2}, clusters(60, 3, 0.01)) {
		expect.Equal(t, v.Number, 1, "value", i)
	}
}

func TestFewShotNeedsMoreImagesThanShots(t *testing.T) {
	m, _ := (&FewShot{Shots: 20}).Start(&Subject{Units: 3})
	b := clusters(60, 3, 0.1)
	fatal.If(t, m.Add(&b))
	_, err := m.Values(context.Background())
	expect.As[*data.Error](t, err, "class 0 has 16 samples, want more than the 20 of a draw")
}

func TestQuantiles(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 1: 5, 0.5: 2, 0.25: 1.5, 0.75: 3.5} {
		expect.Equal(t, vectors.Quantile([]float64{1, 2, 5}, q), want, q)
	}
}

func TestSettingsByTheirTexts(t *testing.T) {
	s, err := Select("few_shot")
	fatal.If(t, err)
	if err := s.SetText("shots=3"); err != nil || s[0].Metric.(*FewShot).Shots != 3 {
		t.Errorf("%v: %+v", err, s[0].Metric)
	}
	for text, want := range map[string]string{"shots": "KEY=VALUE", "shots=many": `got "many", want an integer > 0`, "shots=0": "want an integer > 0", "arms=2": `has a setting "arms"`} {
		expect.Error(t, s.SetText(text), want, text)
	}
}
