package optim

import "math"

// NormBlock is how many gradient elements [Norm] adds up at a time.
const NormBlock = 4096

// Norm returns the global norm of all gradients together: the Euclidean length of their concatenation, in float64,
// where no square of a float32 overflows. The order of the additions is fixed: the [SquareSum] of each block of NormBlock
// elements of each gradient, one after the other. So a team that computes the blocks side by side and adds them up in
// that order gets the same bits.
func Norm(gradients ...[]float32) float64 {
	total := 0.0
	for _, g := range gradients {
		for ; len(g) > NormBlock; g = g[NormBlock:] {
			total += SquareSum(g[:NormBlock])
		}
		total += SquareSum(g)
	}
	return math.Sqrt(total)
}

// SquareSum returns the sum of squares in float64, always in the same order for the same length.
func SquareSum(g []float32) float64 {
	var s [4]float64 // four sums at a time: one alone would wait for each addition
	for ; len(g) >= 4; g = g[4:] {
		a, b, c, d := float64(g[0]), float64(g[1]), float64(g[2]), float64(g[3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for _, v := range g {
		s[0] += float64(v) * float64(v)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// ClipFactor returns what every gradient must be multiplied by so that their global norm is at most limit:
// min(1, limit/(norm + 1e-6)), PyTorch's clip_grad_norm_. A limit of 0 does not clip. The factor of a NaN norm is NaN: a
// diverged step must be seen, not clipped away.
func ClipFactor(norm, limit float64) float64 {
	if limit == 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}
