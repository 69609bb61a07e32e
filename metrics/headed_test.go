package metrics

import (
	"context"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// headed is a coder with heads. A head computes x W from the images, and all heads are compared with labels.
type headed struct {
	*affine
	names   []string
	heads   map[string][]float32 // pixels x classes
	without bool                 // the coder has no decoder
}

func newHeaded(r *rand.Rand, classes int, names ...string) *headed {
	h := &headed{affine: newAffine(r, []int{4, 4}, 3), names: names, heads: map[string][]float32{}}
	for _, name := range names {
		h.heads[name] = normal(r, 16*classes)
	}
	return h
}

func (h *headed) Values() []string {
	if h.without {
		return append([]string{"code"}, h.names...)
	}
	return append([]string{"code", OutputName}, h.names...)
}

func (h *headed) ClassHeads() []string { return h.names }

func (h *headed) Value(name string, images []float32) ([]float32, error) {
	w := h.heads[name]
	return matrixProduct(images, w, volume.Of(h.shape), len(w)/16), nil
}

// labelledSample returns a sample with labels of every class. A third of the images has no label.
func labelledSample(r *rand.Rand, n, classes int) Sample {
	s := Sample{Images: uniform(r, n*16), Labels: make([]int, n)}
	for i := range s.Labels {
		s.Labels[i] = r.IntN(classes*3/2) - classes/2
	}
	return s
}

// ofHead evaluates one metric of a coder with heads.
func ofHead(t *testing.T, c *headed, s Sample, m Metric) *Result {
	t.Helper()
	r, err := Evaluate(context.Background(), c, s, Selection{{Metric: m}})
	fatal.If(t, err)
	return r
}

// labelledRows returns the logits, in float64, and the classes of the images of a known class.
func labelledRows(t *testing.T, c *headed, s Sample, head string) (rows [][]float64, classes []int) {
	t.Helper()
	logits, err := c.Value(head, s.Images)
	fatal.If(t, err)
	width := len(logits) / len(s.Labels)
	for i, class := range s.Labels {
		if class < 0 {
			continue
		}
		row := lists.Of(width, func(k int) float64 { return float64(logits[i*width+k]) })
		rows, classes = append(rows, row), append(classes, class)
	}
	return rows, classes
}

func TestAModelWithoutDecoderHasNoOutput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	c := newHeaded(r, 3, "class")
	c.without = true
	c.hidden = true
	got := measured(t, c, uniform(r, 160))
	for _, name := range []string{"mse", "mse_clipped", "max_approx", "hoyer_atoms"} {
		if v, ok := got.Find(name); !ok || v.Missing == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v, _ := got.Find("mse"); v.Missing != "the model has no decoder" {
		t.Errorf("mse: %+v", v)
	}
	number(t, got, "hoyer")
}

func TestLogitsOfTheWrongNumberAreRefused(t *testing.T) {
	b := Batch{Logits: make([]float32, 6), Labels: []int{2, -1, 1}}
	expect.Error(t, b.EachLabelled(func([]float32, int) {}), "2 logits, a sample has the class 2")
	expect.AnyError(t, expect.Err(headValue(&Batch{coder: newHeaded(rand.New(rand.NewPCG(2, 9)), 0, "class"), Images: make([]float32, 32)}, "class", 2)), "a head without logits was taken")
}
