package metrics

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

// Weighted is a [Coder] that returns the last weight of its decoder even if it is not a dictionary of atoms: for example the
// filters of a convolution.
type Weighted interface {
	Coder
	// LastWeight returns the weight of the decoder's last layer with weights, nil if there is none. The result is read-only.
	LastWeight() []float32
}

// LastWeight returns the weight of the last layer with weights in a coder's decoder. For a coder that is not [Weighted] it
// returns the atoms.
func LastWeight(c Coder) []float32 {
	if w, ok := As[Weighted](c); ok {
		return w.LastWeight()
	}
	if a := c.Atoms(); a != nil {
		return a.Values
	}
	return nil
}

// NegativeWeights counts the negative values of the weight of a decoder's last layer with weights, without the bias.
func NegativeWeights(weight []float32) int {
	count := 0
	for _, v := range weight {
		if v < 0 {
			count++
		}
	}
	return count
}
