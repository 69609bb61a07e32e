package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/data/morph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// channelled returns the declaration everything with images of 8 by 8 pixels and the named decomposition as the first layer.
func channelled(layer string) string {
	return strings.Replace(everything, "[[model.everything.encoder]]", "[[model.everything.encoder]]\n"+layer+"\n[[model.everything.encoder]]", 1)
}

const amdLayer, padoLayer = "kind = \"amd\"\nlevels = 2", "kind = \"pado\"\nlevels = 3\noriginal = true"

func decomposition(layer string) morph.Decomposition {
	if layer == amdLayer {
		return morph.Decomposition{Method: morph.AMD, Levels: 2, Start: 1, Step: 1}
	}
	return morph.Decomposition{Method: morph.PADO, Levels: 3, Start: 1, Step: 1, Original: true}
}

// A trained model decomposes plain images itself; the results equal those of prepared images in training and validation.
func TestATrainedModelTakesPlainImages(t *testing.T) {
	for _, layer := range []string{amdLayer, padoLayer} {
		m := model(t, channelled(layer), "hook.early_stopping=false")
		r := trained(t, m, Options{})
		opened, err := Open(r.Run)
		fatal.If(t, err)
		_, splits, err := newSession(context.Background(), m, Options{Backend: tape.Backend{}}, nil)
		fatal.If(t, err)
		coder := opened.Coder(tape.Backend{})
		images := splits.Validation.Float32()
		codes, err := coder.Encode(images)
		fatal.If(t, err)
		outputs, err := coder.Decode(codes)
		fatal.If(t, err)
		sum := 0.0
		for i, v := range outputs {
			sum += math.Pow(float64(v-images[i]), 2)
		}
		expect.Near(t, sum/float64(len(images)), lines(t, r.Run)[r.Epochs-1]["val_mse"].(float64), 1e-7, layer, "mse")
	}
}

func TestFittedChannelsRunFromZeroToOne(t *testing.T) {
	m := model(t, channelled(amdLayer))
	r := trained(t, m, Options{})
	opened, err := Open(r.Run)
	fatal.If(t, err)
	_, splits, err := newSession(context.Background(), m, Options{Backend: tape.Backend{}}, nil)
	fatal.If(t, err)
	of := decomposition(amdLayer)
	channels, shape, err := of.Apply(splits.Fit.Float32(), splits.Fit.Shape)
	fatal.If(t, err)
	low, gain := slices.Clone(channels[:shape[2]]), slices.Clone(channels[:shape[2]]) // gain is the greatest value at first
	for i, v := range channels {
		c := i % shape[2]
		low[c], gain[c] = min(low[c], v), max(gain[c], v)
	}
	for c := range gain {
		gain[c] = 1 / (gain[c] - low[c])
	}
	if slices.Min(low) >= 0 {
		t.Fatalf("low %v and gain %v are no test", low, gain)
	}
	for name, want := range map[string][]float32{"low": low, "gain": gain} {
		if p, err := opened.Parameter("encoder.0." + name); err != nil || !slices.Equal(p.Data, want) {
			t.Errorf("%s is %v, want %v (%v)", name, p.Data, want, err)
		}
	}
}

// Without the cache every step decomposes its images, with the same results.
func TestACacheChangesNoResult(t *testing.T) {
	for _, layer := range []string{amdLayer, padoLayer} {
		for _, o := range []Options{{}, {Backend: engine.Backend{Team: threads(t, 2)}}} {
			with, without := trained(t, model(t, channelled(layer)), o), trained(t, model(t, channelled(layer), "hook.decomposition.cache=false"), o)
			sameNumbers(t, with.Run, without.Run)
		}
	}
}

func TestBothBackEndsTrainDecomposedImages(t *testing.T) {
	m := model(t, channelled(amdLayer))
	team := team.New(2)
	defer team.Close()
	want := lines(t, trained(t, m, Options{}).Run)
	got := lines(t, trained(t, m, Options{Backend: engine.Backend{Team: team}, Team: team}).Run)
	for i := range want {
		for _, key := range []string{"loss", "val_mse"} {
			if a, b := got[i][key].(float64), want[i][key].(float64); math.Abs(a-b) > 1e-4*math.Abs(b) {
				t.Errorf("epoch %d: %s is %v, want %v", i+1, key, a, b)
			}
		}
	}
}

// A frozen layer keeps the rescaling of another run.
func TestAFrozenDecompositionKeepsItsRange(t *testing.T) {
	for freeze, want := range map[string]float32{`freeze=["encoder.0.*"]`: 5, `freeze=["encoder.3.*"]`: -0.5} {
		s, splits, err := newSession(context.Background(), model(t, channelled(amdLayer), freeze, "constraint=[]"), Options{Backend: tape.Backend{}}, nil)
		fatal.If(t, err)
		n := s.learner.(*network)
		low, err := n.model.Parameter("encoder.0.low")
		fatal.If(t, err)
		low.Data[0] = 5
		fatal.If(t, n.begin(context.Background(), splits, true))
		expect.Equal(t, low.Data[0], want, freeze, "low")
		s.close()
	}
}

func TestADecomposingTrainingStepAllocatesNothing(t *testing.T) {
	text := strings.Replace(quiet, "[[model.everything.encoder]]", "[[model.everything.encoder]]\n"+amdLayer+"\n[[model.everything.encoder]]", 1)
	stepsWithoutAllocations(t, model(t, text, "train.batch=8"))
}

// A contractive term needs derivatives with respect to the images, so the images are decomposed in the graph.
func TestAContractiveTermTrainsOnDecomposedImages(t *testing.T) {
	m := model(t, channelled(amdLayer), `loss=[{kind="mse"},{kind="contractive",weight=0.01}]`, "train.epochs=2")
	run := trained(t, m, Options{}).Run
	opened, err := Open(run)
	fatal.If(t, err)
	if low, err := opened.Parameter("encoder.0.low"); err != nil || slices.Min(low.Data) == 0 {
		t.Errorf("the channels are not rescaled: %v (%v)", low, err)
	}
	for i, line := range lines(t, run) {
		if v, ok := line["contractive"].(float64); !ok || v <= 0 {
			t.Errorf("epoch %d: contractive is %v", i+1, line["contractive"])
		}
	}
}
