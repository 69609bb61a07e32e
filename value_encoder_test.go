package tessera_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
)

// headText declares a model with a head.
const headText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "dense", units = 10, activation = "sigmoid" }]
head = { side = { from = "code", layers = [{ kind = "dense", units = 3 }] } }
loss = [{ kind = "mse" }, { kind = "l1", on = "side", weight = 0.001 }]`

func TestAnEncoderComputesAnyValue(t *testing.T) {
	for model, values := range map[string][]string{headText: {"code", "output", "side"}, baselineText: {"code", "output"}} {
		run := untrained(t, model, tessera.Options{Threads: 1})
		x := randomImages(run, 9, 4)
		for _, value := range values {
			var want []float32
			var err error
			if value == "output" {
				want = singly(t, singly(t, x, pixels(run), run.Encode), run.Units(), run.Decode)
			} else if value == "code" {
				want = singly(t, x, pixels(run), run.Encode)
			} else {
				want, err = run.Value(value, x)
			}
			if err != nil {
				t.Fatal(err)
			}
			e := encoder(t, run, tessera.EncoderOptions{Value: value, Workers: 1})
			got, err := e.Encode(t.Context(), nil, x)
			if err != nil || !sameBits(got, want) || e.Units() != len(want)/9 {
				t.Errorf("%s: %d values of %d each, %v; want %d, the same", value, len(got), e.Units(), err, len(want))
			}
		}
		if _, err := run.Encoder(tessera.EncoderOptions{Value: "nothing"}); err == nil {
			t.Error("a value that the model does not have: no error")
		}
	}
}

// species declares a classifier of the rows of a .csv file: the first value tells the two species apart.
func species(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/flowers.csv"
	rows := "long,wide,species\n"
	for i := range 40 {
		rows += fmt.Sprintf("%d,%d,%s\n", i%2, i%5, []string{"setosa", "virginica"}[i%2])
	}
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	return `dataset = { name = "csv", images = "` + filepath.ToSlash(file) + `", labels = "species", validation = 0 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
head = { kind = { layers = [{ kind = "dense" }] } }
loss = [{ kind = "cross_entropy", on = "kind" }]
optimizer = { learning_rate = 0.3 }
train = { batch = 1 }`
}

func TestAClassifierPredictsTheNamesOfItsClasses(t *testing.T) {
	trained := untrained(t, species(t), tessera.Options{Threads: 1})
	opened, err := tessera.Open(trained.Path, tessera.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	file, err := os.ReadFile(trained.Path + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tessera.ReadModel(file, tessera.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	x := []float32{0, 2, 1, 2, 1, 3}
	logits, err := trained.Value("kind", x)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []*tessera.Run{trained, opened, read} {
		for _, head := range []string{"", "kind"} {
			p, err := run.Predict(head, x)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.Classes, []string{"setosa", "virginica"}) || !slices.Equal(p.Labels, []int{0, 1, 1}) || p.Head != "kind" {
				t.Errorf("got %+v", p)
			}
			for i := range 3 {
				want := 1 / (1 + math.Exp(float64(logits[2*i+1-p.Labels[i]]-logits[2*i+p.Labels[i]])))
				if got := float64(p.Probability(i)); math.Abs(got-want) > 1e-6 || math.Abs(float64(p.Probabilities[2*i]+p.Probabilities[2*i+1])-1) > 1e-6 {
					t.Errorf("sample %d: probability %v of %v, want %v", i, got, p.Probabilities, want)
				}
			}
		}
	}
	if _, err := opened.Predict("code", x); err == nil || !strings.Contains(err.Error(), `want one of ["kind"]`) {
		t.Errorf("of a value without classes: %v", err)
	}
	if _, err := untrained(t, headText, tessera.Options{Threads: 1}).Predict("", make([]float32, 64)); !errors.Is(err, tessera.ErrNoClasses) {
		t.Errorf("of a model without classes: %v", err)
	}
}
