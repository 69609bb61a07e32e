package train

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Adam moves a bias by about the learning rate in a step: with a rate of 2 the first step turns off every unit of positive
// weights, and the warning comes at the end of the first epoch, once.
func TestUnitsThatAreAllDeadAreReportedAtTheirEpoch(t *testing.T) {
	const text = `[model.m]
dataset    = { name = "bars", count = 60 }
encoder    = [{ kind = "dense", units = 6, activation = "relu" }]
decoder    = [{ kind = "dense", bias = false }]
loss       = [{ kind = "mse" }, { kind = "l1", weight = 1.0 }]
constraint = [{ kind = "nonneg" }, { kind = "unit_norm" }]
optimizer  = { learning_rate = 2.0 }
train      = { epochs = 4, batch = 20 }
`
	var warnings []string
	var at []int
	epoch := 0
	_, err := Run(context.Background(), model(t, text), Options{Backend: tape.Backend{}, Out: place(t),
		Report: func(p Progress) { epoch = p.Epoch },
		Warn:   func(text string) { warnings, at = append(warnings, text), append(at, epoch) }})
	fatal.If(t, err)
	if len(warnings) != 1 || at[0] > 1 {
		t.Fatalf("got %q in the epochs %d, want one warning at the first epoch", warnings, at)
	}
	for _, want := range []string{"epoch 1: all 6 units are dead", "lower optimizer.learning_rate: it is 2, and the default of adam is 0.001"} {
		expect.Contains(t, warnings[0], want)
	}
}

