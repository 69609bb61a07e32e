package graph_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"tessera/attack"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
)

// torch_attacks.json contains adversarial examples computed by PyTorch. It is written by torch_attacks.py in the same
// folder.
//
//go:embed testdata/torch_attacks.json
var torchAttacks []byte

// torchAttack is the contents of torch_attacks.json.
type torchAttack struct {
	Weights, Biases      [][]float32
	Units, Classes, Side int
	Images               []byte
	Labels               []int
	Right                int
	Cases                []torchCase
}

type torchCase struct {
	Norm          attack.Norm
	Epsilon       float64
	Method        string
	Objective     attack.Objective
	Steps, Right  int
	Start, Images []float32
	After         int `json:"after_20_starts"`
}

func (c torchCase) trial() attack.Trial {
	t := attack.Trial{Attack: &attack.FGSM{}, Ball: attack.Ball{Norm: c.Norm, Epsilon: c.Epsilon}, Objective: c.Objective}
	if c.Method == "pgd" {
		t.Attack = &attack.PGD{Steps: c.Steps}
	}
	return t
}

// head returns the classifier of the fixture on a back end.
func (f *torchAttack) head(t *testing.T, backend ir.Backend) *graph.Head {
	t.Helper()
	text := fmt.Sprintf(`
[model.c]
dataset = "mnist"
encoder = [{ kind = "dense", units = %d, activation = "relu" }]
decoder = []
head.class.layers = [{ kind = "dense", units = %d }]
loss = [{ kind = "cross_entropy" }]
`, f.Units, f.Classes)
	m := model(t, text, "c", f.Side, f.Side)
	for i, path := range []string{"encoder.0", "head.class.0"} {
		w, _ := m.Parameter(path + ".weight")
		b, _ := m.Parameter(path + ".bias")
		if copy(w.Data, f.Weights[i]) != len(w.Data) || copy(b.Data, f.Biases[i]) != len(b.Data) {
			t.Fatal("other numbers of weights")
		}
	}
	coder := graph.NewCoder(m, backend)
	t.Cleanup(func() { coder.Close() })
	h, err := coder.Head("class")
	fatal.If(t, err)
	return h
}

// readTorchAttacks reads the fixture and its images.
func readTorchAttacks(t *testing.T) (f torchAttack, images []float32) {
	t.Helper()
	fatal.If(t, json.Unmarshal(torchAttacks, &f))
	for _, v := range f.Images {
		images = append(images, float32(v)/255)
	}
	return f, images
}

// With equal weights and starting points, both back ends give the adversarial examples of an independent
// implementation.
func TestAttacksOnHeadsEqualPyTorch(t *testing.T) {
	f, images := readTorchAttacks(t)
	members := team.New(2)
	defer members.Close()
	for name, backend := range map[string]ir.Backend{"engine": engine.Backend{Team: members}, "tape": tape.Backend{}} {
		h := f.head(t, backend)
		for _, c := range f.Cases {
			n := len(c.Start) / (f.Side * f.Side)
			x := slices.Clone(c.Start)
			a := c.trial()
			task, err := attack.NewTask(t.Context(), a, h, images[:len(x)], f.Labels[:n])
			fatal.If(t, err)
			of := lists.Range(0, n)
			fatal.If(t, task.Follow(a.Attack.(attack.Iterative), x, of))
			most := 0.0
			for i, v := range x {
				most = max(most, math.Abs(float64(v)-float64(c.Images[i])))
			}
			if most > 1e-5 {
				t.Errorf("%s: %s %s by %s: an example differs by %g", name, c.Norm, c.Method, c.Objective, most)
			}
		}
	}
}

// The robust accuracy on 1,000 images differs from PyTorch's by at most 3 images. After 20 random starts of both
// implementations it differs by at most one percentage point.
func TestRobustAccuracyEqualsPyTorch(t *testing.T) {
	f, images := readTorchAttacks(t)
	members := team.New(2)
	defer members.Close()
	h := f.head(t, engine.Backend{Team: members})
	n := len(f.Labels)
	var trials []attack.Trial
	for _, c := range f.Cases {
		trials = append(trials, c.trial())
		if c.Method == "pgd" {
			again := c.trial()
			again.Attack = &attack.PGD{Steps: c.Steps, RandomStart: true, Restarts: 19}
			trials = append(trials, again)
		}
	}
	j, err := attack.Judge(t.Context(), h, nil, images, f.Labels, trials)
	fatal.If(t, err)
	right := func(a attack.Accuracy) int { return int(math.Round(a.Value * float64(n))) }
	if got := right(j.Accuracy); got != f.Right || j.Images != n {
		t.Errorf("%d of %d clean images, want %d of %d", got, j.Images, f.Right, n)
	}
	k := 0
	for _, c := range f.Cases {
		once := right(j.Trials[k].Accuracy)
		if k++; math.Abs(float64(once-c.Right)) > 3 {
			t.Errorf("%s %s by %s: %d right, want %d", c.Norm, c.Method, c.Objective, once, c.Right)
		}
		if c.Method != "pgd" {
			continue
		}
		often := right(j.Trials[k].Accuracy)
		if k++; math.Abs(float64(often-c.After)) > 10 || often > once+3 {
			t.Errorf("%s %s by %s, 20 starts: %d right, want %d; %d from the images", c.Norm, c.Method, c.Objective, often, c.After, once)
		}
	}
	for _, r := range j.Trials {
		if !(r.Largest > 0.9*r.Epsilon && r.Largest <= r.Epsilon) || !(r.Risk > j.Risk) || !(r.Accuracy.Low < r.Accuracy.Value && r.Accuracy.Value < r.Accuracy.High) {
			t.Errorf("got %+v, clean risk %v", r, j.Risk)
		}
	}
}
