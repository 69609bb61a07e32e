package hoyer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// hoyerVectors calls f with many kinds of vectors of 2 to 200 values: normal, sparse, tied, constant, far from the set,
// and in the set.
func hoyerVectors(count int, f func(v []float32, l1, l2 float64)) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		n := 2 + rng.IntN(199)
		v := make([]float32, n)
		for j := range v {
			switch i % 6 {
			case 0, 1:
				v[j] = float32(rng.NormFloat64())
			case 2: // many zeros
				v[j] = float32(max(rng.NormFloat64()-1, 0))
			case 3: // many ties
				v[j] = float32(rng.IntN(4))
			case 4: // all tied
				v[j] = 3
			case 5: // heavy tails, large
				v[j] = float32(math.Exp(3 * rng.NormFloat64()))
			}
		}
		l2 := math.Exp(rng.NormFloat64())
		f(v, l2*Norm(n, rng.Float64()), l2)
	}
}

func norms(v []float32) (l1, l2 float64) {
	for _, x := range v {
		l1 += math.Abs(float64(x))
		l2 += float64(x) * float64(x)
	}
	return l1, math.Sqrt(l2)
}

func squaredDistance(a, b []float32) float64 {
	var sum float64
	for i, x := range a {
		d := float64(x) - float64(b[i])
		sum += d * d
	}
	return sum
}

func TestHoyerProjectionIsFeasible(t *testing.T) {
	hoyerVectors(10_000, func(v []float32, l1, l2 float64) {
		Project(v, l1, l2)
		got1, got2 := norms(v)
		if math.Abs(got1-l1) > 2e-6*l1 || math.Abs(got2-l2) > 2e-6*l2 || minimum(v) < 0 {
			t.Fatalf("%d values: norms %v, %v, want %v, %v; smallest %v", len(v), got1, got2, l1, l2, minimum(v))
		}
	})
}

func TestHoyerProjectionIsIdempotent(t *testing.T) {
	hoyerVectors(10_000, func(v []float32, l1, l2 float64) {
		Project(v, l1, l2)
		again := append([]float32(nil), v...)
		Project(again, l1, l2)
		// If there are many nearest points, the projection of one of them is itself up to the square root of the
		// rounding error.
		if d := math.Sqrt(squaredDistance(v, again)); d > 1e-4*l2 {
			t.Fatalf("%d values: projected twice it moves by %v of %v", len(v), d, l2)
		}
	})
}

// alternating is Hoyer's own algorithm in float64. It projects onto the sum, then along a line onto the sphere, then
// sets negative entries to 0, until none is negative.
func alternating(s []float32, l1, l2 float64) []float64 {
	n := len(s)
	v, zero := make([]float64, n), make([]bool, n)
	spread := func() {
		free, sum := 0.0, 0.0
		for i, x := range v {
			if sum += x; !zero[i] {
				free++
			}
		}
		for i := range v {
			if v[i] += (l1 - sum) / free; zero[i] {
				v[i] = 0
			}
		}
	}
	for i, x := range s {
		v[i] = float64(x)
	}
	spread()
	for range n {
		free := 0.0
		for _, z := range zero {
			if !z {
				free++
			}
		}
		var a, b, c float64
		for i, x := range v {
			m := l1 / free
			if zero[i] {
				m = 0
			}
			w := x - m
			a, b, c = a+w*w, b+2*w*x, c+x*x
		}
		alpha := (-b + math.Sqrt(max(b*b-4*a*(c-l2*l2), 0))) / (2 * a)
		negative := false
		for i, x := range v {
			m := l1 / free
			if zero[i] {
				m = 0
			}
			v[i] = x + alpha*(x-m)
			negative = negative || v[i] < 0
		}
		if !negative {
			break
		}
		for i := range v {
			if zero[i] = v[i] <= 0; zero[i] {
				v[i] = 0
			}
		}
		spread()
	}
	return v
}

func norm(v []float64) float64 {
	var squares float64
	for _, x := range v {
		squares += x * x
	}
	return math.Sqrt(squares)
}

