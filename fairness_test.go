package tessera_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// The loss separation equals plain loops over the samples, from their columns.
func TestSeparationEqualsPlainLoops(t *testing.T) {
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = { name = "credit", count = 300, test = 0, validation = 0 }
encoder = [{ kind = "dense", units = 8, activation = "relu" }]
decoder = []
head    = { class = { layers = [{ kind = "dense", units = 2 }] } }
loss    = [{ kind = "separation", on = "class" }]
train   = { epochs = 1, batch = 300 }
`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sample, err := r.Sample(t.Context(), data.TrainSplit)
	if err != nil {
		t.Fatal(err)
	}
	chosen, _ := metrics.Select("loss")
	measured, err := r.EvaluateSample(t.Context(), sample, chosen)
	if err != nil {
		t.Fatal(err)
	}
	z, err := r.Value("class", sample.Images.Float32())
	if err != nil {
		t.Fatal(err)
	}
	labels, groups := sample.Images.Labels(), sample.Images.Classes("group")
	want := 0.0
	for class := range 2 {
		var n, ms, mg, cov, vs, vg float64
		p := func(i int) float64 { return 1 / (1 + math.Exp(float64(z[2*i])-float64(z[2*i+1]))) }
		for i, label := range labels {
			if label == class {
				n, ms, mg = n+1, ms+p(i), mg+float64(groups[i])
			}
		}
		for i, label := range labels {
			if label == class {
				s, g := p(i)-ms/n, float64(groups[i])-mg/n
				cov, vs, vg = cov+s*g/n, vs+s*s/n, vg+g*g/n
			}
		}
		want += n / 300 * cov * cov / (vs*vg + 1e-4) // of both units of the softmax
	}
	if got, ok := measured.Number("loss"); !ok || math.Abs(got-want) > 1e-5*want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// More weight of independence leaves less of the gap of the selection rate, at the cost of accuracy.
func TestIndependenceTracesAFront(t *testing.T) {
	var gaps, accuracies []float64
	for _, weight := range []string{"0.01", "0.1", "0.5"} {
		m := creditModel(t, `, { kind = "independence", weight = `+weight+` }`)
		r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run")})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.Evaluate(t.Context(), metrics.Selection{{Metric: &metrics.Fairness{Group: "group", Positive: 1, Resamples: 1, Least: 30}}})
		if err != nil {
			t.Fatal(err)
		}
		gap, _ := got.Number("selection_rate_gap")
		accuracy, _ := got.Number("decision_accuracy")
		gaps, accuracies = append(gaps, gap), append(accuracies, accuracy)
	}
	t.Log(gaps, accuracies)
	for i := range 2 {
		if !(gaps[i+1] < gaps[i] && accuracies[i+1] < accuracies[i]) {
			t.Errorf("gaps %v, accuracies %v: want both to fall", gaps, accuracies)
		}
	}
	if gaps[0] < 0.25 || gaps[2] > 0.1 {
		t.Errorf("gaps %v", gaps)
	}
}

func TestGroupsOfALossAreChecked(t *testing.T) {
	for want, term := range map[string]string{
		`there is no column or value "sex"`:                          `{ kind = "independence", against = "sex" }`,
		`"code" is a value, but independence compares with a column`: `{ kind = "independence", against = "code" }`,
	} {
		f, err := config.Load("models.toml", []byte("[model.m]\ndataset = \"credit\"\nencoder = [{ kind = \"dense\", units = 2 }]\ndecoder = []\n"+
			"head = { class = { layers = [{ kind = \"dense\", units = 2 }] } }\nloss = ["+term+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Model("m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// After decorrelate no value is correlated with the group, on the fitted samples exactly, and the best linear predictor of the group (least squares
// on its indicator) explains nothing, also of other samples; without it the group is found from the rest: unawareness fails. A resumed and an opened run have the same map.
func TestDecorrelateLeavesNothingForALinearPredictor(t *testing.T) {
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = { name = "credit", count = 20000, test = 20000, validation = 0 }
encoder = [{ kind = "decorrelate" }, { kind = "dense", units = 4, activation = "relu" }]
decoder = []
head    = { class = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "cross_entropy", on = "class" }]
train   = { epochs = 1, batch = 100 }
`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, split := range []data.Split{data.TrainSplit, data.TestSplit} {
		sample, err := r.Sample(t.Context(), split, "group")
		if err != nil {
			t.Fatal(err)
		}
		groups, x := sample.Images.Classes("group"), sample.Images.Float32()
		y, err := r.Value("encoder.0", x)
		if err != nil {
			t.Fatal(err)
		}
		before, explainedBefore := correlations(x, groups)
		after, explained := correlations(y, groups)
		t.Logf("%s: largest |correlation| %.4g, then %.4g; R² %.4g, then %.4g", split, before, after, explainedBefore, explained)
		if before < 0.5 || explainedBefore < 0.5 {
			t.Errorf("the group is not in the values: %v, %v", before, explainedBefore)
		}
		if split == data.TrainSplit && !(after < 1e-5 && explained < 1e-8) || split == data.TestSplit && !(after < 0.05 && explained < 0.005) {
			t.Errorf("%s: |correlation| %v, R² %v", split, after, explained)
		}
	}
	opened, err := tessera.Open(r.Path, tessera.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	one := []float32{1, 2, 3, 4, 5, 6}
	a, _ := r.Value("encoder.0", one)
	b, err := opened.Value("encoder.0", one)
	if err != nil || a[0] != b[0] || a[3] != b[3] {
		t.Errorf("%v: opened it gives %v, want %v", err, b, a)
	}
}

// correlations are the largest |correlation| of a value with the group, and the share of the variance of the group that the values explain linearly: R²
// of least squares, by Gaussian elimination of the normal equations.
func correlations(x []float32, groups []int) (largest, explained float64) {
	n := len(groups)
	p := len(x) / n
	mean, g := make([]float64, p), 0.0
	for i, group := range groups {
		g += float64(group) / float64(n)
		for j := range p {
			mean[j] += float64(x[i*p+j]) / float64(n)
		}
	}
	s, c, variance := make([][]float64, p), make([]float64, p), 0.0
	for j := range p {
		s[j] = make([]float64, p)
	}
	for i, group := range groups {
		d := float64(group) - g
		variance += d * d
		for j := range p {
			v := float64(x[i*p+j]) - mean[j]
			c[j] += v * d
			for k := range p {
				s[j][k] += v * (float64(x[i*p+k]) - mean[k])
			}
		}
	}
	for j := range p {
		largest = math.Max(largest, math.Abs(c[j])/math.Sqrt(s[j][j]*variance))
	}
	// Elimination with a ridge: the map has removed one direction, so that s is singular.
	w, right := make([]float64, p), append([]float64{}, c...)
	ridge := 0.0
	for j := range p {
		ridge += 1e-6 * s[j][j] / float64(p)
	}
	for j := range p {
		s[j][j] += ridge
	}
	for j := range p {
		for k := j + 1; k < p; k++ {
			f := s[k][j] / s[j][j]
			for l := j; l < p; l++ {
				s[k][l] -= f * s[j][l]
			}
			right[k] -= f * right[j]
		}
	}
	for j := p - 1; j >= 0; j-- {
		w[j] = right[j]
		for k := j + 1; k < p; k++ {
			w[j] -= s[j][k] * w[k]
		}
		w[j] /= s[j][j]
		explained += w[j] * c[j] / variance
	}
	return largest, explained
}

func TestDecorrelateIsCheckedAndNeedsTwoGroups(t *testing.T) {
	text := "[model.m]\ndataset = { name = \"credit\", count = 100, SHARE }\nencoder = ENCODER\ndecoder = []\n" +
		"head = { class = { layers = [{ kind = \"dense\" }] } }\nloss = [{ kind = \"cross_entropy\", on = \"class\" }]\n"
	model := func(share, encoder string) (*config.Model, error) {
		f, err := config.Load("models.toml", []byte(strings.NewReplacer("SHARE", share, "ENCODER", encoder).Replace(text)))
		if err != nil {
			return nil, err
		}
		return f.Model("m")
	}
	for want, encoder := range map[string]string{
		"it must be the first layer of the encoder": `[{ kind = "dense", units = 3 }, { kind = "decorrelate" }]`,
		`there is no column or value "sex"`:         `[{ kind = "decorrelate", column = "sex" }, { kind = "dense", units = 3 }]`,
	} {
		if _, err := model("share = 0.5", encoder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	m, err := model("share = 0.0", `[{ kind = "decorrelate" }, { kind = "dense", units = 3 }]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tessera.Train(t.Context(), m, tessera.Options{Out: filepath.Join(t.TempDir(), "run")}); err == nil || !strings.Contains(err.Error(), "has 1 groups among the training samples") {
		t.Errorf("got %v", err)
	}
}
