package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// coding declares a model without decoder and labels, whose terms allow a validation loss.
const coding = `
[model.m]
dataset = { name = "bars", count = 120, validation = 0.25 }
encoder = [{ kind = "gaussian_noise" }, { kind = "dense", units = 6, activation = "sigmoid" }]
decoder = []
loss = [{ kind = "kl", target = 0.2, weight = 0.5 }, { kind = "l1", weight = 0.01 }]
optimizer = { kind = "adam", learning_rate = 0.05 }
train = { epochs = 6, batch = 30, checkpoint_seconds = 0 }
`

// heldOut returns the validation images of a model.
func heldOut(t *testing.T, m *Trained) *data.Images {
	t.Helper()
	set, err := m.Spec.Dataset.Source.Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	splits, err := set.Split(m.Spec.Dataset.Selection, m.Spec.Train.Seed)
	fatal.If(t, err)
	return splits.Validation
}

// The expected values are computed by the formulas of the terms, from the codes of the validation images.
func TestTheObjectiveIsMeasuredOnTheValidationImages(t *testing.T) {
	run := trained(t, model(t, coding), Options{}).Run
	m, err := Open(run)
	fatal.If(t, err)
	images := heldOut(t, m)
	coder := graph.NewCoder(m.Model, tape.Backend{})
	defer coder.Close()
	codes, err := coder.Encode(images.Float32())
	fatal.If(t, err)
	n, kl, l1 := float64(images.Len()), 0.0, 0.0
	for j := range 6 {
		sum := 0.0
		for i := j; i < len(codes); i += 6 {
			sum += float64(codes[i])
		}
		q, p := sum/n, 0.2
		kl += p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q))
		l1 += sum / n
	}
	last := lines(t, run)[5]
	for key, want := range map[string]float64{"val_loss.kl": 0.5 * kl, "val_loss.l1": 0.01 * l1, "val_loss": 0.5*kl + 0.01*l1} {
		if got, ok := last[key].(float64); !ok || math.Abs(got-want) > 1e-5*want {
			t.Errorf("%s is %v, want %v", key, last[key], want)
		}
	}
	chosen, err := metrics.Select("loss")
	fatal.If(t, err)
	r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images.Float32()}, chosen)
	fatal.If(t, err)
	if got, ok := r.Number("loss"); !ok || math.Abs(got-last["val_loss"].(float64)) > 1e-6*got {
		t.Errorf("an evaluation says %v, the run %v", got, last["val_loss"])
	}
}

// With a large learning rate the validation loss increases again.
func TestEarlyStoppingChoosesByTheValidationLoss(t *testing.T) {
	text := coding + "hook.early_stopping = { patience = 2 }\n"
	spec := model(t, text, "optimizer.learning_rate=0.9", "train.epochs=12")
	if !spec.SelectsOnValidation() || len(spec.Warnings()) > 0 {
		t.Fatalf("selects on validation images: %v, warnings %q", spec.SelectsOnValidation(), spec.Warnings())
	}
	r := trained(t, spec, Options{})
	best := 0
	all := lines(t, r.Run)
	for e, line := range all {
		if line["val_loss"].(float64) < all[best]["val_loss"].(float64) {
			best = e
		}
	}
	if r.BestEpoch != best+1 || r.BestError != all[best]["val_loss"] || r.Epochs > best+3 {
		t.Errorf("kept epoch %d with %v after %d epochs, want epoch %d with %v", r.BestEpoch, r.BestError, r.Epochs, best+1, all[best]["val_loss"])
	}
}

