package metrics_test

import (
	"fmt"

	"tessera/metrics"
)

// Two atoms of 2x2 pixels and a bias, compared with three true parts.
func ExamplePartsRecovered() {
	atoms := &metrics.Atoms{
		Shape:  []int{2, 2},
		Count:  2,
		Values: []float32{3, 3, 0, 0, 0, 0, 1, 0},
		Bias:   []float32{0, 0, 0, 2},
	}
	parts := [][]float32{{1, 1, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}}
	table, err := metrics.PartsRecovered(parts, atoms, metrics.PartCosine)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, row := range table {
		fmt.Printf("part %d: atom %d, cosine %.2f, found %t\n", i, row.Atom, row.Cosine, row.Found)
	}
	// Output:
	// part 0: atom 0, cosine 1.00, found true
	// part 1: atom 1, cosine 0.71, found false
	// part 2: atom -1, cosine 1.00, found true
}
