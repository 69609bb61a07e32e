package metrics

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// realImages reads pixels of Fashion-MNIST, scaled by 1/255. It skips the test if the data are not available.
func realImages(tb testing.TB, file string, n int) []float32 {
	raw := realBytes(tb, file, 16, n*784)
	images := lists.Map(raw, func(b byte) float32 { return float32(b) / 255 })
	return images
}

// realLabels reads labels of Fashion-MNIST.
func realLabels(tb testing.TB, file string, n int) []int {
	labels := make([]int, n)
	for i, b := range realBytes(tb, file, 8, n) {
		labels[i] = int(b)
	}
	return labels
}

func realBytes(tb testing.TB, file string, header, n int) []byte {
	tb.Helper()
	dir := os.Getenv("TESSERA_DATA")
	if dir == "" {
		tb.Skip("left out: TESSERA_DATA is not set")
	}
	if testing.Short() {
		tb.Skip("left out with -short: the other tests run the same goroutines on fewer images")
	}
	f, err := os.Open(filepath.Join(dir, "fashion-mnist", file))
	fatal.If(tb, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	fatal.If(tb, err)
	raw := make([]byte, header+n)
	fatal.If(tb, expect.Err(io.ReadFull(z, raw)))
	return raw[header:]
}

// The study's collapsed models reconstruct every image as the same image. The constant mean image of 10,000 training images,
// measured on 3,000 test images, has the mse .0860, the max-approximation error .1190, and .00347 compared with
// reconstructions.
func TestTheConstantMeanImageHasTheStudysFingerprint(t *testing.T) {
	train := realImages(t, "train-images-idx3-ubyte.gz", 10_000)
	test := realImages(t, "t10k-images-idx3-ubyte.gz", 3_000)
	sums := make([]float64, 784)
	for i, v := range train {
		sums[i%784] += float64(v)
	}
	bias := make([]float32, 784)
	for i, s := range sums {
		bias[i] = float32(s / 10_000)
	}
	shape := []int{28, 28}
	c := &affine{shape: shape, units: 3, encoder: make([]float32, 784*3), offset: []float32{1, 1, 1},
		atoms: &Atoms{Shape: shape, Count: 3, Values: make([]float32, 3*784), Bias: bias}}
	r := measured(t, c, test)
	for _, v := range []struct {
		name            string
		want, tolerance float64
	}{
		{"mse", .0860, .00005},
		{"mse_clipped", .0860, .00005},
		{"max_approx", .1190, .00005},
		{"max_approx_reconstructed", .00347, .000005},
		{"hoyer", 0, 1e-6},
	} {
		expect.Near(t, number(t, r, v.name), v.want, v.tolerance, v.name)
	}
}