// Terms that compare samples, read views or a teacher are measured on fixed batches of the validation images. The oracle computes
// nt_xent of one batch in plain loops; its views are the images themselves, up to noise of 1e-9.
func TestTermsOfABatchHaveAValidationLoss(t *testing.T) {
	text := strings.Replace(coding, "loss = [", "view = [{ augment = [{ kind = \"noise\", std = 1e-9 }] }]\nloss = [{ kind = \"nt_xent\", on = \"code\" }, ", 1)
	spec := model(t, text, "train.epochs=2", "train.batch=30")
	r := trained(t, spec, Options{})
	line := lines(t, r.Run)[1]
	total := line["val_loss.nt_xent"].(float64) + line["val_loss.kl"].(float64) + line["val_loss.l1"].(float64)
	expect.Near(t, line["val_loss"].(float64), total, 1e-9, "val_loss")
	m, err := Open(r.Run)
	fatal.If(t, err)
	coder := graph.NewCoder(m.Model, tape.Backend{})
	defer coder.Close()
	images := heldOut(t, m)
	codes, err := coder.Encode(images.Float32())
	fatal.If(t, err)
	if n := images.Len(); n != 30 {
		t.Fatalf("%d validation images, want one batch of 30", n)
	}
	expect.Near(t, line["val_loss.nt_xent"].(float64), ntXent(slices.Concat(codes, codes), len(codes)/30, 0.5), 1e-4, "nt_xent of the validation images")
}

// ntXent computes the term for the rows z, of which i and i + n/2 are views of one image.
func ntXent(z []float32, units int, temperature float64) (mean float64) {
	n := len(z) / units
	cosine := func(i, j int) float64 {
		ij, ii, jj := 0.0, 0.0, 0.0
		for k := range units {
			a, b := float64(z[i*units+k]), float64(z[j*units+k])
			ij, ii, jj = ij+a*b, ii+a*a, jj+b*b
		}
		return ij / math.Sqrt(ii*jj)
	}
	for i := range n {
		others := 0.0
		for k := range n {
			if k != i {
				others += math.Exp(cosine(i, k) / temperature)
			}
		}
		mean -= math.Log(math.Exp(cosine(i, (i+n/2)%n)/temperature)/others) / float64(n)
	}
	return mean
}

// A teacher lends its parameters to the validation batches, and a hook that substitutes averages does not take them away.
func TestTermsOfATeacherHaveAValidationLoss(t *testing.T) {
	text := strings.Replace(coding, "loss = [", "view = [{ augment = [{ kind = \"noise\" }] }]\nhead.projection.layers = [{ kind = \"dense\", units = 4 }]\n"+
		"head.prediction = { from = \"projection\", layers = [{ kind = \"dense\", units = 4 }] }\nhook.teacher.decay = 0.9\nloss = [{ kind = \"byol\" }, ", 1)
	for _, more := range []string{"", "hook.average.decay=0.9"} {
		sets := []string{"train.epochs=2", "train.batch=20"}
		if more != "" {
			sets = append(sets, more)
		}
		line := lines(t, trained(t, model(t, text, sets...), Options{}).Run)[1]
		if v, ok := line["val_loss.byol"].(float64); !ok || v <= 0 || v > 4 {
			t.Errorf("%q: got %v", more, line)
		}
	}
}

// If val_mse exists, the objective and further metrics are measured only on request.
func TestDeclaredMetricsAreMeasuredBetweenEpochs(t *testing.T) {
	const text = `
[model.m]
dataset = { name = "bars", count = 120, validation = 0.25 }
encoder = [{ kind = "dense", units = 6, activation = "sigmoid" }]
loss = [{ kind = "mse", weight = 2.0 }, { kind = "l1", weight = 0.01 }]
train = { epochs = 2, batch = 30 }
`
	plain := lines(t, trained(t, model(t, text), Options{}).Run)[1]
	run := trained(t, model(t, text, `train.metrics=["loss", "hoyer_atoms", "max_approx*", "mse"]`), Options{}).Run
	line := lines(t, run)[1]
	for _, key := range []string{"val_loss", "val_loss.mse", "val_hoyer_atoms", "val_max_approx"} {
		if _, is := plain[key]; is {
			t.Errorf("nobody asked for %s", key)
		}
		if _, ok := line[key].(float64); !ok {
			t.Errorf("%s is %v", key, line[key])
		}
	}
	if got, want := line["val_loss.mse"].(float64), 2*line["val_mse"].(float64); math.Abs(got-want) > 1e-6*want {
		t.Errorf("the term is %v, twice val_mse is %v", got, want)
	}
	expect.Equal(t, line["val_mse"], plain["val_mse"], "val_mse is", line["val_mse"], "without further metrics")
	m, err := Open(run)
	fatal.If(t, err)
	if !slices.Contains(m.Spec.Train.Metrics, "max_approx*") {
		t.Errorf("the run declares %q", m.Spec.Train.Metrics)
	}
}

