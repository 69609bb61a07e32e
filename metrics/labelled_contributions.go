package metrics

import (
	"fmt"
	"math"
	"slices"

	"tessera/data"
)

// labelled collects the contributions h_j |w_j|_2 of the labelled images.
type labelled struct {
	name   string // of the metric, for messages
	scales []float64
	rows   []float64 // n x units
	labels []int
}

// newLabelled returns a collection of what a subject contributes.
func newLabelled(name string, s *Subject) labelled {
	return labelled{name: name, scales: s.Atoms.scales()}
}

// Add implements [Meter].
func (l *labelled) Add(b *Batch) error {
	k := len(l.scales)
	for i, label := range b.Labels {
		if label < 0 {
			continue
		}
		for j, v := range b.Codes[i*k : (i+1)*k] {
			l.rows = append(l.rows, float64(v)*l.scales[j])
		}
		l.labels = append(l.labels, label)
	}
	return nil
}

// classes returns the index of the class of each image, and how many classes there are. Contributions that are not finite
// are an error; fewer than two classes are a [*data.Error].
func (l *labelled) classes() (indices []int, count int, err error) {
	for i, v := range l.rows {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, 0, fmt.Errorf("metrics: %s: the code of labelled image %d is not finite", l.name, i/len(l.scales))
		}
	}
	all := slices.Compact(slices.Sorted(slices.Values(l.labels)))
	if len(all) < 2 {
		return nil, 0, &data.Error{Problem: fmt.Sprintf("%s: %d classes, want at least 2", l.name, len(all)), Hint: "measure without " + l.name}
	}
	indices = make([]int, len(l.labels))
	for i, label := range l.labels {
		indices[i], _ = slices.BinarySearch(all, label)
	}
	return indices, len(all), nil
}
