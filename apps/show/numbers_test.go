package show

import (
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Numbers of dead and useful units whose sum exceeds the number of units are explained, others are not.
func TestDeadUnitsThatAreUsefulAreExplained(t *testing.T) {
	of := func(dead, useful float64) metrics.Values {
		return metrics.Values{{Name: "dead_units", Number: dead}, {Name: "useful_units", Number: useful}}
	}
	if got := deadAndUseful(of(28, 14), 40); !strings.HasPrefix(got, "Some of the 28 dead units are among the 14 useful ones.") {
		t.Errorf("28 and 14 of 40: got %q", got)
	}
	for name, values := range map[string]metrics.Values{"26 and 14": of(26, 14), "dead only": of(28, 14)[:1], "useful only": of(28, 14)[1:]} {
		expect.Equal(t, deadAndUseful(values, 40), "", name, "of 40")
	}
}

// The advice on atoms that are whole pictures is that of docs/guide/photos.md: fewer units only where each has few samples.
func TestWholePicturesAreAdvisedByTheSamplesOfAUnit(t *testing.T) {
	for crowded, want := range map[bool]string{true: "fewer units", false: "more units"} {
		if got := wholePictures(0.5, crowded, "a less sparse code"); !strings.Contains(got, "covers 50 % of the picture") || !strings.HasSuffix(got, "need a less sparse code or "+want+".") {
			t.Errorf("crowded %v: got %q", crowded, got)
		}
	}
	expect.Equal(t, wholePictures(0.3, true), "", "atoms of parts")
}

// What makes atoms local is advised to a model that lacks it, in the words of its kind.
func TestLocalAtomsAreAdvisedByWhatTheModelLacks(t *testing.T) {
	const network = "encoder = [{ kind = \"dense\", units = 3 }]\ntrain.epochs = 1\n"
	const weights, atoms, sparse = "non-negative weights (the constraint nonneg)", `non-negative atoms (kind = "nmf")`, "a less sparse code"
	for text, c := range map[string]struct {
		hoyer float64
		want  []string
	}{
		network: {0.4, []string{weights}},
		network + "loss = [{ kind = \"mse\" }, { kind = \"l1\" }]\n": {0.6, []string{sparse, weights}},
		network + "constraint = [{ kind = \"nonneg\" }]\n":           {0.4, nil},
		"kind = \"pca\"\ncomponents = 3\n":                           {0.4, []string{atoms}},
		"kind = \"nmf\"\ncomponents = 3\n":                           {0.6, []string{sparse}},
		"kind = \"kmeans\"\ncomponents = 3\n":                        {0.6, nil},
	} {
		f, err := config.Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 40 }\n"+text))
		fatal.If(t, err)
		m, err := f.Model("m")
		fatal.If(t, err)
		run, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: t.TempDir() + "/run"})
		fatal.If(t, err)
		t.Cleanup(func() { _ = run.Close() })
		r := &evaluation.Report{Result: &metrics.Result{Values: metrics.Values{{Name: "hoyer", Number: c.hoyer}}}}
		expect.Slice(t, changes(run, r), c.want, text)
	}
}
