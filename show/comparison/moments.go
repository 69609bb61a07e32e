package comparison

import "gonum.org/v1/gonum/stat"

// moments returns the mean and the standard deviation of the sample; the latter is 0 for one value.
func moments(values []float64) (mean, deviation float64) {
	if len(values) < 2 {
		return values[0], 0
	}
	return stat.MeanStdDev(values, nil)
}
