package vectors

// Quantile returns the quantile q of ascending numbers, interpolated linearly as NumPy does by default.
func Quantile[F Float](ascending []F, q float64) float64 {
	at := q * float64(len(ascending)-1)
	low := int(at)
	high := min(low+1, len(ascending)-1)
	return float64(ascending[low]) + (at-float64(low))*(float64(ascending[high])-float64(ascending[low]))
}
