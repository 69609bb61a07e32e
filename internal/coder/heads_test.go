package coder_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/vectors"
	"tessera/metrics"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// overtrained trains a classifier on noisy labels until it is overconfident.
func overtrained(t *testing.T) (*tessera.Run, *data.Memory) {
	t.Helper()
	return classifier(t, 60, "class")
}

// classifier trains heads on noisy labels.
func classifier(t *testing.T, epochs int, heads ...string) (*tessera.Run, *data.Memory) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	samples := func(n int) (x []float32, labels []int) {
		for range n {
			class := r.IntN(3)
			for j := range 8 {
				v := 0.9 * r.NormFloat64()
				if j == class {
					v++
				}
				x = append(x, float32(v))
			}
			labels = append(labels, class)
		}
		return x, labels
	}
	x, labels := samples(1200)
	images, err := data.FromFloats(x, []int{8}, labels)
	fatal.If(t, err)
	x, labels = samples(2000)
	if images, err = images.WithTest(x, labels); err != nil {
		t.Fatal(err)
	}
	text, losses := fmt.Sprintf(`
[model.m]
dataset   = { name = "memory", validation = 0.6 }
encoder   = [{ kind = "dense", units = 40, activation = "relu" }]
decoder   = []
optimizer = { kind = "adam", learning_rate = 0.02 }
train     = { epochs = %d, batch = 48 }
`, epochs), ""
	for _, head := range heads {
		text += fmt.Sprintf("head.%s = { layers = [{ kind = \"dense\", units = 3 }] }\n", head)
		losses += fmt.Sprintf("{ kind = \"cross_entropy\", on = %q },", head)
	}
	f, err := config.Load("models.toml", []byte(text+"loss = ["+losses+"]\n"))
	fatal.If(t, err)
	f.Extend(nil)
	m, err := f.Model("m")
	fatal.If(t, err)
	m.Dataset.Source = images
	run, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run"), Images: images})
	fatal.If(t, err)
	t.Cleanup(func() { run.Close() })
	return run, images
}

// Temperature scaling halves the calibration error of an overconfident classifier on test images, and does not change its
// predictions. Every method that computes the head is calibrated, also after the run is opened again.
func TestCalibrationOfAnOvertrainedClassifier(t *testing.T) {
	run, images := overtrained(t)
	raw, labels, err := refit.Logits(t.Context(), run, data.TestSplit, "")
	fatal.If(t, err)
	for _, method := range []string{posthoc.Isotonic, posthoc.Platt, posthoc.Temperature} {
		done, err := refit.Calibrate(t.Context(), run, "", method)
		fatal.If(t, err)
		test := done.On[1]
		before, _ := test.Before.Number("ece")
		after, _ := test.After.Number("ece")
		t.Logf("%s: ece %.4f, then %.4f", done.Calibration, before, after)
		if before < 0.1 || after > before/2 || test.Split != data.TestSplit || test.Fitted || !done.On[0].Fitted {
			t.Errorf("%s: ece %v before, %v after", method, before, after)
		}
		for _, name := range []string{"nll", "brier"} {
			a, _ := test.Before.Number(name)
			if b, _ := test.After.Number(name); !(b < a) {
				t.Errorf("%s: %s %v before, %v after", method, name, a, b)
			}
		}
		if a, b := test.Before[0], test.After[0]; method == posthoc.Temperature && a != b {
			t.Errorf("accuracy %v before, %v after", a, b)
		}
	}
	c := run.Calibration("class")
	want := slices.Clone(raw)
	c.Apply(want, 3)
	opened, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images})
	fatal.If(t, err)
	defer opened.Close()
	for name, r := range map[string]*tessera.Run{"calibrated": run, "opened": opened} {
		got, _, err := refit.Logits(t.Context(), r, data.TestSplit, "class")
		if err != nil || !slices.Equal(got, want) || r.PostHoc() != "class: "+c.String() {
			t.Errorf("%s: %v; other logits, or %q", name, err, r.PostHoc())
		}
		p, err := r.Predict("", testRows(t, r))
		if err != nil || math.Abs(float64(p.Probability(0))-probability(want[:3])) > 1e-5 {
			t.Errorf("%s: %v, probability %v, want %v", name, err, p.Probability(0), probability(want[:3]))
		}
		e, err := r.Encoder(tessera.EncoderOptions{Value: "class", Sizes: []int{64}, Workers: 1})
		fatal.If(t, err)
		z, err := e.Encode(t.Context(), nil, testRows(t, r)[:8])
		if err != nil || math.Abs(float64(z[0]-want[0])) > 1e-5 {
			t.Errorf("%s: an encoder gives %v, %v, want %v", name, z, err, want[:3])
		}
		e.Close()
		measured, err := r.Evaluate(t.Context(), nil)
		if err != nil || measured.PostHoc != r.PostHoc() {
			t.Errorf("%s: eval says %q, %v", name, measured.PostHoc, err)
		}
	}
	rawRun, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images, Raw: true})
	fatal.If(t, err)
	defer rawRun.Close()
	if got, _, err := refit.Logits(t.Context(), rawRun, data.TestSplit, ""); err != nil || !slices.Equal(got, raw) {
		t.Errorf("raw: %v, or other logits than before", err)
	}
	expect.Equal(t, len(labels), 2000, "labels")
	if err := refit.Remove(run); err != nil || run.PostHoc() != "" {
		t.Errorf("%v, %q", err, run.PostHoc())
	}
	if got, _, err := refit.Logits(t.Context(), run, data.TestSplit, ""); err != nil || !slices.Equal(got, raw) {
		t.Errorf("removed: %v, or other logits than before", err)
	}
}

