package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/numeral"
)

func TestEveryFigureIsDrawnOfRuns(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	b.must(0, "train", "small", "--epochs", "2", "--set", "loss.1.weight=0.01")
	for _, k := range figureKinds() {
		switch k.name { // of classifiers and mixtures: TestSampleDrawsNewImages, TestCalibrateSaysWhatItDoes, TestAttacksOnAHeadMeasureRobustAccuracy; of attention: below
		case "reliability", "confusion", "gradients", "robustness", "mixture", "attention":
			continue
		}
		args := []string{"figure", k.name}
		if k.most > 0 {
			args = append(args, "runs/small", "runs/small-2")
		}
		r := b.must(0, args...)
		expect.Equal(t, r.stdout, k.name+".png\n", k.name, "printed", r.stdout, "want its file")
		f, err := os.Open(b.path(k.name + ".png"))
		fatal.If(t, err)
		if picture, err := png.DecodeConfig(f); err != nil || picture.Width < 300 || picture.Height < 100 {
			t.Errorf("%s: %+v, %v", k.name, picture, err)
		}
		f.Close()
	}
}

func TestAttentionIsDrawnInAFigureAndInTheReport(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "1", "--set", `encoder=[{kind="patches",size=8},{kind="token_dense",units=8},{kind="attention",heads=2},{kind="dense",units=4,activation="sigmoid"}]`)
	b.must(0, "figure", "attention", "runs/small")
	b.must(0, "figure", "attention", "runs/small", "--atoms", "0,3", "--out", "units.png")
	b.contains("a unit that is not there", b.must(exitUsage, "figure", "attention", "runs/small", "--atoms", "4").stderr, "--atoms: got 4, want 0 to 3")
	b.must(0, "report", "runs/small", "-o", "report.html")
	page, err := os.ReadFile(b.path("report.html"))
	fatal.If(t, err)
	b.contains("the report", string(page), `aria-label="Attention"`)
	b.must(0, "train", "gpt-grammar", "--set", `dataset={grammar=40, length=24, tokens="words", validation=0}`)
	b.must(0, "figure", "attention", "runs/gpt-grammar", "--images", "2,3", "-o", "texts.svg")
	b.contains("the figure of texts", b.read("texts.svg"), "attends to", "&lt;end&gt;")
	b.trained("dense", 1)
	b.contains("a model without attention", b.must(exitUsage, "figure", "attention", "dense").stderr, "dense publishes no attention over parts of its images or its tokens")
}

func TestAFigureHasATitleAWidthAndChosenAtoms(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.must(0, "figure", "atoms", "runs/small", "--atoms", "3,1", "--title", "Two limbs", "-o", "two.svg")
	b.contains("the figure", b.read("two.svg"), "Two limbs", "small: atoms 3, 1")
	b.must(0, "figure", "training", "runs/small", "--width", "617", "-o", "wide.png")
	f, err := os.Open(b.path("wide.png"))
	fatal.If(t, err)
	defer f.Close()
	if picture, err := png.DecodeConfig(f); err != nil || picture.Width != 617 || picture.Height < 400 {
		t.Errorf("got %+v, %v, want a picture of 617 pixels", picture, err)
	}
	for args, want := range map[string]string{
		"--atoms 3,1000": "--atoms: got 1000, want 0 to ",
	} {
		b.contains(args, b.must(exitUsage, append([]string{"figure", "atoms", "runs/small"}, strings.Fields(args)...)...).stderr, want)
	}
}

func TestFiguresOfTheStudyAreDrawnWithoutRuns(t *testing.T) {
	b := newBench(t)
	b.must(0, "figure", "curves", "--published", "deep", "--out", "deep.svg")
	b.contains("the figure", b.read("deep.svg"), "p = 0.01", "p = 0.2", "published")
	b.must(0, "figure", "pareto", "--out", "pareto.svg")
	b.contains("the figure", b.read("pareto.svg"), "sparse-nmf", "ncae p=0.05 β=3")
}

func TestAFigureOfOneRunShowsAllAtomsAndOnlyTheImagesAskedFor(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.must(0, "figure", "atoms", "runs/small", "--out", "atoms.svg")
	if text := b.read("atoms.svg"); strings.Count(text, "<image") != 1 || strings.Count(text, "<text") != 7 {
		t.Errorf("the atoms are not one picture with the numbers of 6 units and the bias:\n%.500s", text)
	}
	width := func(images string) int {
		b.must(0, "figure", "reconstructions", "runs/small", "--images", images)
		f, err := os.Open(b.path("reconstructions.png"))
		fatal.If(t, err)
		defer f.Close()
		picture, err := png.DecodeConfig(f)
		fatal.If(t, err)
		return picture.Width
	}
	if eight, nine := width("0,1,2,3,4,5,6,255"), width("0,1,2,3,4,5,6,7,8"); nine-eight != 3*32+2 {
		t.Errorf("nine images are %d pixels wide, eight %d", nine, eight)
	}
}

