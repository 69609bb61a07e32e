package coder_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/losses"
)

// The second value of a sample is twice the first. A pca of whitened samples cannot encode what is left of a sample, since each of its scaled
// values depends on all entries; it fills missing entries repeatedly.
func TestAWhitenedModelCompletesFromTheOtherEntries(t *testing.T) {
	samples := make([]float32, 0, 3*60)
	for i := range 60 {
		x := float32(i%10) - 3
		samples = append(samples, x, 2*x+0.01*float32(i%7), float32(i%3))
	}
	path := filepath.Join(t.TempDir(), "samples.npy")
	fatal.If(t, data.WriteImages(path, []int{3}, samples))
	for _, scale := range []string{"standardise", "whiten"} {
		run, err := trainedIn(t, fmt.Sprintf("kind = \"pca\"\ncomponents = 2\ndataset = { name = \"npy\", images = %q, scale = %q }\n", filepath.ToSlash(path), scale), t.TempDir())
		fatal.If(t, err)
		defer run.Close()
		holed := append([]float32{}, samples...)
		for i := 1; i < len(holed); i += 6 {
			holed[i] = float32(math.NaN())
		}
		filled, err := run.Complete(map[string][]float32{losses.Images: holed})
		fatal.If(t, err)
		for i := 1; i < len(holed); i += 6 {
			if d := math.Abs(float64(filled[i] - samples[i])); !(d < 0.5) {
				t.Errorf("%s: got %v for %v", scale, filled[i], samples[i])
			}
		}
	}
}

// completing trains an auto-encoder on 400 samples of two factors, value 0 in another unit, and returns the samples and what it fills in:
// half of the other values of the first 100 samples, all in some.
func completing(t *testing.T, unit float64, layer string, alone bool) (samples, filled []float32, missing []int) {
	t.Helper()
	const n, width = 400, 5
	r := rand.New(rand.NewPCG(1, 2))
	mix := lists.Of(2*width, func(i int) float64 { return r.NormFloat64() })
	for range n {
		a, b := r.NormFloat64(), r.NormFloat64()
		for j := range width {
			samples = append(samples, float32(a*mix[j]+b*mix[width+j]+0.05*r.NormFloat64()))
		}
	}
	for i := 0; i < len(samples); i += width {
		samples[i] = float32(unit * (float64(samples[i]) + 3))
	}
	path := filepath.Join(t.TempDir(), "samples.npy")
	fatal.If(t, data.WriteImages(path, []int{width}, samples))
	run, err := trainedIn(t, fmt.Sprintf("dataset = { file = %q, scale = \"standardise\" }\nencoder = [%s]\noptimizer = { learning_rate = 0.02 }\ntrain = { epochs = 150 }\n", filepath.ToSlash(path), layer), t.TempDir())
	fatal.If(t, err)
	defer run.Close()
	holed := slices.Clone(samples[:100*width])
	if alone {
		holed = holed[:width]
	}
	for i := range holed {
		if j := i % width; j > 0 && (i/width+5)>>(j-1)&1 == 1 { // sample 0 lacks two
			holed[i] = float32(math.NaN())
			missing = append(missing, i)
		}
	}
	filled, err = run.Complete(map[string][]float32{losses.Images: holed})
	fatal.If(t, err)
	return samples, filled, missing
}

// A linear auto-encoder that is no exact projection moves some samples away for ever: their answers must stay better than means, 0 here.
func TestCompletedValuesDoNotGrow(t *testing.T) {
	samples, filled, missing := completing(t, 1, `{ kind = "dense", units = 2 }`, false)
	errors, means := 0.0, 0.0
	for _, i := range missing {
		errors += math.Pow(float64(filled[i]-samples[i]), 2)
		means += math.Pow(float64(samples[i]), 2)
	}
	if !(errors < 0.2*means) {
		t.Errorf("squared errors of %d values: got %g, those of means are %g", len(missing), errors, means)
	}
}

// The unit of a column, and whether samples are completed alone or with others, do not matter to the other columns.
func TestTheUnitOfAColumnDoesNotMatterToWhatIsCompleted(t *testing.T) {
	const layer = `{ kind = "dense", units = 2, activation = "tanh" }`
	_, want, missing := completing(t, 1, layer, false)
	for _, alone := range []bool{false, true} {
		_, got, some := completing(t, 1e6, layer, alone)
		for _, i := range some {
			expect.Near(t, float64(got[i]), float64(want[i]), 2e-3, "alone", alone, "value", i, "of", len(missing))
		}
	}
}
