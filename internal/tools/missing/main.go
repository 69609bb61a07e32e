// Command missing measures the error of completing images in which half of the pixels are hidden, for docs/missing.md:
//
//	missing OUT
//
// trains the models of models.toml with three seeds, with their runs in OUT, and resumes interrupted runs. It prints a table
// of root mean squared errors of the hidden pixels of 1,000 test images, and writes OUT/missing.png. TESSERA_DATA is the
// folder that contains fashion-mnist/.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/data"
	"tessera/losses"
)

//go:embed models.toml
var models []byte

const (
	seeds  = 3
	tested = 1000
	shown  = 10
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: missing OUT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "missing:", err)
		os.Exit(1)
	}
}

// sample contains test images (whole), the same images with NaN for hidden pixels (given), and the mask of hidden pixels.
type sample struct{ whole, given, hidden []float32 }

// measure trains all models and prints their errors.
func measure(ctx context.Context, out string) error {
	names := []string{"parts", "nmf", "pca"}
	errs := map[string][]float64{}
	var rows []figures.ImageRow
	row := func(caption string, images []float32) {
		channels := len(images) / (tested * 28 * 28)
		rows = append(rows, figures.ImageRow{Caption: caption, Shape: []int{28, 28, channels}, Images: images[:shown*28*28*channels], Tone: figures.Unit})
	}
	for seed := 1; seed <= seeds; seed++ {
		for _, name := range names {
			run, err := trained(ctx, name, seed, out)
			if err != nil {
				return err
			}
			test, mean, err := samples(ctx, run)
			if err != nil {
				return err
			}
			filled, err := run.Complete(map[string][]float32{losses.Images: test.given})
			if err != nil {
				return err
			}
			if name == names[0] {
				errs["mean"] = append(errs["mean"], test.error(mean))
				if seed == 1 {
					row("images", test.whole)
					row("half of the pixels hidden", coloured(test.given))
					row("completed by the mean", mean)
				}
			}
			errs[name] = append(errs[name], test.error(filled))
			if seed == 1 {
				row("completed by "+name, filled)
			}
			if err := run.Close(); err != nil {
				return err
			}
		}
	}
	fmt.Println("| model | seed 1 | seed 2 | seed 3 | mean |\n| --- | --- | --- | --- | --- |")
	for _, name := range append([]string{"mean"}, names...) {
		total, cells := 0.0, []string{name}
		for _, e := range errs[name] {
			total += e / seeds
			cells = append(cells, fmt.Sprintf("%.4f", e))
		}
		fmt.Printf("| %s | %.4f |\n", strings.Join(cells, " | "), total)
	}
	f, err := figures.ImageRows(rows...)
	if err != nil {
		return err
	}
	return f.Save(filepath.Join(out, "missing.png"))
}

// trained trains a run, or opens it if it exists, and returns it.
func trained(ctx context.Context, name string, seed int, out string) (*tessera.Run, error) {
	file, err := config.Load("models.toml", models)
	if err != nil {
		return nil, err
	}
	file.Extend(tessera.Shipped())
	set, err := config.ParseSet(fmt.Sprintf("train.seed=%d", seed))
	if err != nil {
		return nil, err
	}
	model, err := file.Model(name, set)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(out, fmt.Sprintf("%s-%d", name, seed))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "train", folder)
		return tessera.Train(ctx, model, tessera.Options{Out: folder})
	}
	return tessera.Resume(ctx, folder, tessera.Options{})
}

// samples returns the test images and, for the same hidden pixels, the mean of the observed training pixels.
func samples(ctx context.Context, run *tessera.Run) (test *sample, mean []float32, err error) {
	fitted, err := run.Sample(ctx, data.TrainSplit)
	if err != nil {
		return nil, nil, err
	}
	held, err := run.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, nil, err
	}
	images := held.Images.First(tested)
	columns := images.All()
	test = &sample{columns[data.CompleteColumn], images.Raw(), columns[data.HeldOutColumn]}
	sums, counts := make([]float64, images.Pixels()), make([]float64, images.Pixels())
	for i, v := range fitted.Images.Raw() {
		if v == v {
			sums[i%len(sums)] += float64(v)
			counts[i%len(sums)]++
		}
	}
	mean = make([]float32, len(test.given))
	for i, v := range test.given {
		if mean[i] = v; v != v {
			mean[i] = float32(sums[i%len(sums)] / counts[i%len(sums)])
		}
	}
	return test, mean, nil
}

// error returns the root mean squared error of the hidden pixels.
func (s *sample) error(filled []float32) float64 {
	sum, count := 0.0, 0.0
	for i, hidden := range s.hidden {
		if hidden != 0 {
			d := float64(filled[i]) - float64(s.whole[i])
			sum, count = sum+d*d, count+1
		}
	}
	return math.Sqrt(sum / count)
}

// coloured returns images with three channels. Hidden pixels are blue.
func coloured(values []float32) (images []float32) {
	for _, v := range values {
		if v == v {
			images = append(images, v, v, v)
		} else {
			images = append(images, 0.25, 0.45, 0.8)
		}
	}
	return images
}