func TestHoyerProjectionEndsWhereHoyersAlgorithmDoes(t *testing.T) {
	compared := 0
	hoyerVectors(10_000, func(v []float32, l1, l2 float64) {
		if _, ties := maximum(v); float64(ties) >= 0.999*l1*l1/l2/l2 {
			return // there are many nearest points
		}
		want := alternating(v, l1, l2)
		if l := norm(want); math.Abs(l-l2) > 1e-6*l2 {
			return // Hoyer's line does not meet the sphere, because it removed entries too early
		}
		Project(v, l1, l2)
		var d float64
		for i, x := range want {
			d = max(d, math.Abs(x-float64(v[i])))
		}
		if d > 1e-4*l2 {
			t.Fatalf("%d values: differ by %v of %v", len(v), d, l2)
		}
		compared++
	})
	if compared < 5000 {
		t.Errorf("only %d vectors were compared", compared)
	}
}

// Any two feasible points differ by rotations that keep the sum and the norm. Rotations of three entries generate all
// of these. A neighbour is made by rotating three entries of the projection about the axis (1,1,1), which keeps the sum
// and the norm. It is feasible if it is non-negative.
func TestHoyerProjectionIsNearestAmongFeasibleNeighbours(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	neighbours := 0
	hoyerVectors(10_000, func(v []float32, l1, l2 float64) {
		if len(v) < 3 {
			return
		}
		u := append([]float32(nil), v...)
		Project(u, l1, l2)
		for range 20 {
			p := rng.Perm(len(v))[:3]
			a, b, c := float64(u[p[0]]), float64(u[p[1]]), float64(u[p[2]])
			angle := math.Pi * (2*rng.Float64() - 1)
			cos, sin := math.Cos(angle), math.Sin(angle)/math.Sqrt(3)
			m := (a + b + c) / 3
			x := m + cos*(a-m) + sin*(c-b)
			y := m + cos*(b-m) + sin*(a-c)
			z := m + cos*(c-m) + sin*(b-a)
			if min(x, y, z) < 0 {
				continue
			}
			neighbours++
			before := a*float64(v[p[0]]) + b*float64(v[p[1]]) + c*float64(v[p[2]])
			after := x*float64(v[p[0]]) + y*float64(v[p[1]]) + z*float64(v[p[2]])
			_, size := norms(v)
			if after > before+2e-6*l2*size { // a larger inner product means a smaller distance
				t.Fatalf("%d values: a feasible neighbour is nearer: inner product %v after %v", len(v), after, before)
			}
		}
	})
	if neighbours < 10_000 {
		t.Errorf("only %d neighbours were feasible", neighbours)
	}
}

// The projection onto the cone has the direction of Project. Its length is the component of the vector along this
// direction.
func TestConeHasTheDirectionOfTheProjection(t *testing.T) {
	hoyerVectors(1000, func(v []float32, l1, l2 float64) {
		u, w := append([]float32(nil), v...), append([]float32(nil), v...)
		Project(u, l1/l2, 1)
		ProjectCone(w, l1/l2)
		along := 0.0
		for i, x := range u {
			along += float64(x) * float64(v[i])
		}
		_, size := norms(v)
		for i, x := range u {
			if math.Abs(float64(w[i])-max(along, 0)*float64(x)) > 1e-6*size {
				t.Fatalf("%d values: element %d is %v, want %v", len(v), i, w[i], max(along, 0)*float64(x))
			}
		}
	})
}

func TestHoyerProjectionOfOddVectors(t *testing.T) {
	for name, c := range map[string]struct {
		v, want []float32
		l1, l2  float64
	}{
		"zeros, one entry":  {[]float32{0, 0, 0}, []float32{2, 0, 0}, 2, 2},
		"zeros, all equal":  {[]float32{0, 0, 0, 0}, []float32{1, 1, 1, 1}, 4, 2},
		"no norm":           {[]float32{1, 2}, []float32{0, 0}, 0, 0},
		"negative":          {[]float32{-3, -1, -2}, []float32{0, 1, 0}, 1, 1},
		"one value":         {[]float32{-5}, []float32{3}, 3, 3},
		"beyond the bounds": {[]float32{1, 2}, []float32{1, 1}, 5, math.Sqrt2},
	} {
		Project(c.v, c.l1, c.l2)
		if squaredDistance(c.v, c.want) > 1e-10 {
			t.Errorf("%s: got %v, want %v", name, c.v, c.want)
		}
	}
	Project(nil, 1, 1)
}

func BenchmarkHoyerProjection(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	source, v := make([]float32, 10_000), make([]float32, 10_000)
	for i := range source {
		source[i] = float32(rng.NormFloat64())
	}
	for b.Loop() {
		copy(v, source)
		Project(v, Norm(len(v), 0.6), 1)
	}
}
