package figures_test

import (
	"fmt"
	"os"
	"path/filepath"

	"tessera/apps/show/figures"
	"tessera/metrics"
)

// The example draws user-defined models among those of the study: reconstruction error against max-approximation error.
func ExamplePareto() {
	ours := []figures.Point{
		{Label: "parts", Values: metrics.Values{{Name: "mse", Number: 0.0124}, {Name: "max_approx", Number: 0.048}}},
		{Label: "flat", Values: metrics.Values{{Name: "mse", Number: 0.0148}, {Name: "max_approx", Number: 0.0214}}},
		{Label: "no atoms", Values: metrics.Values{{Name: "mse", Number: 0.0090}}}, // left out
	}
	figure, err := figures.Pareto(ours, figures.PublishedTables("fashion-mnist"))
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "figures")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	fmt.Println(figure.Save(filepath.Join(folder, "pareto.svg")), figure.Save(filepath.Join(folder, "pareto.png")))
	// Output: <nil> <nil>
}

// The example draws two rows of images of 2x2 pixels.
func ExampleImageRows() {
	figure, err := figures.ImageRows(
		figures.ImageRow{Caption: "originals", Shape: []int{2, 2}, Images: []float32{0, 1, 1, 0, 1, 1, 0, 0}},
		figures.ImageRow{Caption: "shallow: mse 0.01", Shape: []int{2, 2}, Images: []float32{.1, .9, .9, .1, .9, .9, .1, .1}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(figure.Image().Bounds().Dx(), "pixels wide")
	// Output: 222 pixels wide
}