// watched is a context that calls a function whenever it is asked for its error.
type watched struct {
	context.Context
	look func()
}

func (w watched) Err() error {
	w.look()
	return w.Context.Err()
}

// While a head is calibrated again, its former calibration counts: nobody sees the head without one.
func TestACalibrationIsReplacedAtOnce(t *testing.T) {
	run, _ := classifier(t, 2, "class")
	fatal.If(t, expect.Err(refit.Calibrate(t.Context(), run, "", posthoc.Temperature)))
	former, looks := run.PostHoc(), 0
	ctx := watched{t.Context(), func() {
		if looks++; run.PostHoc() != former {
			t.Errorf("look %d: the run has %q, want %q", looks, run.PostHoc(), former)
		}
	}}
	if _, err := refit.Calibrate(ctx, run, "", posthoc.Platt); err != nil || looks == 0 {
		t.Fatalf("%v after %d looks", err, looks)
	}
	if _, err := refit.Calibrate(t.Context(), run, "", "no such method"); err == nil || !strings.Contains(run.PostHoc(), posthoc.Platt) {
		t.Errorf("after an error (%v) the run has %q", err, run.PostHoc())
	}
}

// Several goroutines may read what is fitted to the heads while it changes. The race detector watches.
func TestWhatIsFittedIsReadWhileItChanges(t *testing.T) {
	run, _ := classifier(t, 2, "class")
	done := make(chan error)
	go func() {
		_, err := refit.Calibrate(t.Context(), run, "", posthoc.Temperature)
		done <- errors.Join(err, refit.Remove(run))
	}()
	for {
		select {
		case err := <-done:
			expect.NoError(t, err)
			return
		default:
			run.Centred()
			if c := run.Calibration("class"); c != nil && run.Thresholds("class") != nil {
				t.Error("there are thresholds")
			}
			if _, err := run.Predict("", make([]float32, 8)); err != nil || len(run.PostHoc()) > 100 {
				t.Error(err)
			}
		}
	}
}

// Two programs, of which one trained the run and one opened it, calibrate different heads in any order: both calibrations remain.
func TestNoCalibrationOfAnotherHeadIsLost(t *testing.T) {
	for name, trainedFirst := range map[string]bool{"trained, opened": true, "opened, trained": false} {
		t.Run(name, func(t *testing.T) {
			run, images := classifier(t, 2, "first", "second")
			opened := func() *tessera.Run {
				other, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images})
				fatal.If(t, err)
				t.Cleanup(func() { other.Close() })
				return other
			}
			inOrder := []*tessera.Run{run, opened()}
			if !trainedFirst {
				slices.Reverse(inOrder)
			}
			for i, head := range []string{"first", "second"} {
				fatal.If(t, expect.Err(refit.Calibrate(t.Context(), inOrder[i], head, posthoc.Temperature)))
			}
			for _, r := range []*tessera.Run{inOrder[1], opened()} {
				if r.Calibration("first") == nil || r.Calibration("second") == nil {
					t.Errorf("the calibrations are %q", r.PostHoc())
				}
			}
		})
	}
}

