package classical_test

import (
	"context"
	"fmt"

	"tessera/classical"
)

// The example fits four images of 2 x 2 pixels that consist of two parts, the left and the right column.
func ExampleFit() {
	images, err := classical.NewMatrix([]float32{
		1, 0, 1, 0,
		0, 1, 0, 1,
		1, 1, 1, 1,
		3, 2, 3, 2,
	}, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	method := &classical.NMF{Components: 2, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 200}
	model, err := method.New([]int{2, 2}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	progress, err := classical.Fit(context.Background(), model, images, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean squared error %.4f\n", progress.Objective)
	codes, err := model.Encode([]float32{5, 4, 5, 4}) // not among the images
	if err != nil {
		fmt.Println(err)
		return
	}
	decoded, err := model.Decode(codes)
	fmt.Printf("%.1f %v\n", decoded, err)
	// Output:
	// mean squared error 0.0000
	// [5.0 4.0 5.0 4.0] <nil>
}
