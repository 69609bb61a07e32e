package coder_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/classical/generate"
	"tessera/config"
	"tessera/data"
	"tessera/data/morph"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/metrics"
	"tessera/optim"
)

// For trained models, the greedy count of useful units equals the size of the best subset of units.
func TestUsefulUnitsOfTrainedModelsEqualTheBestOfAllSubsets(t *testing.T) {
	seen := map[float64]bool{}
	for _, epochs := range []int{2, 20, 100} {
		m, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: &data.Bars{Count: 300}}, Train: config.Train{Epochs: epochs},
			Encoder: []config.Layer{{Kind: "dense", Layer: &layers.Dense{Units: 8, Activation: "relu"}}}})
		fatal.If(t, err)
		r, err := tessera.Train(context.Background(), m, tessera.Options{Out: filepath.Join(t.TempDir(), "run"), Threads: 1})
		fatal.If(t, err)
		measured, err := r.Evaluate(context.Background(), nil)
		fatal.If(t, err)
		got, ok := measured.Number("useful_units")
		if want := leastUseful(t, r, 0.01); !ok || got != float64(want) {
			t.Errorf("after %d epochs: got %v, want %d", epochs, got, want)
		}
		seen[got] = true
		_ = r.Close()
	}
	if len(seen) < 2 {
		t.Errorf("all models have the same number: %v", seen)
	}
}

// leastUseful returns the smallest number of units such that all other units can be frozen at their means. It tries every
// subset.
func leastUseful(t *testing.T, r *tessera.Run, rise float64) int {
	t.Helper()
	images, err := r.Images(context.Background())
	fatal.If(t, err)
	x := images.Float32()
	codes, err := r.Encode(x)
	fatal.If(t, err)
	k := r.Units()
	means := make([]float64, k)
	for i, h := range codes {
		means[i%k] += float64(h) / float64(images.Len())
	}
	failure := func(frozen uint) (sum float64) {
		h := slices.Clone(codes)
		for i := range h {
			if frozen>>(i%k)&1 == 1 {
				h[i] = float32(means[i%k])
			}
		}
		y, err := r.Decode(h)
		fatal.If(t, err)
		for i := range y {
			d := float64(x[i] - y[i])
			sum += d * d
		}
		return sum
	}
	least, most := k, (1+rise)*failure(0)
	for frozen := range uint(1) << k {
		if useful := k - bits.OnesCount(frozen); useful < least && failure(frozen) <= most {
			least = useful
		}
	}
	return least
}

// maxPlus returns max-plus auto-encoders of the swimmer, one trained and one with random weights, and images.
func maxPlus(t *testing.T, sets ...string) (coders map[string]metrics.Coder, images []float32) {
	t.Helper()
	var parsed []config.Set
	for _, argument := range append(sets, "dataset=swimmer", "optimizer.kind=adam", "optimizer.learning_rate=0.01", "train.epochs=5") {
		s, err := config.ParseSet(argument)
		fatal.If(t, err)
		parsed = append(parsed, s)
	}
	m, err := tessera.Shipped().Model("shallow-max-plus", parsed...)
	fatal.If(t, err)
	run, err := tessera.Train(context.Background(), m, tessera.Options{Out: t.TempDir() + "/run", Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	all, err := run.Images(context.Background())
	fatal.If(t, err)
	drawn, err := graph.New(m, run.Shape())
	fatal.If(t, err)
	return map[string]metrics.Coder{"trained": run, "untrained": graph.NewCoder(drawn, tape.Backend{})}, all.Float32()[:50*all.Pixels()]
}

// Flat dilations commute with maxima and with adding a constant: with dilated atoms, the output of the layer equals its
// dilated output for any weights.
func TestMaxPlusDecodersDilateWithoutAnErrorTrainedOrNot(t *testing.T) {
	for _, constraint := range []string{`constraint=[]`, `constraint=[{kind="nonneg"}]`, `constraint=[{kind="box"}]`} {
		coders, images := maxPlus(t, constraint)
		for name, coder := range coders {
			r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images}, nil)
			fatal.If(t, err)
			if e, ok := r.Number("max_approx"); !ok || !(e > 1e-4) { // the control: to originals there is an error
				t.Errorf("%s, %s: max_approx is %v", name, constraint, e)
			}
			for _, radius := range []int{1, 2, 4} {
				m := &metrics.MaxApprox{Morphology: metrics.Morphology{Operator: morph.Dilation, Radius: radius}}
				r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images}, metrics.Selection{{Metric: m}})
				fatal.If(t, err)
				if e, ok := r.Number("max_approx_reconstructed"); !ok || e > 1e-12 {
					t.Errorf("%s, %s, radius %d: error %v, want 0", name, constraint, radius, e)
				}
			}
			if c, ok := coder.(io.Closer); ok && name == "untrained" {
				expect.NoError(t, c.Close())
			}
		}
	}
}

