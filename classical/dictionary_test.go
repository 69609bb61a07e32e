package classical

import (
	"math"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

func TestLassoCodesAgreeWithScikitLearn(t *testing.T) {
	o := readOracles(t)
	atoms := append([]float32(nil), o.Atoms...)
	for j := range o.Components {
		atom := atoms[j*o.Pixels : (j+1)*o.Pixels]
		norm := float32(vectors.Norm(atom))
		for i := range atom {
			atom[i] /= norm
		}
	}
	for name, c := range map[string]struct {
		images []float32
		nonneg bool
	}{"any": {o.Signed, false}, "nonneg": {o.X, true}} {
		s := Dictionary{Components: o.Components, L1: o.L1, NonNegative: c.nonneg}
		codes := onlineDictionary{s}.encode(&factors{Base: Base{atoms: atoms, units: o.Components, pixels: o.Pixels}}, c.images, encodePrecision)
		got, err := decode(codes, atoms, nil, o.Components, o.Pixels)
		fatal.If(t, err)
		zeros := 0
		for i, want := range o.Lassos[name] {
			if math.Abs(float64(got[i])-want) > 1e-3 {
				t.Fatalf("%s: value %d: got %v, want %v", name, i, got[i], want)
			}
		}
		for _, h := range codes {
			if h == 0 {
				zeros++
			}
		}
		if zeros == 0 {
			t.Errorf("%s: no code is 0", name)
		}
	}
}

func TestALearnedDictionaryIsAsGoodAsScikitLearns(t *testing.T) {
	o := readOracles(t)
	least := math.Inf(1)
	for seed := range uint64(5) {
		s := &Dictionary{Components: o.Components, L1: o.L1, Iterations: 300, Batch: 20, ForgetFactor: 0.5}
		m := newModel(t, s, []int{o.Pixels}, seed)
		fitAll(t, m, Matrix{o.Signed, o.Pixels})
		codes, atoms := encode(t, m, o.Signed), m.Atoms().Values
		e := meanSquares(o.Signed, codes, atoms, nil, o.Components, o.Pixels)
		for _, h := range codes {
			e += 2 * o.L1 * math.Abs(float64(h)) / float64(len(o.Signed))
		}
		least = min(least, e)
		for j := range o.Components {
			if n := vectors.Norm(atoms[j*o.Pixels : (j+1)*o.Pixels]); n > 1+1e-5 {
				t.Errorf("atom %d has norm %v", j, n)
			}
		}
	}
	if least > 1.01*o.Dictionary {
		t.Errorf("the objective is %v, scikit-learn's %v", least, o.Dictionary)
	}
}

func TestANonNegativeDictionaryFindsTheBars(t *testing.T) {
	count, m := found(t, generated(t, &data.Bars{Count: 500, Seed: 1}),
		&Dictionary{Components: 20, L1: 0.2, NonNegative: true, Iterations: 100, Batch: 100, ForgetFactor: 0.7})
	if count != 16 { // 16 atoms find 13 or 14 of the bars, for the start has some twice
		t.Errorf("%d of 16 bars were found", count)
	}
	for _, v := range m.Atoms().Values {
		if v < 0 {
			t.Fatalf("an atom has the value %v", v)
		}
	}
}
