package graph_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/losses"
	"tessera/ops"
)

// viewed reads views, a head and images.
const viewed = `
[model.viewed]
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
view = [{ augment = [] }]
head.h.layers = [{ kind = "dense", units = 3 }]
loss = [{ kind = "mse" }, { kind = "nt_xent", on = "h" }]
`

// termOf is a term of a test.
type termOf struct {
	reads losses.Reads
	on    string
	build func(v losses.Values) (*gorgonia.Node, error)
}

func (t termOf) On() string                                    { return t.on }
func (t termOf) Reads() losses.Reads                           { return t.reads }
func (t termOf) Build(v losses.Values) (*gorgonia.Node, error) { return t.build(v) }

// alone builds the program of a training step of two images whose one term is l.
func alone(t *testing.T, l losses.Loss) (*graph.Program, error) {
	t.Helper()
	m := model(t, viewed, "viewed", 4, 4)
	m.Spec.Losses = m.Spec.Losses[:1]
	m.Spec.Losses[0].Loss, m.Spec.Losses[0].On = l, l.On()
	return m.Program(graph.Request{Batch: 2, Want: []string{graph.Loss}})
}

func inputs(p *graph.Program) (names []string) {
	for _, in := range p.Inputs {
		names = append(names, fmt.Sprint(in.Name, in.Shape))
	}
	return names
}

// mean is the mean of nodes of any shapes.
func mean(of ...func() (*gorgonia.Node, error)) (sum *gorgonia.Node, err error) {
	var c ops.Chain
	for _, f := range of {
		if m := c.Mean(c.Do("read", f)); sum == nil {
			sum = m
		} else {
			sum = c.Add(sum, m)
		}
	}
	return sum, c.Err()
}

// A term may compare values of the views with the images, which need not be encoded.
func TestATermReadsViewsAndImages(t *testing.T) {
	p, err := alone(t, termOf{losses.Reads{Per: losses.Batch, On: true, Views: true, Images: true}, "output",
		func(v losses.Values) (*gorgonia.Node, error) { return mean(v.On, v.Images) }})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(inputs(p)), "[input[2 4 4] views[4 4 4]]"; got != want {
		t.Errorf("the inputs are %v, want %v", got, want)
	}
}

// The Jacobian of a value of the views is taken with respect to the views: the penalty of both views is the mean of the
// penalties of each.
func TestTheJacobianOfAValueOfViewsIsWithRespectToTheViews(t *testing.T) {
	contractive := &losses.Contractive{Probes: 1}
	value := func(views bool, images []float32) float64 {
		p, err := alone(t, termOf{losses.Reads{On: true, Jacobian: true, Views: views}, "code", contractive.Build})
		if err != nil {
			t.Fatal(err)
		}
		r, err := tape.Backend{}.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Bind(0, images); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for i, tap := range p.Taps {
			if tap.Name == graph.Loss {
				return float64(r.Tap(i)[0])
			}
		}
		t.Fatal("no loss")
		return 0
	}
	images := make([]float32, 4*16)
	for i := range images {
		images[i] = float32(i%7) / 7
	}
	want := (value(false, images[:32]) + value(false, images[32:])) / 2
	if got := value(true, images); math.Abs(got-want) > 1e-6*want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	m := model(t, viewed, "viewed", 4, 4)
	for want, r := range map[string]graph.Request{
		"batch: got 0":                            {},
		"of: got -3, want >= 2":                   {Batch: 2, Of: -3, Want: []string{graph.Loss}},
		"of: got 1, want >= 2":                    {Batch: 2, Of: 1, Want: []string{graph.Loss}},
		"want: got both \"loss\" and":             {Batch: 2, Want: []string{graph.Loss, graph.InputGradient}},
		"has no value \"first\"":                  {Batch: 2, Want: []string{"second", "third", "first"}},
		"given: the model has no value \"first\"": {Batch: 2, Given: []string{"first"}, Want: []string{"output"}},
	} {
		if _, err := m.Program(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", r, err, want)
		}
	}
}

// A coder has no views and no labels: it refuses values that only training programs compute.
func TestACoderRefusesUnknownValues(t *testing.T) {
	c := graph.NewCoder(model(t, viewed, "viewed", 4, 4), tape.Backend{})
	for _, name := range []string{graph.Loss, graph.InputGradient, "nothing", ""} {
		_, err := c.Value(name, make([]float32, 32))
		if want := fmt.Sprintf(`got value %q, want one of ["code" "output" "h"]`, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}
