package classical

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"

	"tessera/config"
	"tessera/metrics"
)

// eachVariant runs a law on all variants.
func eachVariant(t *testing.T, law func(t *testing.T, v variant)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { law(t, v) })
	}
}

func TestEveryRegisteredBaselineIsAMethod(t *testing.T) {
	for _, entry := range config.Baselines.All() {
		m, ok := entry.New().(Method)
		if !ok {
			t.Errorf("%s is no Method", entry.Name)
			continue
		}
		want := 100
		if _, ok := m.(*MatrixFactorisation); ok {
			want = 11 // ten factors and a bias: with more, ratings are overfitted
		}
		if m.Units() != want {
			t.Errorf("%s has %d components by default, want %d", entry.Name, m.Units(), want)
		}
		if c, ok := m.(interface{ Check() error }); ok && c.Check() != nil {
			t.Errorf("%s: the defaults: %v", entry.Name, c.Check())
		}
		if _, err := m.New([]int{28, 28}, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestTheObjectiveNeverRises(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		if v.rises {
			return // each batch is judged before it has changed the atoms
		}
		objectives := fit(t, newModel(t, v.method, mixedShape, 1), v.mixed(1500))
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
		objectives := fit(t, m, images)
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
		if got := objectives[len(objectives)-1]; !(math.Abs(got-want) <= 2e-5*want) {
			t.Errorf("got %v, plain loops give %v", got, want)
		}
	})
}

func TestOneSeedGivesOneFitOnAnyNumberOfProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	eachVariant(t, func(t *testing.T, v variant) {
		var states []State
		for _, processors := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(processors)
			m := newModel(t, v.method, mixedShape, 3)
			fit(t, m, v.mixed(1500))
			states = append(states, m.State())
		}
		if !reflect.DeepEqual(states[0], states[1]) || !reflect.DeepEqual(states[0], states[2]) {
			t.Error("the fits differ")
		}
	})
}

func TestAnotherSeedGivesAnotherFit(t *testing.T) {
	for _, v := range variants() {
		if v.name != "kmeans" && v.name != "nnsae" && v.name != "nmf hals random" && v.name != "sparse codes" {
			continue // the others start from the images alone
		}
		a, b := newModel(t, v.method, mixedShape, 1), newModel(t, v.method, mixedShape, 2)
		fit(t, a, v.mixed(300))
		fit(t, b, v.mixed(300))
		if reflect.DeepEqual(a.Atoms(), b.Atoms()) {
			t.Errorf("%s: the seed makes no difference", v.name)
		}
	}
}

// saved returns a state after a round trip through a file: numbers as JSON, tensors as copies.
func saved(t *testing.T, s State) State {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestAResumedFitEqualsAnUnbrokenOne(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		images := v.mixed(1500)
		unbroken := newModel(t, v.method, mixedShape, 5)
		fit(t, unbroken, images)
		for _, after := range []int{0, 1, 3} {
			broken := newModel(t, v.method, mixedShape, 5)
			if err := broken.Begin(context.Background(), images); err != nil {
				t.Fatal(err)
			}
			for range after {
				if _, err := broken.Step(context.Background()); err != nil {
					t.Fatal(err)
				}
				if broken.Done() {
					break
				}
			}
			resumed := newModel(t, v.method, mixedShape, 5)
			if err := resumed.Restore(saved(t, broken.State())); err != nil {
				t.Fatal(err)
			}
			fit(t, resumed, images)
			if !reflect.DeepEqual(resumed.State(), unbroken.State()) {
				t.Errorf("broken after %d iterations, the fit ends elsewhere", after)
			}
		}
	})
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

func TestAFitEndedByItsContextGoesOnExactly(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		images := v.mixed(1500)
		unbroken := newModel(t, v.method, mixedShape, 5)
		fit(t, unbroken, images)
		for _, asked := range []int{1, 2, 20} {
			m := newModel(t, v.method, mixedShape, 5)
			_, err := Fit(&countdown{context.Background(), asked}, m, images, nil)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			resumed := newModel(t, v.method, mixedShape, 5)
			if err := resumed.Restore(saved(t, m.State())); err != nil {
				t.Fatal(err)
			}
			fit(t, resumed, images)
			if !reflect.DeepEqual(resumed.State(), unbroken.State()) {
				t.Errorf("ended when asked for the %d. time, the fit ends elsewhere", asked+1)
			}
		}
	})
}

func TestARestoredModelCodesLikeTheFittedOne(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		images, others := v.mixed(300), v.mixed(900).values[600*30:]
		m := newModel(t, v.method, mixedShape, 1)
		fit(t, m, images)
		restored := newModel(t, v.method, mixedShape, 9)
		if err := restored.Restore(saved(t, m.State())); err != nil {
			t.Fatal(err)
		}
		for _, x := range [][]float32{images.values, others, nil} {
			if !reflect.DeepEqual(encode(t, restored, x), encode(t, m, x)) {
				t.Errorf("the codes of %d values differ", len(x))
			}
		}
		if !reflect.DeepEqual(m.Atoms(), restored.Atoms()) {
			t.Error("the atoms differ")
		}
		if !restored.Done() {
			t.Error("a finished fit is restored as unfinished")
		}
	})
}

