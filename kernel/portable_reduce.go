package kernel

import "math"

// portableReduce sums in float64, one element after the other: in float32 the result is then correct to about a
// rounding, which makes it a reference for the back ends that sum in lanes.
func portableReduce[T Float](s *Set[T]) {
	s.Sum = reduce(func(a T) float64 { return float64(a) })
	s.SumAbs = reduce(func(a T) float64 { return math.Abs(float64(a)) })
	s.SumSquares = reduce(func(a T) float64 { return float64(a) * float64(a) })
	s.Dot = reduce2(func(a, b T) float64 { return float64(a) * float64(b) })
	s.SquaredDistance = reduce2(func(a, b T) float64 {
		d := float64(a) - float64(b)
		return d * d
	})
	s.Maximum = func(a []T) T {
		m := T(math.Inf(-1))
		for _, v := range a {
			m = larger(m, v)
		}
		return m
	}
	s.Minimum = func(a []T) T {
		m := T(math.Inf(1))
		for _, v := range a {
			m = smaller(m, v)
		}
		return m
	}
}

func reduce[T Float](f func(a T) float64) Reduce[T] {
	return func(a []T) T {
		var sum float64
		for _, v := range a {
			sum += f(v)
		}
		return T(sum)
	}
}

func reduce2[T Float](f func(a, b T) float64) Reduce2[T] {
	return func(a, b []T) T {
		n := min(len(a), len(b))
		a, b = a[:n], b[:n]
		var sum float64
		for i, v := range a {
			sum += f(v, b[i])
		}
		return T(sum)
	}
}
