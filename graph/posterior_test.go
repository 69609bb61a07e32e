package graph_test

import (
	"math"
	"strings"
	"testing"

	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/metrics"
)

// variational declares variational auto-encoders of 6 pixels.
const variational = `
[model.bernoulli]
encoder = [{ kind = "dense", units = 5, activation = "relu" }, { kind = "gaussian", units = 2 }]
decoder = [{ kind = "dense", activation = "sigmoid" }]
loss    = [{ kind = "bce", weight = 6 }, { kind = "gaussian_kl" }]

[model.normal]
extends = "bernoulli"
loss    = [{ kind = "mse", weight = 3 }, { kind = "gaussian_kl", weight = { kind = "linear", to = 0.5 } }]

[model.linear]
encoder = [{ kind = "gaussian", units = 1 }]
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.01 }]

[model.plain]
encoder = [{ kind = "dense", units = 2 }]

[model.absolute]
extends = "bernoulli"
loss    = [{ kind = "mae" }, { kind = "gaussian_kl" }]

[model.relative]
extends = "bernoulli"
loss    = [{ kind = "mse", relative = true }, { kind = "gaussian_kl" }]

[model.censored]
extends = "bernoulli"
loss    = [{ kind = "mse", censored = true }, { kind = "gaussian_kl" }]

[model.side]
encoder = [{ kind = "dense", units = 5 }]
head.side = { layers = [{ kind = "gaussian", units = 2 }] }
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", on = "side" }]

[model.holed]
dataset = { name = "csv", file = "none.csv", missing = "nan" }
extends = "bernoulli"

[model.skips]
extends = "bernoulli"
decoder = [{ kind = "dense", from = ["code", "images"], activation = "sigmoid" }]

[model.drawn]
extends = "bernoulli"
column.noise = { kind = "normal", shape = [2] }
decoder = [{ kind = "dense", from = ["code", "noise"], activation = "sigmoid" }]

[model.noisy]
extends = "bernoulli"
column.noise = { kind = "normal", shape = [2] }
encoder = [{ kind = "dense", from = ["images", "noise"], units = 5 }, { kind = "gaussian", units = 2 }]

[model.viewed]
extends = "noisy"
encoder = [{ kind = "dense", from = ["images", "noise"], units = 5 }]
loss    = [{ kind = "mse" }, { kind = "nt_xent", on = "code" }]
view    = [{ augment = ["flip"] }]

[model.target]
dataset = { name = "csv", file = "none.csv", columns = { images = ["a", "b", "c", "d", "e", "f"], other = ["u", "v", "w", "x", "y", "z"] } }
extends = "bernoulli"
decoder = [{ kind = "dense", units = 6, activation = "sigmoid" }]
loss    = [{ kind = "bce", weight = 6, against = "other" }, { kind = "gaussian_kl" }]
`

// bounds measures elbo and iwae with the given number of codes.
func bounds(t *testing.T, b ir.Backend, m *graph.Model, images []float32, samples int, noise float64) map[string]metrics.Value {
	t.Helper()
	c := graph.NewCoder(m, b)
	defer c.Close()
	r, err := metrics.Evaluate(t.Context(), c, metrics.Sample{Images: images}, metrics.Selection{
		{Metric: &metrics.ELBO{Samples: samples, Noise: noise, Seed: 1}}, {Metric: &metrics.IWAE{Samples: samples, Noise: noise, Seed: 1}}})
	fatal.If(t, err)
	values := map[string]metrics.Value{}
	for _, v := range r.Values {
		values[v.Name] = v
	}
	return values
}

