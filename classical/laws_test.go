package classical

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// eachVariant runs a law on all variants.
func eachVariant(t *testing.T, law func(t *testing.T, v variant)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { law(t, v) })
	}
}

func TestEveryRegisteredMethodDescribesItself(t *testing.T) {
	for _, entry := range Registry.All() {
		m := entry.New()
		want := 100
		if _, ok := m.(*MatrixFactorisation); ok {
			want = 11 // ten factors and a bias: with more, ratings are overfitted
		}
		if got := m.Describe(); got.Units != want || got.Name != entry.Name {
			t.Errorf("%s describes itself as %+v, want %d units", entry.Name, got, want)
		}
		if c, ok := m.(interface{ Check() error }); ok && c.Check() != nil {
			t.Errorf("%s: the defaults: %v", entry.Name, c.Check())
		}
		expect.NoError(t, expect.Err(m.New([]int{28, 28}, 1)))
	}
}

func TestTheObjectiveNeverRises(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		if v.rises {
			return // each batch is judged before it has changed the atoms
		}
		objectives := fitAll(t, newModel(t, v.method, mixedShape, 1), v.mixed(1500))
		for i := 1; i < len(objectives); i++ {
			if objectives[i] > objectives[i-1]*(1+1e-6) {
				t.Errorf("iteration %d: %v after %v", i+1, objectives[i], objectives[i-1])
			}
		}
		if first, last := objectives[0], objectives[len(objectives)-1]; len(objectives) > 1 && !(last < first) {
			t.Errorf("nothing was learned: %v, then %v", first, last)
		}
	})
}

func TestTheObjectiveIsThatOfCodesAndAtoms(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		if v.rises {
			return
		}
		images := v.mixed(700)
		m := newModel(t, v.method, mixedShape, 1)
		objectives := fitAll(t, m, images)
		codes, atoms := m.Codes(), m.Atoms()
		if codes == nil {
			codes = encode(t, m, images.values)
		}
		want := meanSquares(images.values, codes, atoms.Values, atoms.Bias, m.Units(), images.pixels)
		if v.name == "nmf kl" {
			want = plainDivergence(images.values, codes, atoms.Values, m.Units(), images.pixels)
		} else if s, ok := v.method.(*NMF); ok {
			want = plainObjective(s, images.values, codes, atoms.Values, images.pixels)
		}
		if s, ok := v.method.(*MatrixFactorisation); ok {
			want += plainRidge(s, images, codes, atoms)
		}
		expect.Near(t, objectives[len(objectives)-1], want, 2e-5*want, "plain loops give")
	})
}

func TestAnotherSeedGivesAnotherFit(t *testing.T) {
	for _, v := range variants() {
		if v.name != "kmeans" && v.name != "nnsae" && v.name != "nmf hals random" && v.name != "sparse codes" {
			continue // the others start from the images alone
		}
		a, b := newModel(t, v.method, mixedShape, 1), newModel(t, v.method, mixedShape, 2)
		fitAll(t, a, v.mixed(300))
		fitAll(t, b, v.mixed(300))
		if reflect.DeepEqual(a.Atoms(), b.Atoms()) {
			t.Errorf("%s: the seed makes no difference", v.name)
		}
	}
}

// saved returns a state after a round trip through a file: numbers as JSON, tensors as copies.
func saved(t *testing.T, s State) State {
	t.Helper()
	text, err := json.Marshal(s)
	fatal.If(t, err)
	var read State
	fatal.If(t, json.Unmarshal(text, &read))
	return read
}

// countdown is a context that is done after the given number of calls of Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestZerosInTheImagesDoNoHarm(t *testing.T) {
	zeros := Matrix{make([]float32, 40*30), 30}
	eachVariant(t, func(t *testing.T, v variant) {
		for _, images := range []Matrix{v.mixed(400), zeros} {
			m := newModel(t, v.method, mixedShape, 1)
			objectives := fitAll(t, m, images)
			signed := map[string]bool{"pca atoms": true, "pca codes": true, "pca codes of others": true, "semi atoms": true,
				"matrix atoms": true, "matrix codes": true, "matrix codes of others": true,
				"matrix implicit atoms": true, "matrix implicit codes": true, "matrix implicit codes of others": true,
				"matrix sgd atoms": true, "matrix sgd codes": true, "matrix sgd codes of others": true,
				"pca holes atoms": true, "pca holes codes": true, "pca holes codes of others": true, "dictionary atoms": true, "dictionary codes": true, "dictionary codes of others": true,
				"factor analysis atoms": true, "factor analysis codes": true, "factor analysis codes of others": true}
			for name, values := range map[string][]float32{
				"atoms": m.Atoms().Values, "codes": encode(t, m, images.values), "codes of others": encode(t, m, v.mixed(500).values),
			} {
				for i, x := range values {
					if !finite(float64(x)) || x < 0 && !signed[v.name+" "+name] {
						t.Fatalf("%s: value %d is %v", name, i, x)
					}
				}
			}
			if last := objectives[len(objectives)-1]; !finite(last) || last < -1e-12 && !v.density() {
				t.Errorf("the objective is %v", last)
			}
		}
	})
}

func refuses(t *testing.T, v variant, s State, what string) {
	t.Helper()
	expect.AnyError(t, newModel(t, v.method, mixedShape, 1).Restore(s), what, "accepted")
}

func TestAFactorisationRefusesToResumeOnOtherImages(t *testing.T) {
	m := newModel(t, variants()[3].method, mixedShape, 1)
	fitAll(t, m, mixed(60))
	resumed := newModel(t, variants()[3].method, mixedShape, 1)
	fatal.If(t, resumed.Restore(m.State()))
	expect.AnyError(t, resumed.Begin(context.Background(), mixed(61)), "accepted")
}
