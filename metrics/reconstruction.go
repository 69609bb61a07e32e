package metrics

import (
	"fmt"

	"tessera/team"
)

// MSE returns the mean squared error over images and pixels, mean (x - y)^2, as the study's tables have it: nothing is
// clipped. Of no values it is 0. Slices of different lengths are an error.
func MSE(images, reconstructions []float32) (float64, error) {
	plain, _, err := meanSquaredErrors(images, reconstructions)
	return plain, err
}

// ClippedMSE is [MSE] with the reconstructions clipped to [0,1] first: the convention of the study from January 2019 on.
func ClippedMSE(images, reconstructions []float32) (float64, error) {
	_, clipped, err := meanSquaredErrors(images, reconstructions)
	return clipped, err
}

// meanSquaredErrors sums in pieces of fixed size, so that the number of goroutines changes no bit.
func meanSquaredErrors(x, y []float32) (plain, clipped float64, err error) {
	if len(x) != len(y) {
		return 0, 0, fmt.Errorf("metrics: %d values cannot be compared with %d", len(x), len(y))
	}
	const piece = 1 << 14
	pieces := (len(x) + piece - 1) / piece
	plains, clippeds := make([]float64, pieces), make([]float64, pieces)
	team.For(len(x), piece, func(from, to int) {
		plains[from/piece], clippeds[from/piece] = squaredErrors(x[from:to], y[from:to])
	})
	return mean(plains, len(x)), mean(clippeds, len(x)), nil
}

// squaredError returns the sum of (x - y)^2.
func squaredError(x, y []float32) (sum float64) {
	y = y[:len(x)]
	for i, want := range x {
		d := float64(y[i]) - float64(want)
		sum += d * d
	}
	return sum
}

// squaredErrors returns the sums of (x - y)^2 and of (x - clip(y))^2.
func squaredErrors(x, y []float32) (plain, clipped float64) {
	y = y[:len(x)]
	for i, want := range x {
		d := float64(y[i]) - float64(want)
		plain += d * d
		d = float64(clip(y[i])) - float64(want)
		clipped += d * d
	}
	return plain, clipped
}

// clip returns the nearest value of [0,1]; NaN stays NaN.
func clip(v float32) float32 { return min(max(v, 0), 1) }

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