// The bounds agree with plain loops, for both likelihoods and on both back ends.
func TestBoundsAgreeWithPlainLoops(t *testing.T) {
	const n, pixels, units, samples = 7, 6, 2, 5
	workers := team.New(1)
	defer workers.Close()
	images := noise(n * pixels)
	identity := func(v float64) float64 { return v }
	for name, variance := range map[string]float64{"bernoulli": 0, "normal": 0.5 * pixels / (2 * 3)} {
		m := model(t, variational, name, 3, 2)
		hidden := dense(t, m, "encoder.0", wide(images), relu)
		mean := dense(t, m, "encoder.1", hidden, identity)
		logVariance := make([]float64, n*units)
		w, _ := m.Parameter("encoder.1.log_variance_weight")
		bias, _ := m.Parameter("encoder.1.log_variance_bias")
		for i := range n {
			for j := range units {
				logVariance[i*units+j] = float64(bias.Data[j])
				for k := range 5 {
					logVariance[i*units+j] += hidden[i*5+k] * float64(w.Data[k*units+j])
				}
			}
		}
		var elbo, iwae float64
		for i := range n {
			r := random.Stream(1, "posterior", uint64(i))
			sum := 0.0
			for j := range units {
				m, v := mean[i*units+j], logVariance[i*units+j]
				elbo -= (math.Exp(v) + m*m - 1 - v) / 2 / n
			}
			for range samples {
				z, ratio := make([]float64, units), 0.0
				for j := range z {
					m, v, e := mean[i*units+j], logVariance[i*units+j], r.NormFloat64()
					z[j] = m + math.Exp(v/2)*e
					ratio += -z[j]*z[j]/2 - (-e*e/2 - v/2) // both without log sqrt(2 pi)
				}
				likelihood := 0.0
				for k, y := range dense(t, m, "decoder.0", z, sigmoid) {
					x := float64(images[i*pixels+k])
					if variance > 0 {
						likelihood += -(x-y)*(x-y)/(2*variance) - math.Log(2*math.Pi*variance)/2
					} else {
						likelihood += x*math.Log(y) + (1-x)*math.Log(1-y)
					}
				}
				elbo += likelihood / samples / n
				sum += math.Exp(likelihood + ratio)
			}
			iwae += math.Log(sum/samples) / n
		}
		for b, backend := range map[string]ir.Backend{"tape": tape.Backend{}, "engine": engine.Backend{Team: workers}} {
			got := bounds(t, backend, m, images, samples, 0)
			for metric, want := range map[string]float64{"elbo": elbo, "iwae": iwae} {
				if v := got[metric]; v.Missing != "" || math.Abs(v.Number-want) > 1e-5*math.Abs(want) {
					t.Errorf("%s on the %s: %s is %v, want %v", name, b, metric, v, want)
				}
			}
			if e := got["elbo"].Number - got["elbo_likelihood"].Number + got["elbo_divergence"].Number; math.Abs(e) > 1e-9 {
				t.Errorf("%s: the parts of the bound differ from it by %g", name, e)
			}
		}
	}
}

// A linear model with the exact posterior: the likelihood is known, and every bound with weights equals it.
func TestBoundsOfALinearModelAreItsLikelihood(t *testing.T) {
	const n, pixels, noiseOf = 5, 6, 0.7
	images := noise(n * pixels)
	m := model(t, variational, "linear", 3, 2)
	get := func(path string) []float32 {
		p, err := m.Parameter(path)
		fatal.If(t, err)
		return p.Data
	}
	w, bias := get("decoder.0.weight"), get("decoder.0.bias")
	square, offset := 0.0, 0.0
	for k, v := range w {
		square += float64(v) * float64(v)
		offset += float64(v) * float64(bias[k])
	}
	const variance = noiseOf * noiseOf
	for k, v := range w {
		get("encoder.0.weight")[k], get("encoder.0.log_variance_weight")[k] = float32(float64(v)/(square+variance)), 0
	}
	get("encoder.0.bias")[0], get("encoder.0.log_variance_bias")[0] = float32(-offset/(square+variance)), float32(math.Log(variance/(square+variance)))
	want := 0.0 // log N(x; b, w w' + s² I), by the lemmas of Sherman and Morrison
	for i := range n {
		norm, along := 0.0, 0.0
		for k, v := range w {
			d := float64(images[i*pixels+k]) - float64(bias[k])
			norm, along = norm+d*d, along+d*float64(v)
		}
		want -= (pixels*math.Log(2*math.Pi) + (pixels-1)*math.Log(variance) + math.Log(square+variance) + (norm-along*along/(square+variance))/variance) / 2 / n
	}
	for _, samples := range []int{1, 4} {
		expect.Near(t, bounds(t, tape.Backend{}, m, images, samples, noiseOf)["iwae"].Number, want, 1e-4, samples, "codes")
	}
	got := bounds(t, tape.Backend{}, m, images, 4000, noiseOf)["elbo"].Number
	if math.Abs(got-want) > 0.02 { // an expectation over codes
		t.Errorf("elbo: got %v, want about %v", got, want)
	}
}

