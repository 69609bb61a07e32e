package metrics

func init() {
	register("loss", "the objective of the training, without noise", Description{
		Measures: []Measure{{Name: "loss", Better: Lower,
			Doc: "the objective of the training: the sum of the weighted loss terms, without noise, mean over batches of up to 500 samples. " +
				"Scheduled weights have their last value. Not applicable if a term exists in training only, because it compares samples or reads views or a teacher"}},
		Reads: ReadsImages | ReadsObjective, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		pixels, sum, n := 1, 0.0, 0
		for _, d := range s.Shape {
			pixels *= d
		}
		return meter{
			add: func(b *Batch) error {
				count := len(b.Images) / pixels
				sum, n = sum+b.Objective*float64(count), n+count
				return nil
			},
			values: func() []Value { return []Value{Number(sum / float64(max(1, n)))} },
		}, nil
	})
}

// ObjectiveCoder is a [Coder] that can compute the objective of its training.
type ObjectiveCoder interface {
	Coder
	// MeasuresObjective reports whether every term of the objective can be computed, of images with or without labels.
	MeasuresObjective(labelled bool) bool
	// Objective returns the objective of n = len(images)/pixels images as one batch, with one label for each, negative where it is
	// unknown; labels may be nil.
	Objective(images []float32, labels []int) (float64, error)
}

// measuresObjective reports whether the coder can compute the objective.
func measuresObjective(c Coder, labelled bool) bool {
	o, ok := c.(ObjectiveCoder)
	return ok && o.MeasuresObjective(labelled)
}