// Where a logit is not finite there is no class, on any path.
func TestALogitThatIsNotFiniteHasNoClass(t *testing.T) {
	run, _ := overtrained(t)
	large := slices.Repeat([]float32{math.MaxFloat32}, 8)
	if _, err := run.Predict("", large); !errors.Is(err, vectors.ErrNoClass) || !strings.Contains(err.Error(), "sample 0") {
		t.Errorf("Predict: got %v", err)
	}
	if _, err := run.PredictionOf("class", []float32{1, 2, 3, 1, float32(math.NaN()), 0}, 2); !errors.Is(err, vectors.ErrNoClass) || !strings.Contains(err.Error(), "sample 1") {
		t.Errorf("PredictionOf: got %v", err)
	}
	labels := slices.Repeat([]int{0}, 4)
	given, err := data.FromFloats(slices.Repeat(large, 4), []int{8}, labels)
	fatal.If(t, err)
	answers := &tessera.Answers{Run: run.Path, Labels: "class", Of: &data.Inner{Name: "memory", Source: given}}
	expect.Is(t, expect.Err(answers.Load(t.Context(), nil, data.Both)), vectors.ErrNoClass, "labels of a run")
}

// A calibration is valid only for the parameters to which it was fitted. A changed bit of its file is detected.
func TestACalibrationOfOtherParametersIsRefused(t *testing.T) {
	run, images := overtrained(t)
	fatal.If(t, expect.Err(refit.Calibrate(t.Context(), run, "", posthoc.Temperature)))
	path := filepath.Join(run.Path, "posthoc.json")
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	refused := func(want string) {
		t.Helper()
		_, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images})
		if bad, ok := errors.AsType[*checkpoint.Error](err); !ok || bad.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	fatal.If(t, os.WriteFile(path, []byte(strings.Replace(string(text), `"samples": 7`, `"samples": 8`, 1)), 0o666))
	refused("its checksum is wrong")
	fatal.If(t, os.WriteFile(path, text, 0o666))
	longer, err := tessera.Resume(t.Context(), run.Path, tessera.Options{Threads: 1, Images: images, Epochs: 61})
	fatal.If(t, err)
	longer.Close()
	refused("was fitted to other parameters")
}

// testRows returns the test samples of a run.
func testRows(t *testing.T, r *tessera.Run) []float32 {
	t.Helper()
	images, err := r.Images(t.Context())
	fatal.If(t, err)
	return images.Float32()
}

// probability returns the largest probability of logits.
func probability(logits []float32) float64 {
	p := make([]float64, len(logits))
	vectors.Softmax(p, logits)
	return slices.Max(p)
}

// creditRun trains a small classifier of the data set credit; more continues the list of its loss terms.
func creditRun(t *testing.T, more string) *tessera.Run {
	t.Helper()
	return declared(t, `
dataset   = { name = "credit", count = 40000, test = 30000, validation = 0.5 }
encoder   = [{ kind = "dense", units = 8, activation = "relu" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }`+more+`]
optimizer = { kind = "adam", learning_rate = 0.01 }
train     = { epochs = 2, batch = 100 }
`, filepath.Join(t.TempDir(), "run"))
}

