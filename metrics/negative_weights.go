package metrics

// The metric negative_weights is [NegativeWeights] of the model that is measured.
func init() {
	register("negative_weights", "weights of the decoder below zero", Description{
		Measures: []Measure{{Name: "negative_weights", Unit: "weights", Better: Lower, Count: true,
			Doc: "number of values below 0 in the weight of the decoder's last layer with weights: atoms, or filters if that " +
				"layer is a convolution. A bias does not count. metrics.jsonl has the same count"}},
		Reads: ReadsWeights, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		return Fixed(Number(float64(NegativeWeights(s.Weight)))), nil
	})
}

// Weighted is a [Coder] that returns the last weight of its decoder even if this is not a dictionary, for example the filters
// of a convolution.
type Weighted interface {
	Coder
	// LastWeight returns the values of the weight of the decoder's last layer that has one, nil where none has. They are
	// not to be changed.
	LastWeight() []float32
}

// LastWeight returns the values of the weight of the last layer of a coder's decoder that has one. For a coder
// that is not [Weighted] these are its atoms.
func LastWeight(c Coder) []float32 {
	if w, ok := c.(Weighted); ok {
		return w.LastWeight()
	}
	if a := c.Atoms(); a != nil {
		return a.Values
	}
	return nil
}

// NegativeWeights counts the values below zero of the weight of a decoder's last layer that has one; a bias does not count.
func NegativeWeights(weight []float32) int {
	count := 0
	for _, v := range weight {
		if v < 0 {
			count++
		}
	}
	return count
}
