package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// patients writes a table of n lines: the values a, b and c, a target of two values with one mask each, a weight, and a group.
// It returns the path.
func patients(t testing.TB, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	text := "a,b,c,age,dose,seen1,seen2,w,sex\n"
	for i := range n {
		text += fmt.Sprintf("%.4f,%.4f,%.4f,%.4f,%.4f,%d,%d,%.3f,%s\n", r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64(),
			r.IntN(2), r.IntN(2), r.Float64(), []string{"f", "m"}[i%2])
	}
	path := filepath.Join(t.TempDir(), "patients.csv")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// regression returns a model of the table of patients. One head has a target, a mask of entries and a weight of samples; the
// other head has groups as classes.
func regression(t testing.TB, n int, sets ...string) *config.Model {
	return model(t, strings.ReplaceAll(`
[model.regression]
dataset = { name = "csv", images = "FILE", validation = 0, columns = { weight = "w", target = ["age", "dose"], mask = ["seen?"], group = "sex" } }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
decoder = []
head.y.layers = [{ kind = "dense" }]
head.sex.layers = [{ kind = "dense" }]
loss = [
  { kind = "mse", on = "y", against = "target", mask = "mask", sample_weight = "weight" },
  { kind = "cross_entropy", on = "sex", against = "group", sample_weight = "weight" },
]
freeze = ["encoder.*"]
optimizer = { kind = "sgd", learning_rate = 0.1 }
train = { epochs = 3, batch = 64, checkpoint_seconds = 0 }
`, "FILE", patients(t, n)), sets...)
}

// columns returns the values of a column for all samples.
func columns(t testing.TB, m *config.Model, name string) []float32 {
	t.Helper()
	set, err := Options{}.load(t.Context(), &m.Dataset)
	fatal.If(t, err)
	c, ok := set.Train.Column(name)
	if !ok {
		t.Fatalf("no column %q", name)
	}
	all := make([]float32, set.Train.Len()*c.Size())
	indices := lists.Range(0, set.Train.Len())
	set.Train.Gather(all, name, indices)
	return all
}

// looped trains the heads of regression by loops in float64, with the full batch in every step, starting from the parameters
// of start.
func looped(t testing.TB, m *config.Model, start *graph.Model, steps int) (y, class [][]float64, loss float64) {
	images, target, mask := columns(t, m, "images"), columns(t, m, "target"), columns(t, m, "mask")
	weight, group := columns(t, m, "weight"), columns(t, m, "group")
	n := len(weight)
	values := func(path string) []float32 {
		p, err := start.Parameter(path)
		fatal.If(t, err)
		return p.Data
	}
	head := func(name string) [][]float64 { // one row of 2 per input, the bias last
		w := make([][]float64, 5)
		for i, v := range append(append([]float32{}, values(name+".0.weight")...), values(name+".0.bias")...) {
			w[i/2] = append(w[i/2], float64(v))
		}
		return w
	}
	y, class = head("head.y"), head("head.sex")
	we, be := values("encoder.0.weight"), values("encoder.0.bias")
	code := make([][5]float64, n)
	for i := range n {
		for k := range 4 {
			sum := float64(be[k])
			for j := range 3 {
				sum += float64(images[3*i+j]) * float64(we[4*j+k])
			}
			code[i][k] = math.Tanh(sum)
		}
		code[i][4] = 1
	}
	for range steps {
		var gy, gc [5][2]float64
		counted, weights := 0.0, 0.0
		for i := range n {
			counted += float64(weight[i]) * float64(mask[2*i]+mask[2*i+1])
			weights += float64(weight[i])
		}
		loss = 0
		for i := range n {
			var z [2]float64
			for u := range 2 {
				out := 0.0
				for k := range 5 {
					out += code[i][k] * y[k][u]
					z[u] += code[i][k] * class[k][u]
				}
				d, w := out-float64(target[2*i+u]), float64(weight[i]*mask[2*i+u])/counted
				loss += w * d * d
				for k := range 5 {
					gy[k][u] += 2 * w * d * code[i][k]
				}
			}
			norm := math.Log(math.Exp(z[0]) + math.Exp(z[1]))
			w := float64(weight[i]) / weights
			loss += w * (norm - z[int(group[i])])
			for u := range 2 {
				g := math.Exp(z[u] - norm)
				if u == int(group[i]) {
					g--
				}
				for k := range 5 {
					gc[k][u] += w * g * code[i][k]
				}
			}
		}
		for k := range 5 {
			for u := range 2 {
				y[k][u] -= 0.1 * gy[k][u]
				class[k][u] -= 0.1 * gc[k][u]
			}
		}
	}
	return y, class, loss
}

func TestARegressionHeadWithMaskAndWeightsEqualsPlainLoops(t *testing.T) {
	m := regression(t, 20)
	start, err := graph.New(m, []int{3})
	fatal.If(t, err)
	y, class, loss := looped(t, m, start, 3)
	for name, backend := range map[string]ir.Backend{"tape": tape.Backend{}, "engine": engine.Backend{}} {
		r := trained(t, m, Options{Backend: backend})
		for head, want := range map[string][][]float64{"head.y": y, "head.sex": class} {
			w, _ := r.Trained.Parameter(head + ".0.weight")
			b, _ := r.Trained.Parameter(head + ".0.bias")
			for i, got := range append(append([]float32{}, w.Data...), b.Data...) {
				expect.Near(t, float64(got), want[i/2][i%2], 2e-6, name, head, "value", i)
			}
		}
		expect.Near(t, lines(t, r.Run)[2]["loss"].(float64), loss, 2e-6, name, "the loss of the third step")
	}
}

// sameColumn reports whether all fields of two columns are equal. No shape and an empty one are both one number.
func sameColumn(a, b data.Column) bool {
	same := slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Names, b.Names) && slices.Equal(a.In, b.In) && slices.Equal(a.Between, b.Between)
	a.Shape, a.Names, a.In, a.Between, b.Shape, b.Names, b.In, b.Between = nil, nil, nil, nil, nil, nil, nil, nil
	return same && reflect.DeepEqual(a, b)
}