func TestFittedImagesKeepTheirCodes(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		images := v.mixed(300)
		m := newModel(t, v.method, mixedShape, 1)
		fit(t, m, images)
		kept := m.Codes()
		if kept == nil {
			return
		}
		copy(kept[9*m.Units():10*m.Units()], kept[8*m.Units():]) // of equal images the first counts
		got := encode(t, m, images.values)
		if !reflect.DeepEqual(got, kept) {
			t.Error("Encode and Codes differ")
		}
	})
}

func TestZerosInTheImagesDoNoHarm(t *testing.T) {
	zeros := Matrix{make([]float32, 40*30), 30}
	eachVariant(t, func(t *testing.T, v variant) {
		for _, images := range []Matrix{v.mixed(400), zeros} {
			m := newModel(t, v.method, mixedShape, 1)
			objectives := fit(t, m, images)
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

func TestOtherAtomsDecodeWhatTheOwnAtomsEncoded(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		images := v.mixed(200)
		m := newModel(t, v.method, mixedShape, 1)
		fit(t, m, images)
		atoms := m.Atoms()
		for i := range atoms.Values {
			atoms.Values[i] *= 2
		}
		for i := range atoms.Bias {
			atoms.Bias[i] *= 2
		}
		other, err := m.WithAtoms(atoms)
		if err != nil {
			t.Fatal(err)
		}
		codes := encode(t, other, images.values)
		if !reflect.DeepEqual(codes, encode(t, m, images.values)) {
			t.Error("the codes changed")
		}
		want, _ := m.Decode(codes)
		got, err := other.Decode(codes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] *= 2
		}
		if worst(got, want) > 1e-5 || !reflect.DeepEqual(other.Atoms(), atoms) {
			t.Error("the other atoms are not those that decode")
		}
		if _, err := other.WithAtoms(nil); err == nil {
			t.Error("no atoms were accepted")
		}
	})
}

func TestWhatCannotBeFittedIsRefused(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		with := func(value float32) Images {
			images := v.mixed(60)
			images.values[1234] = value
			return images
		}
		refused := map[string]Images{
			"infinite": with(float32(math.Inf(1))), "none": Matrix{nil, 30},
			"wrong size": Matrix{make([]float32, 310), 31},
		}
		if !metrics.TakesHoles(newModel(t, v.method, mixedShape, 1)) {
			refused["NaN"] = with(float32(math.NaN()))
		}
		if !v.signed() {
			refused["negative"] = with(-1)
		}
		for name, images := range refused {
			if _, err := Fit(context.Background(), newModel(t, v.method, mixedShape, 1), images, nil); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		m := newModel(t, v.method, mixedShape, 1)
		if _, err := m.Encode(make([]float32, 30)); err == nil {
			t.Error("Encode before the fit: accepted")
		}
		if _, err := m.Decode(make([]float32, m.Units())); err == nil {
			t.Error("Decode before the fit: accepted")
		}
		fit(t, m, v.mixed(60))
		if _, err := m.Encode(make([]float32, 31)); err == nil {
			t.Error("half an image: accepted")
		}
		if _, err := m.Decode(make([]float32, m.Units()+1)); err == nil {
			t.Error("half a code: accepted")
		}
		if _, err := v.method.New([]int{0, 3}, 1); err == nil {
			t.Error("images without pixels: accepted")
		}
	})
}

func TestADamagedStateIsRefused(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		m := newModel(t, v.method, mixedShape, 1)
		fit(t, m, v.mixed(60))
		for name := range m.State().Tensors {
			s := saved(t, m.State())
			delete(s.Tensors, name)
			if name != biasName || v.name == "pca" {
				refuses(t, v, s, "without "+name)
			}
			s = saved(t, m.State())
			tensor := s.Tensors[name]
			s.Tensors[name] = Tensor{tensor.Shape, tensor.Values[1:]}
			refuses(t, v, s, "short "+name)
		}
		for name := range m.State().Numbers {
			s := saved(t, m.State())
			delete(s.Numbers, name)
			refuses(t, v, s, "without "+name)
		}
	})
}

func refuses(t *testing.T, v variant, s State, what string) {
	t.Helper()
	if err := newModel(t, v.method, mixedShape, 1).Restore(s); err == nil {
		t.Errorf("%s: accepted", what)
	}
}

func TestAFactorisationRefusesToResumeOnOtherImages(t *testing.T) {
	m := newModel(t, variants()[3].method, mixedShape, 1)
	fit(t, m, mixed(60))
	resumed := newModel(t, variants()[3].method, mixedShape, 1)
	if err := resumed.Restore(m.State()); err != nil {
		t.Fatal(err)
	}
	if err := resumed.Begin(context.Background(), mixed(61)); err == nil {
		t.Error("accepted")
	}
}
