package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"tessera/data"
	"tessera/internal/parallel/team"
)

// Labelled contains codes with their classes: rows with an appended constant 1.
type Labelled struct {
	Rows    []float64 // N x Width, row-major
	Width   int       // including the constant
	N       int
	Classes []int // the classes that occur, ascending; see [Labelled.Indexed]
	Labels  []int // class of each row; of [Labelled.Indexed] its index in Classes
}

// Add adds a code, multiplied by scales, one factor for each unit; nil means 1.
func (p *Labelled) Add(code []float32, scales []float64, class int) {
	for j, v := range code {
		if scales != nil {
			p.Rows = append(p.Rows, float64(v)*scales[j])
		} else {
			p.Rows = append(p.Rows, float64(v))
		}
	}
	p.Rows, p.Labels, p.Width, p.N = append(p.Rows, 1), append(p.Labels, class), len(code)+1, p.N+1
}

// Indexed returns the same rows, with the classes that occur and with indices into them as labels. name is that of the metric, for errors: a
// value that is not finite, and, with a [*data.Error], fewer than two classes.
func (p *Labelled) Indexed(name string) (*Labelled, error) {
	for i, v := range p.Rows {
		if v-v != 0 { // infinite or NaN
			return nil, fmt.Errorf("%s: code %d has the value %g", name, i/p.Width, v)
		}
	}
	other := *p
	var err error
	other.Classes, other.Labels, err = Classes(name, p.Labels)
	return &other, err
}

// Of returns the labelled codes of n rows of features, indexed.
func Of(name string, features []float32, width int, labels []int) (*Labelled, error) {
	if width < 1 || len(features)%width != 0 {
		return nil, fmt.Errorf("%s: got %d values, want a multiple of %d", name, len(features), width)
	}
	if n := len(features) / width; len(labels) != n {
		return nil, fmt.Errorf("%s: %d labels for %d codes", name, len(labels), n)
	}
	p := &Labelled{Width: width + 1}
	for i, label := range labels {
		p.Add(features[i*width:(i+1)*width], nil, label)
	}
	return p.Indexed(name)
}

// Classes returns the classes that occur, ascending, and the index of each label among them. Fewer than two classes are
// a [*data.Error], which names the metric.
func Classes(metric string, labels []int) (classes, indices []int, err error) {
	classes = slices.Compact(slices.Sorted(slices.Values(labels)))
	if len(classes) < 2 {
		return nil, nil, &data.Error{Problem: fmt.Sprintf("%s: %d classes, want at least 2", metric, len(classes)), Hint: "measure without " + metric}
	}
	indices = make([]int, len(labels))
	for i, label := range labels {
		indices[i], _ = slices.BinarySearch(classes, label)
	}
	return classes, indices, nil
}

// Row returns row i with the constant.
func (p *Labelled) Row(i int) []float64 { return p.Rows[i*p.Width : (i+1)*p.Width] }

// Code returns row i without the constant.
func (p *Labelled) Code(i int) []float64 { return p.Rows[i*p.Width : (i+1)*p.Width-1] }

// Clone returns a deep copy of the rows; labels and classes are shared.
func (p *Labelled) Clone() *Labelled {
	other := *p
	other.Rows = slices.Clone(p.Rows)
	return &other
}

// Subset returns copies of some of the rows. The indices of the classes do not change.
func (p *Labelled) Subset(indices []int) *Labelled {
	s := &Labelled{Width: p.Width, N: len(indices), Classes: p.Classes}
	s.Rows, s.Labels = make([]float64, 0, len(indices)*p.Width), make([]int, 0, len(indices))
	for _, i := range indices {
		s.Rows = append(s.Rows, p.Row(i)...)
		s.Labels = append(s.Labels, p.Labels[i])
	}
	return s
}

// Against returns copies of the given units of some rows, with two classes: 1 for rows of the class, 0 for others.
func (p *Labelled) Against(class int, rows, units []int) *Labelled {
	s := &Labelled{Width: len(units) + 1, N: len(rows), Classes: []int{0, 1}}
	for _, i := range rows {
		label := 0
		if p.Labels[i] == class {
			label = 1
		}
		for _, j := range units {
			s.Rows = append(s.Rows, p.Row(i)[j])
		}
		s.Rows, s.Labels = append(s.Rows, 1), append(s.Labels, label)
	}
	return s
}

// Scale divides every unit, in p and in other, by its root mean square over p.
func (p *Labelled) Scale(other *Labelled) {
	for j := range p.Width - 1 {
		squares := 0.0
		for i := range p.N {
			v := p.Rows[i*p.Width+j]
			squares += v * v
		}
		if squares == 0 {
			continue
		}
		factor := 1 / math.Sqrt(squares/float64(p.N))
		for _, q := range []*Labelled{p, other} {
			for i := range q.N {
				q.Rows[i*q.Width+j] *= factor
			}
		}
	}
}

// Split returns the indices of a random split, ascending: ceil(fraction n) are in test. The shares of the classes
// are as close as possible to their shares in the full set (largest remainders are rounded up, for equal remainders the lower
// class first). Every class needs at least two images, and at least one of them stays in train.
func (p *Labelled) Split(fraction float64, r *rand.Rand) (train, test []int, err error) {
	members := make([][]int, len(p.Classes))
	for i, l := range p.Labels {
		members[l] = append(members[l], i)
	}
	for class, quota := range shares(members, p.N, fraction) {
		of := members[class]
		if len(of) < 2 || len(of) == quota {
			return nil, nil, &data.Error{Problem: fmt.Sprintf("svm: a class is too small: only %d of its samples are left to be split", len(of)),
				Hint: "measure without the SVM, or on ten samples of every class or more"}
		}
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		test = append(test, of[:quota]...)
		train = append(train, of[quota:]...)
	}
	slices.Sort(train)
	slices.Sort(test)
	return train, test, nil
}

// shares returns the number of members of each class for test.
func shares(members [][]int, n int, fraction float64) []int {
	total := int(math.Ceil(fraction * float64(n)))
	quotas, remainders, order := make([]int, len(members)), make([]int, len(members)), make([]int, len(members))
	left := total
	for class, of := range members {
		quotas[class], remainders[class] = total*len(of)/n, total*len(of)%n
		left -= quotas[class]
		order[class] = class
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b] - remainders[a] })
	for _, class := range order[:left] {
		quotas[class]++
	}
	return quotas
}

// NearestCentroid returns the fraction of the rows of test that are nearest to the mean of their own class.
func (p *Labelled) NearestCentroid(test *Labelled) float64 {
	means, counts := make([]float64, len(p.Classes)*p.Width), make([]float64, len(p.Classes))
	for i, class := range p.Labels {
		counts[class]++
		for j, v := range p.Row(i) {
			means[class*p.Width+j] += v
		}
	}
	for i := range means {
		means[i] /= counts[i/p.Width]
	}
	right := make([]float64, test.N)
	team.For(test.N, 100, func(from, to int) {
		for i := from; i < to; i++ {
			best, least := 0, math.Inf(1)
			for class := range p.Classes {
				if d := SquaredDistance(test.Row(i), means[class*p.Width:(class+1)*p.Width]); d < least {
					best, least = class, d
				}
			}
			if best == test.Labels[i] {
				right[i] = 1
			}
		}
	})
	return floats.Sum(right) / float64(max(1, len(right)))
}

// SquaredDistance returns the sum of (a - b)^2.
func SquaredDistance(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		d := v - b[i]
		sum += d * d
	}
	return sum
}
