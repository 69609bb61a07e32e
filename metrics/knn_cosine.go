package metrics

import (
	"context"

	"tessera/internal/fit"
)

func init() {
	Registry.Register("knn_cosine", "classification of the codes of any encoder by their nearest neighbours", func() Metric { return &KNNCosine{Neighbours: 5} })
}

// KNNCosine is [KNN] with the cosine similarity of codes instead of the distance of contributions. It is applicable to every
// encoder, also without a decoder. A code of zeros has the same distance from all others.
//
// Source: Z. Wu et al., Unsupervised feature learning via non-parametric instance discrimination, CVPR 2018.
type KNNCosine struct {
	Neighbours int `toml:"neighbours" want:"> 0" doc:"number of neighbours that determine the class; 0 means 5"`
}

func (*KNNCosine) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "knn_cosine_accuracy", Better: Higher,
			Doc: "accuracy of classifying every labelled sample by the 5 other measured samples with labels whose codes have the largest cosine similarity " +
				"with its code. For any encoder"}},
		Reads: ReadsCodes | ReadsLabels, Ordered: true, OnRequest: true,
	}
}

// Start scales the codes to length 1.
func (m *KNNCosine) Start(s *Subject) (Meter, error) {
	count := neighbours(m.Neighbours)
	return &readout{name: "knn_cosine_accuracy", units: s.Units, values: func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		p = p.Clone()
		for i := range p.N {
			toLength1(p.Code(i), s.Units)
		}
		return count(ctx, p)
	}}, nil
}

// toLength1 divides every row by its length. A row of zeros stays zero.
func toLength1(rows []float64, width int) {
	for from := 0; from < len(rows); from += width {
		row := rows[from : from+width]
		if length := fit.Norm(row); length > 0 {
			for j := range row {
				row[j] /= length
			}
		}
	}
}