// Without held-out samples fitted ones are measured: the figure says so. It does not where some are held out, and if it measures nothing.
func TestAFigureSaysThatItMeasuresFittedImages(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "1", "--out", "bars", "--set", "dataset={ name=\"bars\", count=20 }")
	b.must(0, "train", "small", "--epochs", "1", "--out", "shapes", "--set", "dataset={ name=\"shapes\", count=20, test=10 }")
	b.must(0, "train", "small", "--epochs", "1", "--out", "held", "--set", "dataset={ name=\"bars\", count=20, validation=0.5 }")
	const says = "bars: measured on samples to which it was fitted, because none are held out\n"
	for _, kind := range []string{"atoms", "reconstructions", "codes", "max-approximations", "hoyer-scatter", "pareto"} {
		expect.Equal(t, b.must(0, "figure", kind, "bars").stderr, "tessera: "+says, kind, "of bars", says)
	}
	for _, args := range [][]string{{"training", "bars"}, {"reconstructions", "shapes"}, {"pareto", "shapes"},
		{"atoms", "held"}, {"pareto", "held"}} {
		if got := b.must(0, append([]string{"figure"}, args...)...).stderr; strings.Contains(got, "fitted") {
			t.Errorf("%s: got %q", args, got)
		}
	}
	for kind, caption := range map[string]string{"reconstructions": "held: mse of validation images 0.", "codes": "held: mean Hoyer sparsity of validation images 0."} {
		b.contains(kind, b.must(0, "figure", kind, "held", "-o", "f.svg").stderr, "tessera: some of all images are drawn, the fitted ones among them\n")
		b.contains(kind, b.read("f.svg"), caption)
	}
	b.contains("help", b.must(0, "figure", "--help").stdout, "which include the fitted ones")
}

// The figure of a classifier, attacks on it and eval measure the same samples: the held-out ones.
func TestFiguresMeasureTheSamplesOfEval(t *testing.T) {
	b := newBench(t)
	b.noisy()
	var measured struct {
		Images        int
		Accuracy, ECE float64
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", "runs/noisy", "--json", "--metrics", "accuracy,ece").stdout), &measured))
	got := b.must(0, "figure", "reliability", "runs/noisy", "-o", "r.svg")
	b.contains("the figure", b.read("r.svg"), "noisy, ece "+numeral.Float(measured.ECE))
	if strings.Contains(got.stderr, "fitted") {
		t.Errorf("got %q", got.stderr)
	}
	b.must(0, "figure", "confusion", "runs/noisy", "-o", "c.svg")
	b.contains("the figure", b.read("c.svg"), fmt.Sprintf("noisy, validation: %s of %s", numeral.Percent(measured.Accuracy), numeral.Of(measured.Images, "sample")), "predicted class")
	var attacked struct {
		Split    string
		Images   int
		Accuracy struct{ Value float64 }
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "attack", "runs/noisy", "--attack", "fgsm", "--norm", "l2", "--epsilon", "0.1", "--limit", "0", "--json").stdout), &attacked))
	if attacked.Split != "validation" || attacked.Images != measured.Images || attacked.Accuracy.Value != measured.Accuracy {
		t.Errorf("attacked %+v, eval has %+v", attacked, measured)
	}
	b.must(0, "calibrate", "runs/noisy")
	b.contains("of a calibrated run", b.must(0, "figure", "reliability", "runs/noisy").stderr, "noisy: measured on the samples to which its calibration was fitted")
}

func TestMistakesInFiguresAreUsage(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.must(0, "train", "small", "--epochs", "1", "--out", "bars", "--set", "dataset=bars")
	b.must(0, "train", "small", "--epochs", "1", "--out", "filters", "--set", "dataset=bars", "--set", "constraint=[]",
		"--set", `decoder=[{kind="dense",units=64},{kind="reshape",shape=[8,8,1]},{kind="conv2d",filters=1}]`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"figure atoms", "missing run"},
		{"figure pareto --published none", "missing run"},
		{"figure network runs/small", "takes no runs"},
		{"figure atoms runs/small --out atoms.gif", "want .png, .svg or .pdf"},
		{"figure atoms runs/none", "no such folder"},
		{"figure training runs", "not a run"},
		{"figure codes runs/small --images 256", "want 0 to 255"},
		{"figure reconstructions runs/small bars", "bars: its samples have the shape [8 8], those of small [32 32]; runs of one figure need the same samples"},
		{"figure pareto runs/small bars", "bars: errors on different data sets cannot be compared (got bars, want swimmer"},
	} {
		b.contains(c.args, b.must(exitUsage, strings.Fields(c.args)...).stderr, c.want)
	}
	b.must(exitWrite, "figure", "network", "--out", "no/network.png")
	if left, _ := os.ReadDir(b.dir); slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".png") }) {
		t.Errorf("a figure was left behind: %v", left)
	}
}

// Figures of classifiers name each of several heads, and a run without one is refused.
func TestFiguresOfSeveralHeadsNameThem(t *testing.T) {
	b := newBench(t)
	b.noisy()
	b.write("models.toml", noisyModel+`
[model.two]
extends = "noisy"
head    = { class = { layers = [{ kind = "dense" }] }, again = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "cross_entropy", on = "class" }, { kind = "cross_entropy", on = "again" }]

[model.none]
dataset = { name = "csv", file = "noisy.csv", labels = "species" }
encoder = [{ kind = "dense", units = 2 }]
`)
	b.must(0, "train", "two", "--quiet", "--epochs", "1")
	b.must(0, "train", "none", "--quiet", "--epochs", "1")
	for _, kind := range []string{"confusion", "reliability", "robustness"} {
		arguments := []string{"figure", kind, "runs/two", "-o", kind + ".svg"}
		if kind == "robustness" {
			arguments = append(arguments, "--norm", "linf", "--epsilon", "1", "--steps", "2", "--limit", "10")
		}
		b.must(0, arguments...)
		label := map[string]string{"confusion": "two, validation, "}[kind]
		for _, head := range []string{"class", "again"} {
			expect.Contains(t, b.read(kind+".svg"), cmp.Or(label, "two, ")+head, kind)
		}
		expect.Contains(t, b.must(exitUsage, "figure", kind, "runs/none").stderr, "figure "+kind+": none predicts no classes")
	}
}
