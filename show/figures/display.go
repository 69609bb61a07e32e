package figures

import "slices"

// displayed has the indices of the test images that the study shows.
var displayed = map[string][]int{
	"fashion-mnist": {0, 1, 31, 3, 4, 5, 6, 7, 8, 9},
	"mnist":         {0, 1, 2, 3, 4, 18, 21, 7, 8, 61},
}

// DisplayIndices returns the indices of the test images, of n, that figures show: the study's ten, otherwise ten evenly
// spread ones, or all if there are fewer.
func DisplayIndices(dataset string, n int) []int {
	if indices := displayed[dataset]; indices != nil && n > slices.Max(indices) {
		return slices.Clone(indices)
	}
	indices := make([]int, min(10, n))
	for i := range indices {
		indices[i] = i * n / len(indices)
	}
	return indices
}
