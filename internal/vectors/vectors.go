// Package vectors computes with vectors in float64, for places that are too rare for the kernels of package kernel. Dot, Norm and Cosine of
// float32 have the same bits on every machine: their products are exact, and are added in the order of the elements.
package vectors

import "math"

// Float is the type of an element.
type Float interface{ float32 | float64 }

// Wide returns a copy in float64.
func Wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

// Narrow returns the float32 values nearest to v.
func Narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// Dot returns the sum over i of a[i] b[i]; b has at least the length of a.
func Dot[T Float](a, b []T) (sum float64) {
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

// FastDot is [Dot] with four independent sums, so that an addition need not wait for the previous one.
func FastDot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Norm returns the Euclidean norm.
func Norm[T Float](v []T) float64 { return math.Sqrt(Dot(v, v)) }

// Cosine returns the cosine similarity, 0 if one of the two is 0.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float64 // in one loop, whose sums do not wait for each other
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// Softmax writes the probabilities of logits into p.
func Softmax(p []float64, logits []float32) {
	most, sum := math.Inf(-1), 0.0
	for _, z := range logits {
		most = math.Max(most, float64(z))
	}
	for j, z := range logits {
		p[j] = math.Exp(float64(z) - most)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
}