// A glob selects the metrics that a model has: here the decoder reads more than the code, so that none of its atoms alone is measured.
func TestAGlobOfMetricsMeasuresEachOnce(t *testing.T) {
	const text = `
[model.m]
dataset = { name = "bars", count = 40, validation = 0.25 }
encoder = [{ kind = "dense", units = 6, activation = "sigmoid" }, { kind = "dense", units = 3 }]
decoder = [{ kind = "dense", from = ["code", "encoder.0"] }]
train = { epochs = 1, batch = 30, metrics = ["*", "loss"] }
`
	var names []string
	trained(t, model(t, text), Options{Report: func(p Progress) {
		for _, v := range p.Measured {
			names = append(names, v.Name)
		}
	}})
	slices.Sort(names)
	if once := slices.Compact(slices.Clone(names)); len(once) < len(names) || !slices.Contains(names, ObjectiveKey) {
		t.Errorf("measured are %q", names)
	}
}

// firstLayer is the mean of a value that it reads by name.
type firstLayer struct{}

func (firstLayer) Describe() metrics.Description {
	return metrics.Description{Measures: []metrics.Measure{{Name: "first_layer", Better: metrics.Neither}}, Reads: metrics.ReadsImages, Values: []string{"encoder.1"}, OnRequest: true}
}

func (firstLayer) Start(*metrics.Subject) (metrics.Meter, error) { return &firstLayerMeter{}, nil }

type firstLayerMeter struct {
	sum float64
	n   int
}

func (m *firstLayerMeter) Add(b *metrics.Batch) error {
	values, err := b.Value("encoder.1")
	for _, v := range values {
		m.sum, m.n = m.sum+float64(v), m.n+1
	}
	return err
}

func (m *firstLayerMeter) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{metrics.Number(m.sum / float64(m.n))}, nil
}

func init() {
	metrics.Registry.Register("first_layer", "mean of a value", func() metrics.Metric { return firstLayer{} })
}

// A metric that reads a value by name is measured between epochs as in an evaluation. A model without the value is refused.
func TestMetricsOfNamedValuesAreMeasuredBetweenEpochs(t *testing.T) {
	spec := model(t, coding, `train.metrics=["first_layer"]`, "train.epochs=1")
	run := trained(t, spec, Options{}).Run
	m, err := Open(run)
	fatal.If(t, err)
	coder := graph.NewCoder(m.Model, tape.Backend{})
	defer coder.Close()
	chosen, err := metrics.Select("first_layer")
	fatal.If(t, err)
	r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: heldOut(t, m).Float32()}, chosen)
	fatal.If(t, err)
	want, _ := r.Number("first_layer")
	if got, ok := lines(t, run)[0]["val_first_layer"].(float64); !ok || math.Abs(got-want) > 1e-6 {
		t.Errorf("between epochs %v, in an evaluation %v", lines(t, run)[0]["val_first_layer"], want)
	}
	short := strings.Replace(coding, `{ kind = "gaussian_noise" }, `, "", 1)
	f, err := config.Load("models.toml", []byte(strings.Replace(short, "train = {", `train = { metrics = ["first_layer"],`, 1)))
	fatal.If(t, err)
	expect.Error(t, f.Check(), `metrics[0]: there is no column or value "encoder.1"`)
}