func TestARunOpensWithTheColumnsOfItsTraining(t *testing.T) {
	m := regression(t, 20)
	r := trained(t, m, Options{})
	fatal.If(t, os.Remove(m.Dataset.Source.(*data.Files).File))
	opened, err := Open(r.Run)
	fatal.If(t, err)
	c, ok := opened.Layout.Column("group")
	if want := (data.Column{Name: "group", Type: data.Whole, Names: []string{"f", "m"}}); !ok || !sameColumn(c, want) || opened.Layout.Size("y") != 2 {
		t.Errorf("the column group is %+v, the head y has %d values", c, opened.Layout.Size("y"))
	}
}

// A mask of whole numbers is 0 or 1. A mask of floats is a weight in [0,1].
func TestValuesOfColumnsThatATermCannotTakeAreRefused(t *testing.T) {
	text, err := os.ReadFile(patients(t, 20))
	fatal.If(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	const seen, weight = 5, 7 // places in a line
	for _, c := range []struct {
		place       int
		value, want string
	}{
		{seen, "1", ""}, {seen, "0.5", ""}, {weight, "0", ""}, {weight, "2.5", ""},
		{seen, "2", `line 2, column "mask", value 0: got 2, but loss[0] (mse) reads the column as mask and wants 0 or 1`},
		{seen, "-1", `line 2, column "mask", value 0: got -1, but loss[0] (mse) reads the column as mask and wants 0 or 1`},
		{seen, "1.5", `line 2, column "mask", value 0: got 1.5, but loss[0] (mse) reads the column as mask and wants a number in [0,1]`},
		{seen, "-0.5", `line 2, column "mask", value 0: got -0.5, but loss[0] (mse) reads the column as mask and wants a number in [0,1]`},
		{weight, "-0.5", `line 2, column "weight": got -0.5, but loss[0] (mse) reads the column as sample_weight and wants a number >= 0`},
	} {
		fields := strings.Split(lines[1], ",")
		fields[c.place] = c.value
		path := filepath.Join(t.TempDir(), "patients.csv")
		fatal.If(t, os.WriteFile(path, []byte(lines[0]+strings.Join(fields, ",")+strings.Join(lines[2:], "")), 0o600))
		_, err := Run(t.Context(), regression(t, 20, "dataset.images="+path), Options{Backend: tape.Backend{}, Out: place(t)})
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.value, err, c.want)
		}
	}
	for set, want := range map[string]string{
		"loss.0.mask=target":        "", // floats in [0,1]
		"head.sex.layers.0.units=1": `the column "group" has 2 classes`,
	} {
		m, err := regression(t, 20).With(parsedSets(t, set)...)
		if err == nil {
			_, err = Run(t.Context(), m, Options{Backend: tape.Backend{}, Out: place(t)})
		} else if want == "" {
			t.Fatal(err)
		}
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", set, err, want)
		}
	}
}

