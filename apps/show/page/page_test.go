package page_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
	"tessera/losses"
)

// options are the options of all tests: one thread.
var options = page.Options{Open: tessera.Options{Threads: 1}}

// shared returns the folder with the runs that all tests share.
var shared = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		return "", err
	}
	epochs, err := config.ParseSet("train.epochs=3")
	if err != nil {
		return "", err
	}
	m, err := tessera.Shipped().Model("swimmer-parts", epochs)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"swimmers", `<img src=x onerror=alert(1)>`} {
		r, err := tessera.Train(context.Background(), m, tessera.Options{Threads: 1, Out: filepath.Join(dir, name)})
		if err != nil {
			return "", err
		}
		if err := r.Close(); err != nil {
			return "", err
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := shared(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// run returns the path of a trained run.
func run(t *testing.T, name string) string {
	t.Helper()
	dir, err := shared()
	fatal.If(t, err)
	return filepath.Join(dir, name)
}

// rendered returns the page of runs.
func rendered(t *testing.T, paths ...string) string {
	t.Helper()
	r := &page.Report{}
	for _, path := range paths {
		one, err := page.ReadRun(context.Background(), path, options)
		fatal.If(t, err)
		r.Runs = append(r.Runs, one)
	}
	var b bytes.Buffer
	fatal.If(t, r.Write(&b))
	return b.String()
}

// factText returns the table at the top of a page as text, one line for each fact.
func factText(blocks []doc.Block) string {
	var lines []string
	for _, b := range blocks {
		if facts, ok := b.(*doc.Facts); ok {
			for _, f := range facts.Facts {
				lines = append(lines, f.Title+": "+doc.Text(f.Value))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		expect.Contains(t, text, w, "the page")
	}
}

func TestAPageSaysWhatWasTrainedAndHowItEnded(t *testing.T) {
	text := rendered(t, run(t, "swimmers"))
	contains(t, text, "<td>auto-encoder</td>", "finished after 3 epochs", "256 training images of swimmer (fitted to these samples, none are held out)",
		"reconstruction: the mean image is better", `<span class="default">epsilon = `, `<span>epochs = 3`, "tessera eval ", `data-unit="0"`, "Units that contribute most",
		"<td>mse + ", "from the settings above")
}

// Two reports of the same run have the same bytes and contain every picture and number.
func TestTheSameRunGivesTheSameBytes(t *testing.T) {
	expect.Equal(t, rendered(t, run(t, "swimmers")), rendered(t, run(t, "swimmers")), "two pages of one run")
}

// loading matches references that a browser would load from other addresses. The licence of uPlot contains addresses, which
// are not loaded.
var loading = regexp.MustCompile(`(?i)(?:src|href|action)\s*=\s*["']?(?:https?:|//)|@import|url\(\s*["']?(?:https?:|//)`)

func TestAPageLoadsNothing(t *testing.T) {
	text := rendered(t, run(t, "swimmers"))
	expect.Equal(t, loading.FindString(text), "", "the page loads something")
	contains(t, text, "default-src &#39;none&#39;", "script-src &#39;sha256-", "The MIT License")
}

func TestNamesAreEscaped(t *testing.T) {
	const name = `<img src=x onerror=alert(1)>`
	text := rendered(t, run(t, name), run(t, "swimmers"))
	if strings.Contains(text, name) {
		t.Error("the name of a run is part of the page as it is")
	}
	contains(t, text, "&lt;img src=x onerror=alert(1)&gt;")
}

// classifier trains a head on images whose class is the row of their only bright line.
func classifier(t *testing.T) string {
	t.Helper()
	const n, side = 90, 6
	values, labels := make([]float32, n*side*side), make([]int, n)
	for i := range n {
		labels[i] = i % 3
		for x := range side {
			values[i*side*side+labels[i]*2*side+x] = float32(i%5+3) / 8
		}
	}
	images, err := data.FromFloats(values, []int{side, side}, labels)
	fatal.If(t, err)
	m, err := tessera.Declare(config.Model{
		Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 5, Activation: "sigmoid"}}},
		Heads:   map[string]config.Head{"class": {From: config.Names{losses.Code}, Layers: []config.Layer{{Layer: &layers.Dense{Units: 3, Activation: "linear"}}}}},
		Losses:  []config.Loss{{Loss: &losses.MSE{}}, {Loss: &losses.CrossEntropy{}, On: "class"}},
		Train:   config.Train{Epochs: 12},
	})
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "classifier")
	r, err := tessera.Train(context.Background(), m, tessera.Options{Threads: 1, Out: out})
	fatal.If(t, err)
	defer r.Close()
	images2 := options
	images2.Open.Images = images
	one, err := page.ReadRun(context.Background(), out, images2)
	fatal.If(t, err)
	var b bytes.Buffer
	fatal.If(t, (&page.Report{Runs: []*page.Run{one}}).Write(&b))
	counted := 0
	for _, b := range one.Sections {
		if g := b.(*doc.Group); g.Title == "Head class" {
			for _, row := range g.Blocks[1].(*doc.Table).Rows {
				for _, cell := range row[1:] {
					counted += cell.(doc.Shaded).Count
				}
			}
		}
	}
	expect.Equal(t, counted, n/10, "the confusion matrix counts")
	return b.String()
}

func TestAClassifierHasAConfusionMatrixAndACalibration(t *testing.T) {
	contains(t, classifier(t), "Head class", "9 labelled images", "9 validation images of memory", `class="confusion"`, "Expected calibration error", "of the bins have fewer than 10 images: their accuracies say little", "Codes by class")
}

// Folders of images are sorted by class, so statistics of the first images would not represent all of them.
func TestStatisticsOfManyImagesAreOfImagesSpreadOverAll(t *testing.T) {
	const n, pixels = 12_000, 4
	values, labels := make([]float32, n*pixels), make([]int, n)
	for i := range n {
		labels[i] = i / (n / 2)
		values[i*pixels+2*labels[i]] = float32(i%7+1) / 8
	}
	images, err := data.FromFloats(values, []int{2, 2}, labels)
	fatal.If(t, err)
	m, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: images}, Encoder: []config.Layer{{Layer: &layers.Dense{Units: 2, Activation: "sigmoid"}}},
		Train: config.Train{Epochs: 1}})
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "many")
	r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: out})
	fatal.If(t, err)
	fatal.If(t, r.Close())
	one, err := page.ReadRun(t.Context(), out, page.Options{Open: tessera.Options{Threads: 1, Images: images}, Split: data.TrainSplit})
	fatal.If(t, err)
	var codes [][]any
	for _, b := range one.Sections {
		if g := b.(*doc.Group); g.Title == "Codes by class" {
			codes = g.Blocks[1].(*doc.Table).Rows
		}
	}
	if len(codes) != 2 || codes[0][1].(int)+codes[1][1].(int) != 10_000 || codes[1][1].(int) < 4_900 {
		t.Errorf("the codes by class are %v, want about 5,000 images of each", codes)
	}
	if last := one.Samples[len(one.Samples)-1]; last.Class != "1" || last.Number < 5_000 {
		t.Errorf("the last sample is image %d of class %s", last.Number, last.Class)
	}
	contains(t, factText(one.Top()), "measured on: 10,800 training images of memory (fitted to these samples)", "are of 10,000 of the images, evenly spread")
}

func TestAPageOfNothingIsAnError(t *testing.T) {
	expect.AnyError(t, (&page.Report{}).Write(&bytes.Buffer{}), "a page without runs was written")
	expect.AnyError(t, expect.Err(page.ReadRun(context.Background(), t.TempDir(), options)), "an empty folder was read as a run")
	expect.AnyError(t, expect.Err(page.ReadSweep(context.Background(), t.TempDir(), options)), "an empty folder was read as a sweep")
}
