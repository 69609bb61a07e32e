package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
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
	if err != nil {
		t.Fatal(err)
	}
	splits, err := set.Split(m.Spec.Dataset.Selection, m.Spec.Train.Seed)
	if err != nil {
		t.Fatal(err)
	}
	return splits.Validation
}

// The expected values are computed by the formulas of the terms, from the codes of the validation images.
func TestTheObjectiveIsMeasuredOnTheValidationImages(t *testing.T) {
	run := trained(t, model(t, coding), Options{}).Run
	m, err := Open(run)
	if err != nil {
		t.Fatal(err)
	}
	images := heldOut(t, m)
	coder := graph.NewCoder(m.Model, tape.Backend{})
	defer coder.Close()
	codes, err := coder.Encode(images.Float32())
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images.Float32()}, chosen)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := r.Number("loss"); !ok || math.Abs(got-last["val_loss"].(float64)) > 1e-6*got {
		t.Errorf("an evaluation says %v, the run %v", got, last["val_loss"])
	}
}

// With a large learning rate the validation loss increases again.
func TestEarlyStoppingChoosesByTheValidationLoss(t *testing.T) {
	text := coding + "hook.early_stopping = { patience = 2 }\n"
	spec := model(t, text, "optimizer.learning_rate=1.5", "train.epochs=12")
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

// A term that reads views exists only in training. The sum of the other terms is not the objective.
func TestATermOfViewsHasNoValidationLoss(t *testing.T) {
	text := strings.Replace(coding, "loss = [", "view = [{ augment = [{ kind = \"noise\" }] }]\nloss = [{ kind = \"nt_xent\", on = \"code\" }, ", 1)
	spec := model(t, text+"hook.early_stopping = { patience = 2 }\n")
	if warned := strings.Join(spec.Warnings(), "\n"); spec.SelectsOnValidation() || !strings.Contains(warned, "loss[0] (nt_xent) cannot be measured on validation images") {
		t.Errorf("selects on validation images: %v, warnings %q", spec.SelectsOnValidation(), warned)
	}
	line := lines(t, trained(t, spec, Options{}).Run)[0]
	if v, is := line["val_loss"]; !is || v != nil || line["val_loss.kl"] == nil || line["val_loss.l1"] == nil {
		t.Errorf("got %v", line)
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
	if line["val_mse"] != plain["val_mse"] {
		t.Errorf("val_mse is %v, without further metrics %v", line["val_mse"], plain["val_mse"])
	}
	m, err := Open(run)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(m.Spec.Train.Metrics, "max_approx*") {
		t.Errorf("the run declares %q", m.Spec.Train.Metrics)
	}
}
