package morph_test

import (
	"fmt"

	"tessera/data/morph"
)

// A dilation by the disk of radius 1 extends each value to its four neighbours. An opening removes structures that are smaller
// than the disk.
func ExampleApply() {
	image := []float32{
		0, 0, 0, 0,
		0, 5, 0, 0,
		0, 0, 0, 0,
	}
	for _, op := range []morph.Operator{morph.Dilation, morph.Opening} {
		out, err := morph.Apply(op, morph.Disk, 1, image, []int{3, 4})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(op, out[:4], out[4:8], out[8:])
	}
	// Output:
	// dilation [0 5 0 0] [5 5 5 0] [0 5 0 0]
	// opening [0 0 0 0] [0 0 0 0] [0 0 0 0]
}
