package figures

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/pictures"
	"tessera/internal/train"
	"tessera/metrics"
)

var update = flag.Bool("update", false, "write the golden pictures again")

// figures returns a small figure of every kind, by name.
func figures(t *testing.T) map[string]func() (*Figure, error) {
	images, parts := swimmers(t)
	dilated, err := morph.Apply(morph.Dilation, morph.Disk, 1, images, []int{32, 32})
	fatal.If(t, err)
	signed := lists.Of(len(images), func(i int) float32 { return images[i] - 0.6*dilated[i] })
	bias := make([]float32, 1024)
	copy(bias, parts[:1024])
	ours := measuredCurves()
	named := []Point{
		{Label: "parts-balanced", Values: numbers("mse", 0.0124, "hoyer", 0.60, "max_approx", 0.048)},
		{Label: "parts-dominating", Values: numbers("mse", 0.0107, "hoyer", 0.55, "max_approx", 0.097)},
		{Label: "parts-flat", Values: numbers("mse", 0.0148, "hoyer", 0.65, "max_approx", 0.0214)},
		{Label: "shallow", Values: numbers("mse", 0.0072, "hoyer", 0.07, "max_approx", 16.2)},
		{Label: "beaten", Values: numbers("mse", 0.0131, "hoyer", 0.5, "max_approx", 0.12)},
		{Label: "without atoms", Values: numbers("mse", 0.0131, "hoyer", 0.5, "max_approx", math.NaN())},
	}
	return map[string]func() (*Figure, error){
		"penalties":      func() (*Figure, error) { return Penalties(0.3) },
		"penalties_zero": func() (*Figure, error) { return Penalties(0) },
		"image_rows": func() (*Figure, error) {
			return ImageRows(
				ImageRow{Caption: "originals", Shape: []int{32, 32}, Images: images},
				ImageRow{Caption: "dilated by the disk of radius 1, 16 to a line", Shape: []int{32, 32}, Images: dilated, Tone: Unit, Columns: 16},
				ImageRow{Caption: "with negative values: a caption that is a good deal longer than most captions of figures are", Shape: []int{32, 32}, Images: signed[:3*1024], Tone: Signed},
			)
		},
		"atoms": func() (*Figure, error) {
			return Atoms(&metrics.Atoms{Shape: []int{32, 32}, Count: 17, Values: parts, Bias: bias})
		},
		"weighed_atoms": func() (*Figure, error) {
			effects := lists.Of(17, func(i int) float64 { return float64(i * i) })
			return WeighedAtoms(&metrics.Atoms{Shape: []int{32, 32}, Count: 17, Values: parts, Bias: bias}, effects)
		},
		"vector_atoms": func() (*Figure, error) {
			return Atoms(&metrics.Atoms{Shape: []int{40}, Count: 20, Values: waves(20, 40, 1), Bias: waves(1, 40, 0.3)})
		},
		"vector_atoms_named": func() (*Figure, error) {
			return Atoms(&metrics.Atoms{Shape: []int{5}, Count: 4, Values: waves(4, 5, 1)}, "length [mm]", "mass [g]", "temperature", "pressure at the inlet [Pa] of the left tube", "m4")
		},
		"spectra": func() (*Figure, error) {
			return Spectra(ImageRow{Caption: "originals", Shape: []int{40}, Images: waves(3, 40, 1), Names: []string{"sample 0", "sample 9", "sample 18"}},
				ImageRow{Caption: "vectors: mse 0.01", Shape: []int{40}, Images: waves(3, 40, 0.9)})
		},
		"histograms": func() (*Figure, error) {
			return Histograms(
				CodeRow{Caption: "sigmoid codes: mean Hoyer sparsity 0.07", Units: 100, Codes: codes(10, func(u float64) float64 { return 0.3 + 0.5*u*u })},
				CodeRow{Caption: "sparse codes: mean Hoyer sparsity 0.79", Units: 100, Codes: codes(10, func(u float64) float64 { return math.Pow(u, 20) })},
				CodeRow{Caption: "small codes", Units: 100, Codes: codes(3, func(u float64) float64 { return 0.04 * math.Pow(u, 8) })},
				CodeRow{Caption: "codes of any sign", Units: 100, Codes: codes(5, func(u float64) float64 { return 40 * (u - 0.4) })},
			)
		},
		"curves": func() (*Figure, error) { return Curves(ours, PublishedCurves(false)) },
		"swept": func() (*Figure, error) {
			return Swept("encoder.0.units", []string{"mse", "l0", "accuracy"}, sweptLines())
		},
		"hoyer_scatter": func() (*Figure, error) { return HoyerScatter(ours, PublishedCurves(false)) },
		"mse_scatter":   func() (*Figure, error) { return MSEScatter(nil, PublishedCurves(true)) },
		"pareto":        func() (*Figure, error) { return Pareto(named, PublishedTables("fashion-mnist")) },
		"training": func() (*Figure, error) {
			return Training(course("shallow", 0.05), course("shallow-nonneg-kl", 0.09), course("swimmer-parts", 0.02))
		},
		"training_many": func() (*Figure, error) { // more runs than colours, fewer epochs than ticks
			var runs []TrainingRun
			for i := range 9 {
				run := course(fmt.Sprintf("run %d", i), 0.03+0.01*float64(i))
				run.Epochs = run.Epochs[:2]
				runs = append(runs, run)
			}
			return Training(runs...)
		},
		"training_short": func() (*Figure, error) {
			return Training(TrainingRun{Label: "one epoch", Epochs: []train.Epoch{{Epoch: 1, Values: numbers("loss", 0.1, "code_hoyer", 0.5, "dead_units", 0)}}})
		},
		"training_classes": func() (*Figure, error) { // of a classifier, which has no reconstruction
			run := TrainingRun{Label: "species", Noun: "sample"}
			for e := 1.0; e <= 20; e++ {
				run.Epochs = append(run.Epochs, train.Epoch{Epoch: e, Values: numbers("loss", 1/e, "cross_entropy", 1/e, "val_accuracy", 1-0.6/e, "val_nll", 0.3+0.7/e, "code_hoyer", 0.5, "dead_units", 1)})
			}
			return Training(run)
		},
		"confusion": func() (*Figure, error) {
			return Confusion(Confused{"clothes, test", []string{"T-shirt/top", "trouser", "coat"}, [][]int{{880, 4, 116}, {2, 990, 8}, {0, 0, 0}}},
				Confused{"two heads, other", []string{"0", "1"}, [][]int{{3, 1}, {0, 1200}}})
		},
		"network": func() (*Figure, error) {
			return Network(NetworkLayer{"input x", 5}, NetworkLayer{"code h", 3}, NetworkLayer{"output", 5})
		},
	}
}