// tableOf writes 60 vectors of four values with different scales. It returns a data set of these vectors, and the vectors.
func tableOf(t *testing.T, scale string) (data.Source, []float32) {
	t.Helper()
	var text strings.Builder
	var values []float32
	text.WriteString("a,b,c,d\n")
	for i := range 60 {
		u, v := math.Sin(float64(i)), math.Cos(1.7*float64(i))
		row := []float32{float32(1000 + 300*u), float32(v / 100), float32(5 - u - v), float32(-4e5 * v)}
		fmt.Fprintf(&text, "%v,%v,%v,%v\n", row[0], row[1], row[2], row[3])
		values = append(values, row...)
	}
	path := filepath.Join(t.TempDir(), "table.csv")
	fatal.If(t, os.WriteFile(path, []byte(text.String()), 0o600))
	scaling, _ := data.Scalings.Lookup(scale)
	source := &data.Files{Kind: "csv", Images: path, Scale: data.Scale{scaling.New()}}
	return source, values
}

// tableModel returns a model of the vectors.
func tableModel(t *testing.T, source data.Source, epochs int) *config.Model {
	t.Helper()
	m, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: source},
		Encoder:   []config.Layer{{Layer: &layers.Dense{Units: 6, Activation: "linear"}}},
		Optimizer: config.Optimizer{Optimizer: &optim.Adam{Rate: 0.02, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}}, Train: config.Train{Epochs: epochs, Batch: 10}})
	fatal.If(t, err)
	return m
}

func TestAScaledRunTakesAndGivesValuesAsTheyAre(t *testing.T) {
	for _, scale := range []string{"standardise", "minmax", "rows"} {
		source, values := tableOf(t, scale)
		if files := source.(*data.Files); scale == "rows" {
			files.Scale = data.Scale{&data.RowNorm{Norm: "l2"}, &data.Standardise{Centre: true}}
		}
		out := filepath.Join(t.TempDir(), "run")
		run, err := tessera.Train(t.Context(), tableModel(t, source, 400), tessera.Options{Out: out})
		fatal.If(t, err)
		defer run.Close()
		codes := encoded(t, run, values)
		back, err := run.Decode(codes)
		fatal.If(t, err)
		for j, width := range []float64{600, 0.02, 3.9, 8e5} { // of each column
			for i := j; i < len(values) && run.Scaling().Lossy() == ""; i += 4 {
				if math.Abs(float64(back[i]-values[i])) > width/4 {
					t.Fatalf("%s: value %d of sample %d is decoded to %g, want about %g", scale, j, i/4, back[i], values[i])
				}
			}
		}
		if measured, err := run.Evaluate(t.Context(), nil); err != nil {
			t.Error(err)
		} else if mse, _ := measured.Values.Number("mse"); mse > 0.1 {
			t.Errorf("%s: the error of scaled samples is %g", scale, mse)
		}
		if images, err := run.Images(t.Context()); err != nil || !slices.Equal(images.Float32(), values) {
			t.Errorf("%s: the samples are not those of the file: %v", scale, err)
		}
		if low, high := run.Range(); low != slices.Min(values) || high != slices.Max(values) {
			t.Errorf("%s: the range is %g to %g", scale, low, high)
		}
		same := map[string]*tessera.Run{}
		if same["opened"], err = tessera.Open(out, tessera.Options{}); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(filepath.Join(out, "model.safetensors"))
		fatal.If(t, err)
		if same["one file"], err = tessera.ReadModel(whole, tessera.Options{}); err != nil {
			t.Fatal(err)
		}
		for name, other := range same {
			expect.Slice(t, encoded(t, other, values), codes, scale, name, "has other codes")
			expect.NoError(t, other.Close())
		}
		encoder, err := run.Encoder(tessera.EncoderOptions{})
		fatal.If(t, err)
		defer encoder.Close()
		if got, err := encoder.Encode(t.Context(), nil, values); err != nil || !slices.Equal(got, codes) {
			t.Errorf("%s: the encoder has other codes: %v", scale, err)
		}
		coder, err := run.WithAtoms(run.Atoms())
		fatal.If(t, err)
		if got, err := coder.Decode(codes); err != nil || !slices.Equal(got, back) {
			t.Errorf("%s: the same atoms decode otherwise: %v", scale, err)
		}
	}
}

func encoded(t *testing.T, run *tessera.Run, values []float32) []float32 {
	t.Helper()
	codes, err := run.Encode(values)
	fatal.If(t, err)
	return codes
}

