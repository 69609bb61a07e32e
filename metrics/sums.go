package metrics

import "tessera/parallel/team"

// imageSum adds up what each image gives, image after image: the sum does not depend on batches or processors.
type imageSum struct {
	each []float64
	sum  float64
	n    int
}

// add takes n more images; of is called from several goroutines at once, for at most grain images by each.
func (s *imageSum) add(n, grain int, of func(i int) float64) {
	if len(s.each) < n {
		s.each = make([]float64, n)
	}
	team.For(n, grain, func(from, to int) {
		for i := from; i < to; i++ {
			s.each[i] = of(i)
		}
	})
	for _, v := range s.each[:n] {
		s.sum += v
	}
	s.n += n
}

// mean is the mean over images, divided by valuesPerImage; 0 without images.
func (s *imageSum) mean(valuesPerImage int) float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n*valuesPerImage)
}

// mean returns the sum of the values, added in order, over n; 0 when n is 0.
func mean(values []float64, n int) float64 {
	if n == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(n)
}