func TestFindingsOfMeasuredValues(t *testing.T) {
	const auto = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 6, activation = \"relu\" }]\n"
	const vae = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"gaussian\", units = 6 }]\ndecoder = [{ kind = \"dense\", activation = \"sigmoid\" }]\n" +
		"loss = [{ kind = \"bce\" }, { kind = \"gaussian_kl\" }]\n"
	const nmf = "[model.m]\nkind = \"nmf\"\ndataset = \"bars\"\ncomponents = 6\n"
	const transcoder = "[model.m]\ndataset = { name = \"csv\", file = \"x.csv\", columns = { target = [\"a\", \"b\"] } }\nencoder = [{ kind = \"dense\", units = 6, activation = \"relu\" }]\n" +
		"decoder = [{ kind = \"dense\", units = 2 }]\nloss = [{ kind = \"mse\", against = \"target\" }]\n"
	for name, c := range map[string]struct {
		model  string
		values map[string]float64
		equal  bool
		want   []string // parts of the findings; none if empty
	}{
		"healthy":             {auto, map[string]float64{"useful_units": 6, "dead_units": 0, "explained_variance": 0.9}, false, nil},
		"structured error":    {auto, map[string]float64{"useful_units": 6, "explained_variance": 0.9, "error_component": 0.3}, false, []string{"30 % of the error lies along one direction", "--restarts 4"}},
		"little error":        {auto, map[string]float64{"useful_units": 6, "explained_variance": 0.99, "error_component": 0.3}, false, nil},
		"error of noise":      {auto, map[string]float64{"useful_units": 6, "explained_variance": 0.5, "error_component": 0.1}, false, nil},
		"dead":                {auto, map[string]float64{"useful_units": 0, "dead_units": 6, "explained_variance": -0.8}, false, []string{"all 6 units are dead", "leaky_relu"}},
		"a single sign":       {auto, map[string]float64{"useful_units": 6, "dead_units": 6, "explained_variance": 0.9}, false, nil},
		"noise":               {nmf, map[string]float64{"useful_units": 6, "explained_variance": 0.07}, false, []string{"keep 7 % of the variance", "raise iterations"}},
		"worse than the mean": {auto, map[string]float64{"useful_units": 6, "explained_variance": -0.2}, false, []string{"worse than the mean", "raise train.epochs"}},
		"a large rate":        {auto + "optimizer.learning_rate = 5.0\n", map[string]float64{"useful_units": 6, "explained_variance": -0.2}, false, []string{"worse than the mean", "lower optimizer.learning_rate: it is 5"}},
		"no copy":             {transcoder, map[string]float64{"useful_units": 6, "explained_variance": -0.2}, false, nil},
		"equal images":        {auto, map[string]float64{"useful_units": 0, "dead_units": 3}, true, []string{"are equal", "check the files"}},
		"collapsed":           {vae, map[string]float64{"elbo_divergence": 0.0147, "explained_variance": 0.5}, false, []string{"collapsed to the prior", "0.015 nats", "write weight = 64 in loss[0] (bce)"}},
		"dead, leaky":         {strings.Replace(auto, `"relu"`, `"leaky_relu"`, 1), map[string]float64{"useful_units": 0, "dead_units": 6}, false, []string{"train again with another seed"}},
		"collapsed, by a schedule": {strings.NewReplacer(`{ kind = "bce" }`, `{ kind = "bce", weight = 64.0 }`, `"gaussian_kl" }`, `"gaussian_kl", weight = { kind = "linear", from = 0.0, to = 1.0, epochs = 10 } }`).Replace(vae),
			map[string]float64{"elbo_divergence": 0.0147, "explained_variance": 0.5}, false, []string{"what helps: let the weight of the divergence rise more slowly"}},
		"no learning rate": {auto + "optimizer.kind = \"lbfgs\"\n", map[string]float64{"useful_units": 2, "dead_units": 0, "explained_variance": 0.5}, false, []string{"what helps: raise train.epochs, or lower the units"}},
		"columns of large values": {strings.Replace(transcoder, `"target"`, `"images"`, 1), map[string]float64{"useful_units": 2, "dead_units": 0, "explained_variance": -0.1, "mse": 5000}, false,
			[]string{`what helps: write scale = "standardise" in the dataset table: the values of the samples are large`}},
		"scaled columns": {strings.NewReplacer(`"target" }`, `"images" }`, `{ name = "csv", `, `{ name = "csv", scale = "standardise", `).Replace(transcoder), map[string]float64{"useful_units": 2, "dead_units": 0, "explained_variance": -0.1, "mse": 5000}, false,
			[]string{"what helps: raise train.epochs: the reconstructions are still worse than the mean"}},
		"informative": {vae, map[string]float64{"elbo_divergence": 12, "explained_variance": 0.5}, false, nil},
	} {
		r := &evaluation.Report{Result: &metrics.Result{Images: 60}}
		for key, v := range c.values {
			r.Values.Set(key, v)
		}
		if c.equal {
			r.Values = append(r.Values, metrics.Value{Name: "explained_variance", Missing: metrics.AllEqual})
		}
		shape := []int{8, 8}
		if strings.Contains(c.model, "csv") {
			shape = []int{2}
		}
		texts := lists.Map(Findings(model(t, c.model), "no folder", shape, 6, r), func(f Finding) string { return f.String() })
		all := strings.Join(texts, "\n")
		if (len(texts) == 0) != (len(c.want) == 0) || len(texts) > 1 {
			t.Errorf("%s: got %q, want %q", name, texts, c.want)
		}
		for _, want := range c.want {
			expect.Contains(t, all, want, name)
		}
	}
}

func TestAPhaseAfterTheKeptEpochIsFound(t *testing.T) {
	const text = "[model.m]\nencoder = [{ kind = \"dense\", units = 3 }]\nhook.prune = { fraction = 0.5, from = 40 }\n"
	stopping := model(t, text+"hook.early_stopping = { patience = 5 }\n")
	expect.Slice(t, Unreached(stopping, 41), nil, "in the phase")
	expect.Contains(t, fmt.Sprint(Unreached(stopping, 40)), "early stopping keeps epoch 40, but the phase of hook.prune begins after epoch 40", "before the phase")
	expect.Slice(t, Unreached(model(t, text), 40), nil, "without early stopping")
}