// Thresholds fitted to validation samples reduce the gaps of separation on test samples to less than 0.02. Predictions and
// metrics use the thresholds, also after the run is opened again. Equal samples have equal decisions.
func TestThresholdsSeparateOnHeldOutSamples(t *testing.T) {
	r := creditRun(t, "")
	done, err := refit.Thresholds(t.Context(), r, refit.ThresholdOptions{Positive: 1, Seed: 1})
	fatal.If(t, err)
	test := done.On[1]
	for _, name := range []string{"false_positive_rate_gap", "false_negative_rate_gap"} {
		before, _ := test.Before.Number(name)
		after, ok := test.After.Number(name)
		t.Logf("%s: %.4f, then %.4f", name, before, after)
		if !(before > 0.1 && after < 0.02 && ok) || test.Split != data.TestSplit {
			t.Errorf("%s: %v before, %v after", name, before, after)
		}
	}
	expect.Equal(t, r.PostHoc(), "class: thresholds for separation by group")
	opened, err := tessera.Open(r.Path, tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer opened.Close()
	sample, err := r.Sample(t.Context(), data.TestSplit, "group")
	fatal.If(t, err)
	sample.Images = sample.Images.First(2000)
	rows, groups := sample.Images.Float32(), sample.Images.All()["group"]
	first, err := r.PredictFrom("", map[string][]float32{"images": rows, "group": groups})
	fatal.If(t, err)
	second, err := opened.PredictFrom("", map[string][]float32{"images": rows, "group": groups})
	if err != nil || !slices.Equal(first.Labels, second.Labels) {
		t.Errorf("%v, or other decisions", err)
	}
	measured, err := opened.EvaluateSample(t.Context(), sample, metrics.Selection{{Metric: &metrics.Fairness{Group: "group", Positive: "1", Resamples: 5, Least: 1}}})
	fatal.If(t, err)
	right, most := 0, 0
	for i, label := range sample.Images.Labels() {
		if first.Labels[i] == label {
			right++
		}
		if first.Probabilities[2*i+1] > first.Probabilities[2*i] == (first.Labels[i] == 1) {
			most++
		}
	}
	if got, _ := measured.Number("decision_accuracy"); math.Abs(got-float64(right)/2000) > 1e-9 || most == 2000 {
		t.Errorf("decision_accuracy %v, want %v; %d decisions are those of the probabilities", got, float64(right)/2000, most)
	}
	for want, columns := range map[string]map[string][]float32{
		`decide by the column "group" (got 0 values of it, want 2000)`: {"images": rows},
		`sample 0: its group, of the column "group", is unknown`:       {"images": rows, "group": slices.Repeat([]float32{-1}, 2000)},
		`sample 0: the group 5 of the column "group" has no threshold`: {"images": rows, "group": slices.Repeat([]float32{5}, 2000)},
	} {
		expect.Error(t, expect.Err(r.PredictFrom("", columns)), want)
	}
	if _, err := refit.Calibrate(t.Context(), opened, "", posthoc.Isotonic); err != nil || opened.Thresholds("class") != nil {
		t.Errorf("%v, or the thresholds are those of other probabilities", err)
	}
	expect.Error(t, expect.Err(refit.Thresholds(t.Context(), opened, refit.ThresholdOptions{Positive: 1})), "isotonic calibration")
	if err := refit.RemoveThresholds(opened); err != nil || opened.PostHoc() != "class: isotonic" {
		t.Errorf("%v, %q", err, opened.PostHoc())
	}
}

// The loss separation equals the result of plain loops over the samples.
func TestSeparationEqualsPlainLoops(t *testing.T) {
	r := declared(t, `
dataset = { name = "credit", count = 300, test = 0, validation = 0 }
encoder = [{ kind = "dense", units = 8, activation = "relu" }]
decoder = []
head    = { class = { layers = [{ kind = "dense", units = 2 }] } }
loss    = [{ kind = "separation", on = "class" }]
train   = { epochs = 1, batch = 300 }
`, filepath.Join(t.TempDir(), "run"))
	sample, err := r.Sample(t.Context(), data.TrainSplit)
	fatal.If(t, err)
	chosen, _ := metrics.Select("loss")
	measured, err := r.EvaluateSample(t.Context(), sample, chosen)
	fatal.If(t, err)
	z, err := r.Value("class", sample.Images.Float32())
	fatal.If(t, err)
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

// A larger weight of independence reduces the gap of the selection rate, and reduces the accuracy.
func TestIndependenceTracesAFront(t *testing.T) {
	var gaps, accuracies []float64
	for _, weight := range []string{"0.01", "0.1", "0.5"} {
		r := creditRun(t, `, { kind = "independence", weight = `+weight+` }`)
		got, err := r.Evaluate(t.Context(), metrics.Selection{{Metric: &metrics.Fairness{Group: "group", Positive: "1", Resamples: 1, Least: 30}}})
		fatal.If(t, err)
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
		fatal.If(t, err)
		expect.Error(t, expect.Err(f.Model("m")), want)
	}
}

// After decorrelate, the correlation of every value with the group is 0 up to rounding on the fitted samples. The best linear
// predictor of the group (least squares on its indicator) explains no variance, also on other samples. Without decorrelate the
// other values predict the group, although the model does not read it. A resumed and an opened run have the same map.
func TestDecorrelateLeavesNothingForALinearPredictor(t *testing.T) {
	r := declared(t, `
dataset = { name = "credit", count = 20000, test = 20000, validation = 0 }
encoder = [{ kind = "decorrelate" }, { kind = "dense", units = 4, activation = "relu" }]
decoder = []
head    = { class = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "cross_entropy", on = "class" }]
train   = { epochs = 1, batch = 100 }
`, filepath.Join(t.TempDir(), "run"))
	for _, split := range []data.Split{data.TrainSplit, data.TestSplit} {
		sample, err := r.Sample(t.Context(), split, "group")
		fatal.If(t, err)
		groups, x := sample.Images.Classes("group"), sample.Images.Float32()
		y, err := r.Value("encoder.0", x)
		fatal.If(t, err)
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
	fatal.If(t, err)
	defer opened.Close()
	one := []float32{1, 2, 3, 4, 5, 6}
	a, _ := r.Value("encoder.0", one)
	b, err := opened.Value("encoder.0", one)
	if err != nil || a[0] != b[0] || a[3] != b[3] {
		t.Errorf("%v: opened it gives %v, want %v", err, b, a)
	}
}

// correlations returns the largest |correlation| of a value with the group, and the share of the variance of the group that
// the values explain linearly: R² of least squares, by Gaussian elimination of the normal equations.
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
	train := func(share, encoder string) error {
		r, err := trainedIn(t, "dataset = { name = \"credit\", count = 100, "+share+" }\nencoder = "+encoder+"\ndecoder = []\n"+
			"head = { class = { layers = [{ kind = \"dense\" }] } }\nloss = [{ kind = \"cross_entropy\", on = \"class\" }]\n", filepath.Join(t.TempDir(), "run"))
		r.Close()
		return err
	}
	for want, c := range map[string][2]string{
		"must be the encoder's first layer":       {"share = 0.5", `[{ kind = "dense", units = 3 }, { kind = "decorrelate" }]`},
		`there is no column or value "sex"`:       {"share = 0.5", `[{ kind = "decorrelate", column = "sex" }, { kind = "dense", units = 3 }]`},
		"has 1 groups among the training samples": {"share = 0.0", `[{ kind = "decorrelate" }, { kind = "dense", units = 3 }]`},
	} {
		expect.Error(t, train(c[0], c[1]), want)
	}
}

// Test samples without labels are no reason against a calibration: the comparison is of the held-out samples alone.
func TestACalibrationNeedsNoLabelsOfTheTestSamples(t *testing.T) {
	folder := t.TempDir()
	images, labels := make([]float32, 120*2), make([]float32, 120)
	for i := range labels {
		labels[i] = float32(i % 2)
		images[2*i], images[2*i+1] = labels[i]+0.1*float32(i%11), 0.3*float32(i%7)
	}
	path := func(name string) string { return filepath.ToSlash(filepath.Join(folder, name)) }
	var text strings.Builder
	text.WriteString("a,b,label\n")
	for i := range labels {
		fmt.Fprintf(&text, "%g,%g,%g\n", images[2*i], images[2*i+1], labels[i])
	}
	fatal.If(t, errors.Join(os.WriteFile(path("x.csv"), []byte(text.String()), 0o600), os.WriteFile(path("test.csv"), []byte("a,b\n0.1,0.2\n1.1,0.3\n"), 0o600)))
	run, err := trainedIn(t, fmt.Sprintf(`dataset = { name = "csv", file = %q, test_images = %q, validation = 0.4 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
loss    = [{ kind = "cross_entropy", on = "class" }]
train   = { epochs = 2, batch = 16 }
head.class.layers = [{ kind = "dense" }]
`, path("x.csv"), path("test.csv")), filepath.Join(folder, "run"))
	fatal.If(t, err)
	defer run.Close()
	done, err := refit.Calibrate(t.Context(), run, "", "temperature")
	fatal.If(t, err)
	if len(done.On) != 1 || done.On[0].Split != data.ValidationSplit {
		t.Errorf("compared on %+v, want the held-out samples alone", done.On)
	}
}

// separation ignores samples of an unknown class, with a negative label, but no class beyond those that it is told of.
func TestSeparationWantsLabelsOfItsClasses(t *testing.T) {
	table := filepath.Join(t.TempDir(), "x.csv")
	var text strings.Builder
	text.WriteString("a,b,label,group\n")
	for i := range 40 {
		fmt.Fprintf(&text, "%d,%d,%d,%d\n", i%5, i%7, i%3, i%2)
	}
	fatal.If(t, os.WriteFile(table, []byte(text.String()), 0o600))
	for classes, want := range map[int]string{2: "wants a label less than 2, the number of classes (classes)", 3: ""} {
		f, err := config.Load("models.toml", fmt.Appendf(nil, "[model.m]\ndataset = { name = \"csv\", file = %q, columns = { group = \"group\" } }\nencoder = [{ kind = \"dense\", units = 2 }]\n"+
			"decoder = []\ntrain = { epochs = 1 }\nhead = { class = { layers = [{ kind = \"dense\", units = 3 }] } }\n"+
			"loss = [{ kind = \"cross_entropy\", on = \"class\" }, { kind = \"separation\", on = \"class\", classes = %d }]\n", filepath.ToSlash(table), classes))
		fatal.If(t, err)
		m, err := f.Model("m")
		fatal.If(t, err)
		run, err := tessera.Train(t.Context(), m, tessera.Options{Out: t.TempDir(), Threads: 1})
		if want == "" && err == nil {
			run.Close()
		} else if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%d classes: got %v, want %q", classes, err, want)
		}
	}
}

// usualAttack is an attack with the settings that are usual in tests.
var usualAttack = attack.Trial{Attack: &attack.PGD{Steps: 10}, Ball: attack.Ball{Norm: attack.LInf, Epsilon: 0.05}}
