package coder_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
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
