package evaluation_test

import (
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/apps/show/figures"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/train/evaluation"
	"tessera/laws"
	"tessera/losses"
	"tessera/metrics"
)

// What terms and kinds of models declare as their measures is measured.
func TestDeclaredMeasuresAreMetrics(t *testing.T) {
	declared := map[string][]string{}
	for _, e := range losses.Registry.All() {
		declared[e.Name] = losses.MeasuresOf(e.New())
	}
	for _, e := range classical.Registry.All() {
		declared[e.Name] = e.New().Describe().Measures
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		for _, measure := range declared[name] {
			if m, ok := metrics.MeasureOf(measure); !ok || m.Name != measure {
				t.Errorf("%s is judged by %q, which is not a measure of any metric", name, measure)
			}
		}
	}
	if len(declared["gmm"]) == 0 || len(declared["nt_xent"]) == 0 {
		t.Errorf("got %v", declared)
	}
}

// worstPixel is a user-defined metric: this file contains all of its code.
type worstPixel struct{}

func init() {
	metrics.Registry.Register("worst_pixel", "largest error of any pixel", func() metrics.Metric { return worstPixel{} })
}

func (worstPixel) Describe() metrics.Description {
	return metrics.Description{
		Measures: []metrics.Measure{{Name: "worst_pixel", Better: metrics.Lower, Doc: "largest error of any pixel of any image"}},
		Reads:    metrics.ReadsImages | metrics.ReadsOutputs, ScaleFree: true,
	}
}

func (worstPixel) Start(*metrics.Subject) (metrics.Meter, error) { return &worstMeter{}, nil }

type worstMeter struct{ worst float64 }

func (m *worstMeter) Add(b *metrics.Batch) error {
	for i, x := range b.Images {
		m.worst = max(m.worst, math.Abs(float64(x)-float64(b.Outputs[i])))
	}
	return nil
}

func (m *worstMeter) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{metrics.Number(m.worst)}, nil
}

func TestAMetricOfOnesOwnObeysTheLaws(t *testing.T) {
	laws.Check(t, laws.Metric, func() metrics.Metric { return worstPixel{} })
}

const declared = `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", target = 0.25 }]
train = { epochs = 1, seed = 5 }

[sweep.s]
model = "small"
seeds = [1, 2]
`

func models(t *testing.T) *config.File {
	t.Helper()
	f, err := config.Load("models.toml", []byte(declared))
	fatal.If(t, err)
	return f
}

// A sweep finds the metric in the registry. Its results, their tables and the points of figures contain the metric.
func TestAMetricOfOnesOwnIsSweptAndReported(t *testing.T) {
	declared, err := models(t).Sweep("s")
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "s")
	s, err := sweep.New(context.Background(), declared, sweep.Options{Out: out})
	fatal.If(t, err)
	results, err := s.Run(context.Background())
	fatal.If(t, err)
	f, err := os.Open(filepath.Join(out, sweep.TableFile))
	fatal.If(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	fatal.If(t, err)
	column, mean := slices.Index(rows[0], "worst_pixel"), 0.0
	if column < slices.Index(rows[0], "kl") || len(rows) != 3 {
		t.Fatalf("columns %q, %d rows", rows[0], len(rows))
	}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[column], 64)
		if err != nil || !(v > 0) {
			t.Errorf("worst_pixel %q", row[column])
		}
		mean += v / 2
	}
	point := figures.Point{Label: "small", Values: results.Settings[0].Mean}
	if v, ok := point.Values.Number("worst_pixel"); !ok || v != mean {
		t.Errorf("the mean is %v, want %v", v, mean)
	}
	if m, ok := metrics.MeasureOf("worst_pixel"); !ok || m.Better != metrics.Lower {
		t.Errorf("got %+v", m)
	}
}

// mirror is a coder whose output is the input and whose code is the first pixel.
type mirror struct{ shape []int }

func (m mirror) Shape() []int                                    { return m.shape }
func (m mirror) Units() int                                      { return m.shape[0] * m.shape[1] }
func (m mirror) Encode(images []float32) ([]float32, error)      { return slices.Clone(images), nil }
func (m mirror) Decode(codes []float32) ([]float32, error)       { return slices.Clone(codes), nil }
func (m mirror) Atoms() *metrics.Atoms                           { return nil }
func (m mirror) WithAtoms(*metrics.Atoms) (metrics.Coder, error) { return nil, metrics.ErrNoAtoms }

// The target of the metric kl and the names are those of the model. The error for images without labels names the data set.
func TestAnEvaluationKnowsItsModel(t *testing.T) {
	m, err := models(t).Model("small")
	fatal.If(t, err)
	set, err := m.Dataset.Source.Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	sample, err := evaluation.Take(set, m, set.Shape, data.TestSplit)
	fatal.If(t, err)
	coder := mirror{set.Shape}
	rows := sample.Images.Float32()
	got, err := evaluation.Measure(context.Background(), m, coder, sample, nil)
	fatal.If(t, err)
	own, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: rows}, metrics.Selection{{Metric: &metrics.KL{Target: 0.25}}})
	fatal.If(t, err)
	kl, _ := got.Number("kl")
	if want, ok := own.Number("kl"); !ok || kl != want || got.Model != "small" || got.Dataset != "bars" || got.Split != "all" || got.Images != 60 {
		t.Errorf("got %+v, want kl %v", got, want)
	}
	if mse, ok := got.Number("mse"); !ok || mse != 0 {
		t.Errorf("mse %v", mse)
	}
	_, err = evaluation.Measure(context.Background(), m, coder, sample, metrics.Selection{{Metric: &metrics.SVM{}}})
	var lacking *data.Error
	if !errors.As(err, &lacking) || lacking.Dataset != "bars" || !strings.Contains(err.Error(), "no labels, but svm_accuracy needs them") {
		t.Errorf("without labels: %v", err)
	}
	if _, err := evaluation.Take(set, m, []int{3, 3}, data.TestSplit); !errors.As(err, &lacking) || !strings.Contains(err.Error(), "want [3 3]") {
		t.Errorf("of another shape: %v", err)
	}
}