// swimmers returns ten generated images and the 17 true parts.
func swimmers(t *testing.T) (images, parts []float32) {
	set, err := (&data.Swimmer{}).Load(t.Context(), data.Dirs{}, data.Need{Train: true})
	fatal.If(t, err)
	images = make([]float32, 10*1024)
	set.Train.Batch(images, []int{0, 27, 54, 81, 108, 135, 162, 189, 216, 243})
	for _, part := range set.Parts {
		parts = append(parts, part...)
	}
	return images, parts
}

// codes returns n codes of 100 units, computed from evenly spread numbers in [0,1).
func codes(n int, value func(u float64) float64) []float32 {
	out := make([]float32, 100*n)
	for i := range out {
		_, u := math.Modf(float64(i) * math.Phi)
		out[i] = float32(value(u))
	}
	return out
}

// measuredCurves returns points close to the published ones.
func measuredCurves() []Point {
	points := PublishedCurves(false)
	for i := range points {
		p := &points[i]
		p.Values = numbers("mse", mseMetric.of(*p)*0.93, "hoyer", min(1, hoyerMetric.of(*p)+0.02), "max_approx", maxMetric.of(*p)*0.8,
			"max_approx_reconstructed", recMetric.of(*p)*0.85)
	}
	return points
}

// numbers returns values by name. Its arguments are a name, its number, the next name, and so on; a NaN omits the name.
func numbers(pairs ...any) (v metrics.Values) {
	for i := 0; i < len(pairs); i += 2 {
		var number float64
		switch n := pairs[i+1].(type) {
		case int:
			number = float64(n)
		case float64:
			number = n
		}
		if !math.IsNaN(number) {
			v.Set(pairs[i].(string), number)
		}
	}
	return v
}

func course(label string, start float64) TrainingRun {
	run := TrainingRun{Label: label}
	for e := 1.0; e <= 60; e++ {
		run.Epochs = append(run.Epochs, train.Epoch{Epoch: e, Values: numbers("loss", start/math.Sqrt(e)+0.006, "val_mse", start/2/math.Sqrt(e),
			"code_hoyer", max(0, 0.7-start*8/math.Sqrt(e)), "dead_units", math.Floor(start*200/e))})
	}
	return run
}

func TestFiguresAreTheGoldenPictures(t *testing.T) {
	for name, figure := range figures(t) {
		t.Run(name, func(t *testing.T) {
			f, err := figure()
			fatal.If(t, err)
			pictures.Golden(t, filepath.Join("testdata", name+".png"), f.Image(), *update)
		})
	}
}

func TestEveryGoldenPictureIsOfAFigure(t *testing.T) {
	files, err := filepath.Glob("testdata/*.png")
	fatal.If(t, err)
	all := figures(t)
	expect.Equal(t, len(files), len(all), "golden pictures", len(all), "figures")
	for _, f := range files {
		if name := filepath.Base(f[:len(f)-len(".png")]); all[name] == nil {
			t.Errorf("%s is of no figure", f)
		}
	}
}

// waves returns n vectors of the given length.
func waves(n, length int, amplitude float64) []float32 {
	values := make([]float32, 0, n*length)
	for i := range n {
		for j := range length {
			values = append(values, float32(amplitude*math.Sin(float64(j*(i+1))/20)*float64(i+1)/float64(n)))
		}
	}
	return values
}

func TestTheHeldOutLossIsOfTheSameTerms(t *testing.T) {
	for _, c := range []struct {
		values metrics.Values
		want   int
	}{{numbers("loss", 1.0, "cross_entropy", 1.0, "val_nll", 0.9), 1}, {numbers("loss", 1.0, "cross_entropy", 0.8, "mse", 0.2, "val_nll", 0.9), 0}, {numbers("loss", 1.0, "cross_entropy", 0.8, "val_loss", 1.1, "val_nll", 0.9), 1}} {
		expect.Equal(t, len(heldOut(TrainingRun{Epochs: []train.Epoch{{Epoch: 1, Values: c.values}}})), c.want, c.values)
	}
}
