package metrics

import "tessera/internal/vectors"

func init() {
	register("cosine", "mean cosine similarity of samples and reconstructions", Description{
		Measures: []Measure{{Name: "cosine", Better: Higher,
			Doc: "mean over samples of the cosine similarity of x and y, x·y / (\\|x\\| \\|y\\|). A sample where x or y is all zero counts as 0"}},
		Reads: ReadsImages | ReadsOutputs, ScaleFree: true,
	}, ofPixels(func(x, y []float32) float64 {
		return float64(len(x)) * vectors.Cosine(x, y) // the sum is divided by the number of values
	}))
}