// Models without a distribution of codes, without a likelihood, or with columns that are not given have no bounds, and say why.
func TestBoundsOfOtherModelsAreNotApplicable(t *testing.T) {
	for name, want := range map[string]string{"plain": "not variational", "absolute": "bce and mse do", "relative": "a relative or censored error", "censored": "a relative or censored error",
		"side": "not variational", "holed": "missing or hidden entries", "skips": `reads the column "images"`, "drawn": `"noise" is not given`, "noisy": `"noise" is not given`, "target": `"other" is not given`} {
		expect.Contains(t, bounds(t, tape.Backend{}, model(t, variational, name, 3, 2), noise(12), 1, 0)["iwae"].Missing, want, name)
	}
}

// A column with missing entries, of a data set whose images have none, gives no bound: its NaN would be counted.
func TestBoundsAgainstAColumnWithMissingEntriesAreNotApplicable(t *testing.T) {
	m := model(t, variational, "target", 3, 2)
	other := []data.Column{{Name: "other", Shape: []int{6}, Type: data.Float32, Missing: true}}
	m, err := graph.New(m.Spec.For([]int{3, 2}, other), []int{3, 2})
	fatal.If(t, err)
	expect.Contains(t, bounds(t, tape.Backend{}, m, noise(12), 1, 0)["elbo"].Missing, `"other" has missing entries`)
}

// A model with views whose codes read a column has no alignment, and the reason is the column.
func TestAlignmentOfCodesThatReadAColumnNamesTheColumn(t *testing.T) {
	c := graph.NewCoder(model(t, variational, "viewed", 3, 2), tape.Backend{})
	defer c.Close()
	chosen, err := metrics.Select("alignment")
	fatal.If(t, err)
	r, err := metrics.Evaluate(t.Context(), c, metrics.Sample{Images: noise(12), Columns: map[string][]float32{"noise": make([]float32, 4)}}, chosen)
	fatal.If(t, err)
	if v := r.Values[0]; v.Name != "alignment" || !strings.Contains(v.Missing, `the column "noise"`) {
		t.Errorf("got %v, want a reason that names the column", v)
	}
}

// The divergence of every variational layer is the mean of -log p(z) + log q(z) over drawn codes, and its codes have the
// distribution of the layer's output in training.
func TestVariationalLayersDescribeTheirDistribution(t *testing.T) {
	for _, e := range layers.Registry.All() {
		l, ok := e.New().(layers.Variational)
		if !ok {
			continue
		}
		l.(layers.Sized).SetOutputUnits(2)
		values := map[string][]float32{}
		for i, v := range l.Publishes([]int{3}) {
			values[v.Name] = []float32{0.3 - float32(i), 0.9 - float32(i)}
		}
		r, z, draws := random.Stream(1, "test", 0), make([]float32, 2), 40_000
		sum, squares := 0.0, 0.0
		for range draws {
			ratio := l.DrawFrom(z, values, r)
			sum, squares = sum-ratio, squares+ratio*ratio
		}
		mean := sum / float64(draws)
		deviation := math.Sqrt((squares/float64(draws) - mean*mean) / float64(draws))
		expect.Near(t, mean, l.Divergence(values), 5*deviation+1e-9, e.Name, "the mean of log q - log p", deviation)
	}
}
