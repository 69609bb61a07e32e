// Package hoyer projects vectors onto sets of vectors with a given Hoyer sparsity, for factorisations and constraints.
package hoyer

import "math"

// Norm returns the L1 norm of a non-negative vector of n values that has L2 norm 1 and Hoyer sparsity s: sqrt n - (sqrt
// n - 1) s, between 1 and sqrt n.
func Norm(n int, s float64) float64 {
	root := math.Sqrt(float64(n))
	return min(max(root-(root-1)*s, 1), root)
}

// Project replaces v by a nearest point of {u >= 0, |u|_1 = l1, |u|_2 = l2}. For n values, l2 <= l1 <= sqrt(n) l2 is
// required; for other values the set is empty, and l1 is moved to the nearer bound. If l2 is 0, v becomes 0.
//
// |u|_2 is constant on the set, so a nearest point has the largest <u, v>. Relaxed to |u|_2 <= l2 this is a convex
// problem. By its optimality conditions u = b max(v - t, 0), with a threshold t and a factor b. The ratio of the norms
// |max(v-t, 0)|_1 / |max(v-t, 0)|_2 falls from sqrt n towards sqrt m while t rises to the largest value, where m is the
// number of entries with the largest value. So t is the root of ratio(t) = l1/l2. If the entries above t are given, the
// equation is quadratic. If m is so large that there is no root, there are many nearest points: see spreadTied.
//
// Sources: P. O. Hoyer, Non-negative matrix factorization with sparseness constraints, JMLR 5, 2004 (the problem; his
// alternating projections end in the same point); M. Thom, G. Palm, Sparse activity and sparse connectivity in
// supervised learning, JMLR 14, 2013 (the threshold).
func Project(v []float32, l1, l2 float64) {
	if len(v) == 0 || !(l2 > 0) {
		clear(v)
		return
	}
	project(v, l1/l2, func(float64) float64 { return l2 })
}

// ProjectCone replaces v by a nearest point of {u >= 0, |u|_1 = ratio |u|_2}. The direction of u is that of [Project].
// The length of u is the component of v along this direction, or 0 if the component is negative.
func ProjectCone(v []float32, ratio float64) {
	if len(v) > 0 {
		project(v, ratio, func(along float64) float64 { return max(along, 0) })
	}
}

// project replaces v by the nearest point with the given ratio of the norms and the length l2(along), where along is
// the component of v along the direction of the point.
func project(v []float32, ratio float64, l2 func(along float64) float64) {
	n := float64(len(v))
	ratio = min(max(ratio, 1), math.Sqrt(n))
	largest, ties := maximum(v)
	switch squared := ratio * ratio; {
	case n-squared <= 1e-12*n: // the set has only one point, which no threshold gives
		sum := 0.0
		for _, x := range v {
			sum += float64(x)
		}
		length := l2(sum / math.Sqrt(n))
		for i := range v {
			v[i] = float32(length / math.Sqrt(n))
		}
	case float64(ties) >= squared:
		spreadTied(v, largest, ratio, l2(float64(largest)*ratio))
	default:
		t, squares := threshold(v, largest, ratio)
		b := l2(math.Sqrt(squares)+t*ratio) / math.Sqrt(squares)
		for i, x := range v {
			v[i] = float32(b * max(float64(x)-t, 0))
		}
	}
}

// threshold finds the root t of ratio(t) = ratio below the largest value. squares is the sum of the squares of max(v-t,
// 0). Each round solves the quadratic equation for the entries above t, at first for all entries. t is the root when
// the entries above it stay the same. Until then t is bracketed, and bisected if the solution lies outside of the
// bracket.
func threshold(v []float32, largest float32, ratio float64) (t, squares float64) {
	const rounds = 100 // maximum in case of rounding errors: 5 to 10 are needed
	low, high := math.Inf(-1), float64(largest)
	t = float64(minimum(v)) - 1
	count, sum, squares := moments(v, t)
	for range rounds {
		next := solve(t, count, sum, squares, ratio)
		solved := next > low && next < high
		if !solved {
			next = (max(low, t) + high) / 2
		}
		c, s, q := moments(v, next)
		if solved && c == count || next == t {
			return next, q
		}
		if s > ratio*math.Sqrt(q) {
			low = next
		} else {
			high = next
		}
		t, count, sum, squares = next, c, s, q
	}
	return t, squares
}

// solve returns the threshold at which count entries have the given ratio of norms. sum and squares are the sum and the
// sum of squares of the excesses of these entries over t. It returns -Inf if there are too few entries for the ratio.
func solve(t, count, sum, squares, ratio float64) float64 {
	mean := sum / count
	scatter := max(squares-sum*mean, 0)
	if !(count > ratio*ratio) {
		return math.Inf(-1)
	}
	return t + mean - ratio*math.Sqrt(scatter/(count*(count-ratio*ratio)))
}

// moments returns the number, the sum and the sum of squares of the excesses v-t that are not negative. The sign bit selects
// them without a branch, which a processor could not predict.
func moments(v []float32, t float64) (count, sum, squares float64) {
	var below uint64
	for _, x := range v {
		e := math.Float64bits(float64(x) - t)
		negative := e >> 63
		below += negative
		excess := math.Float64frombits(e & (negative - 1))
		sum += excess
		squares += excess * excess
	}
	return float64(len(v)) - float64(below), sum, squares
}

// maximum returns the largest value and how many entries share it.
func maximum(v []float32) (largest float32, ties int) {
	largest = v[0]
	for _, x := range v {
		switch {
		case x > largest:
			largest, ties = x, 1
		case x == largest:
			ties++
		}
	}
	return largest, ties
}

func minimum(v []float32) float32 {
	smallest := v[0]
	for _, x := range v {
		smallest = min(smallest, x)
	}
	return smallest
}

// spreadTied writes one of the nearest points if several entries share the largest value. All points of the set that
// are 0 at the other entries are equally near. It uses the smallest number p of entries that can have the ratio of
// norms. The first entry gets the larger root x of x + (p-1) y = l1, x^2 + (p-1) y^2 = l2^2, the others get y.
func spreadTied(v []float32, largest float32, ratio, l2 float64) {
	p := max(math.Ceil(ratio*ratio-1e-12*ratio*ratio), 1)
	x := (ratio + math.Sqrt(max((p-1)*(p-ratio*ratio), 0))) / p
	y := (ratio - x) / max(p-1, 1)
	taken := 0.0
	for i, value := range v {
		switch {
		case value != largest || taken == p:
			v[i] = 0
		case taken == 0:
			v[i] = float32(l2 * x)
			taken++
		default:
			v[i] = float32(l2 * max(y, 0))
			taken++
		}
	}
}
