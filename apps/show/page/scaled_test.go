package page_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/evaluation"
	"tessera/layers"
	"tessera/optim"
)

// The errors on a page equal those of the metrics: the run scales the samples once, also by steps that it cannot undo.
func TestThePageOfAScaledRunHasTheErrorsOfItsMetrics(t *testing.T) {
	for name, scale := range map[string]data.Scale{
		"standardise": {&data.Standardise{Centre: true}},
		"log1p":       {&data.Log1p{}},
		"rows":        {&data.RowNorm{Norm: "l1", To: 10}, &data.Log1p{}},
		"lossy":       {&data.Log1p{}, &data.RowNorm{Norm: "l2", To: 2}, &data.Standardise{Centre: true}},
	} {
		t.Run(name+" of images", func(t *testing.T) { t.Parallel(); errorsOfScaled(t, scale, 4, 4) })
		t.Run(name+" of vectors", func(t *testing.T) { t.Parallel(); errorsOfScaled(t, scale, 16) })
	}
}

func errorsOfScaled(t *testing.T, scale data.Scale, shape ...int) {
	const n, side = 40, 4
	values := lists.Of(n*side*side, func(i int) float32 {
		return float32(500 + 400*math.Sin(float64(i%(side*side)+1)*float64(i/(side*side)%7)))
	})
	path := filepath.Join(t.TempDir(), "images.npy")
	file, err := os.Create(path)
	fatal.If(t, err)
	fatal.If(t, data.WriteNPY(file, append([]int{n}, shape...), values))
	fatal.If(t, file.Close())
	m, err := tessera.Declare(config.Model{
		Dataset:   config.Dataset{Source: &data.Files{Kind: "npy", Images: path, Scale: scale}},
		Encoder:   []config.Layer{{Layer: &layers.Dense{Units: 5, Activation: "linear"}}},
		Optimizer: config.Optimizer{Optimizer: &optim.Adam{Rate: 0.02, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}},
		Train:     config.Train{Epochs: 40, Batch: 10}})
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "run")
	run, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: out})
	fatal.If(t, err)
	fatal.If(t, run.Close())
	one, err := page.ReadRun(t.Context(), out, options)
	fatal.If(t, err)
	shown := 0.0
	for _, s := range one.Samples {
		shown += s.MSE / float64(len(one.Samples))
	}
	if len(one.Samples) != one.Measured.Images {
		t.Fatalf("%d of %d images are shown", len(one.Samples), one.Measured.Images)
	}
	report, _ := one.Document.Data.(*evaluation.Report)
	if mse, ok := report.Number("mse"); !ok || math.Abs(shown-mse) > 0.02*mse {
		t.Errorf("the mean error of the images is %g, the mse is %g (%v)", shown, mse, ok)
	}
	var text strings.Builder
	fatal.If(t, one.Document.Text(&text, doc.Screen{}))
	contains(t, text.String(), "errors such as mse are of the scaled values")
}

// Pictures of a camera with 12 bits in files of 16 bits fill a twentieth of [0,1]: they are drawn from their smallest value to their largest.
func TestDarkPicturesAreSeen(t *testing.T) {
	dir := t.TempDir()
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		picture := image.NewGray16(image.Rect(0, 0, 4, 4))
		for k := range 16 {
			picture.SetGray16(k%4, k/4, color.Gray16{Y: uint16(129 + noise.IntN(3000))})
		}
		var file bytes.Buffer
		fatal.If(t, png.Encode(&file, picture))
		fatal.If(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.png", i)), file.Bytes(), 0o600))
	}
	r, err := page.ReadRun(t.Context(), declaredRun(t, fmt.Sprintf(`
dataset = { file = %q }
encoder = [{ kind = "dense", units = 4 }]
loss    = [{ kind = "mse" }]
train   = { epochs = 2 }
`, dir)), options)
	fatal.If(t, err)
	for i, text := range r.Samples[0].Pictures {
		file, err := base64.StdEncoding.DecodeString(text)
		fatal.If(t, err)
		drawn, err := png.Decode(bytes.NewReader(file))
		fatal.If(t, err)
		most := uint8(0)
		for k := range 16 {
			most = max(most, color.GrayModel.Convert(drawn.At(k%4, k/4)).(color.Gray).Y)
		}
		if most < 64 {
			t.Errorf("%s: the brightest pixel is %d of 255", r.Samples[0].Captions[i], most)
		}
	}
}