func TestAResumedRunHasTheScaleOfItsTraining(t *testing.T) {
	source, _ := tableOf(t, "standardise")
	dir := t.TempDir()
	train := func(name string, epochs int) {
		run, err := tessera.Train(t.Context(), tableModel(t, source, epochs), tessera.Options{Out: filepath.Join(dir, name)})
		fatal.If(t, err)
		run.Close()
	}
	train("whole", 6)
	train("part", 3)
	run, err := tessera.Resume(t.Context(), filepath.Join(dir, "part"), tessera.Options{Epochs: 6})
	fatal.If(t, err)
	run.Close()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name, "model.safetensors"))
		fatal.If(t, err)
		return string(b)
	}
	expect.Equal(t, read("part"), read("whole"), "a resumed run and an uninterrupted one")
	fatal.If(t, os.Remove(filepath.Join(dir, "part", "model.safetensors")))
	again, err := tessera.Resume(t.Context(), filepath.Join(dir, "part"), tessera.Options{})
	fatal.If(t, err)
	again.Close()
	expect.Equal(t, read("part"), read("whole"), "the model that is written again")
}

// For a run with scale = "bytes", floats from 0 to 255 and bytes are the same images, regardless of which of them the run was
// fitted to.
func TestFloatsOfBytesHaveTheCodesOfBytes(t *testing.T) {
	const n, side = 32, 16
	numbers, pixels := make([]float32, n*side*side), make([]byte, n*side*side)
	for i := range pixels {
		pixels[i] = byte(i*7 + i/256)
		numbers[i] = float32(pixels[i])
	}
	dir := t.TempDir()
	floats, bytes := filepath.Join(dir, "floats.npy"), filepath.Join(dir, "bytes.idx")
	fatal.If(t, data.WriteImages(floats, []int{side, side}, numbers))
	scaled := lists.Map(pixels, func(p byte) float32 { return float32(p) / 255 })
	fatal.If(t, data.WriteImages(bytes, []int{side, side}, scaled))
	var first []float32
	for _, file := range []string{floats, bytes} {
		source := &data.Files{Kind: "npy", Images: file, Scale: data.Scale{&data.Bytes255{}}}
		run, err := tessera.Train(t.Context(), tableModel(t, source, 2), tessera.Options{Out: filepath.Join(dir, filepath.Base(file)+".run"), Threads: 1})
		fatal.If(t, err)
		defer run.Close()
		if low, high := run.Range(); low != 0 || high != 1 {
			t.Errorf("%s: the range is %g to %g", filepath.Base(file), low, high)
		}
		for _, in := range []string{floats, bytes} {
			rows, err := data.ReadRows(t.Context(), in, run.Shape(), source)
			fatal.If(t, err)
			codes := encoded(t, run, rows.Float32())
			if first == nil {
				first = codes
			}
			expect.Slice(t, codes, first, "fitted to", filepath.Base(file), filepath.Base(in), "has other codes")
		}
	}
}

// The value of a metric that is not applicable to a model contains the reason.
func TestMetricsThatAModelLacksSayWhy(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`encoder = [{ kind = "dense", units = 64 }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", from = ["previous", "encoder.0"] }]`: {
			"max_approx": "the output cannot be computed from the code alone: decoder.0 (dense) reads encoder.0",
			"mse":        "",
		},
		`encoder = [{ kind = "patches" }, { kind = "mask_patches" }, { kind = "take_token", mean = true }]
decoder = [{ kind = "mask_tokens", mask = "encoder.1.mask", from = "encoder.1" }, { kind = "token_dense", units = 16 }, { kind = "unpatch" }]
loss = [{ kind = "mse", mask = "hidden" }]
head.hidden = { from = "encoder.1.mask", layers = [{ kind = "reshape", shape = [2, 2] }, { kind = "upsample", factor = 4 }] }`: {
			"mse": "the output is no reconstruction: the loss mse trains it only where the mask of a training step hides the images",
		},
		`encoder = [{ kind = "dense", units = 4 }]
decoder = []
loss = [{ kind = "hoyer" }]`: {
			"mse": "the model has no decoder", "max_approx": "the model has no decoder",
		},
	} {
		r, err := trainedIn(t, "dataset = { name = \"bars\", count = 40, validation = 0.2 }\ntrain.epochs = 1\n"+text, t.TempDir())
		fatal.If(t, err)
		for name, reason := range want {
			chosen, err := metrics.Select(name)
			fatal.If(t, err)
			report, err := r.Evaluate(context.Background(), chosen)
			fatal.If(t, err)
			expect.Equal(t, report.Values[0].Missing, reason, name, strings.SplitN(text, "\n", 2)[0])
		}
		_ = r.Close()
	}
}

// Drawn images that cannot be compared are errors.
func TestQualityRefusesWhatItCannotCompare(t *testing.T) {
	run := bars(t, "1")
	for name, call := range map[string]func() error{
		"no features": func() error {
			_, err := generate.Measure(t.Context(), run, make([]float32, 640), nil, "code")
			return err
		},
		"no images": func() error { _, err := generate.Measure(t.Context(), run, nil, run, "code"); return err },
		"a half": func() error {
			_, err := generate.Measure(t.Context(), run, make([]float32, 96), run, "code")
			return err
		},
		"no samples": func() error { _, err := run.Codes(t.Context(), nil); return err },
	} {
		calmly(t, name, func() error {
			if call() == nil {
				t.Errorf("%s: no error", name)
			}
			return nil
		})
	}
}
