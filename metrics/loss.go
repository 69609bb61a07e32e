package metrics

import "tessera/data"

func init() {
	register("loss", "the objective of the training, without noise", Description{
		Measures: []Measure{{Name: "loss", Better: Lower,
			Doc: "the objective of the training: the sum of the weighted loss terms, without noise, mean over batches of up to 500 samples. " +
				"Scheduled weights have their last value. Not applicable if a term exists in training only, because it compares samples or reads views or a teacher. Measured by default only for models that neither reconstruct samples nor classify"}},
		Reads: ReadsImages | ReadsObjective, InPlaceOf: ReadsOutputs | ReadsLogits, Masked: true,
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

// ObjectiveCoder is a [Coder] that can compute its training objective.
type ObjectiveCoder interface {
	Coder
	// MeasuresObjective reports whether every term of the objective can be computed for samples with certain columns. has
	// reports which columns, such as "labels", the samples have.
	MeasuresObjective(has func(column string) bool) bool
	// Objective returns the objective for b as one batch, from its images, labels and columns.
	Objective(b *Batch) (float64, error)
}

// measuresObjective reports whether the coder can compute the objective for a sample.
func measuresObjective(c Coder, s Sample) bool {
	o, ok := c.(ObjectiveCoder)
	return ok && o.MeasuresObjective(func(column string) bool {
		return column == data.ImagesColumn || column == data.LabelsColumn && s.Labels != nil || s.Columns[column] != nil
	})
}