// A head that reads a column gets its values: with the target as its input, the head learns the identity.
func TestAHeadReadsAColumn(t *testing.T) {
	m := regression(t, 20, "head.y.from=[\"code\",\"target\"]", "optimizer.kind=adam", "optimizer.learning_rate=0.05", "train.epochs=400", "loss.1.weight=0", "loss.0.weight=3")
	r := trained(t, m, Options{Backend: engine.Backend{}})
	w, err := r.Trained.Parameter("head.y.0.weight")
	if err != nil || fmt.Sprint(w.Shape) != "[6 2]" {
		t.Fatal(err, w.Shape)
	}
	all := lines(t, r.Run)
	if first, last := all[0]["loss"].(float64), all[len(all)-1]["loss"].(float64); last > first/1000 {
		t.Errorf("the loss falls from %v to %v only", first, last)
	}
}

// A sample may have several labels: binary cross entropy compares a head with a column of two whole numbers.
func TestAHeadLearnsSeveralLabels(t *testing.T) {
	m := model(t, strings.ReplaceAll(`
[model.tags]
dataset = { name = "csv", images = "FILE", validation = 0.25, columns = { tags = ["seen1", "seen2"], unread = ["age", "dose", "w", "sex"] } }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder = []
head.tags_of.layers = [{ kind = "dense", activation = "sigmoid" }]
loss = [{ kind = "bce", on = "tags_of", against = "tags" }]
optimizer = { kind = "adam", learning_rate = 0.05 }
train = { epochs = 500, batch = 32, checkpoint_seconds = 60 }
`, "FILE", patients(t, 16)), "dataset.columns.unread=[\"age\", \"dose\"]", "dataset.columns.w=w", "dataset.columns.sex=sex")
	r := trained(t, m, Options{Backend: engine.Backend{}})
	all := lines(t, r.Run)
	if last := all[len(all)-1]["loss"].(float64); last > 0.1 {
		t.Errorf("the loss is %v after %d epochs: the labels are not learnt", last, len(all))
	}
	if _, ok := all[0]["val_loss"]; !ok {
		t.Errorf("the labels of the held-out samples are not measured: %v", all[0])
	}
	set, err := Options{}.load(t.Context(), &m.Dataset)
	if want := []data.Column{{Name: "tags", Shape: []int{2}, Type: data.Whole, In: []string{"seen1", "seen2"}}}; err != nil || !slices.EqualFunc(set.Columns(), want, sameColumn) {
		t.Errorf("the columns %+v are loaded, want tags alone (%v)", set.Columns(), err)
	}
}

// Groups -1 and 1 are one group and samples of an unknown group: a term that compares groups would always be 0.
func TestATermOfGroupsNeedsTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.csv")
	fatal.If(t, os.WriteFile(path, []byte("a,b,label,sex\n1,2,no,-1\n2,1,yes,1\n3,3,no,1\n1,1,yes,-1\n"), 0o600))
	m := model(t, fmt.Sprintf(`[model.m]
dataset = { file = %q, labels = "label", columns = { group = "sex" }, validation = 0 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
head.class.layers = [{ kind = "dense" }]
loss = [{ kind = "cross_entropy", on = "class" }, { kind = "independence" }]
train = { epochs = 1 }
`, filepath.ToSlash(path)))
	_, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})
	expect.Error(t, err, `the column "group" has fewer than two groups, but loss[1] (independence) compares groups`)
}
