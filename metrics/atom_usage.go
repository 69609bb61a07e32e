package metrics

// UsageThreshold is the mean activation above which the study counts an atom as used.
const UsageThreshold = 0.1

// UsedUnits returns the units whose mean activation over all codes is above the threshold (the study: [UsageThreshold]).
func UsedUnits(codes []float32, units int, threshold float64) ([]int, error) {
	means, err := unitMeans(codes, units)
	if err != nil {
		return nil, err
	}
	var used []int
	for j, m := range means {
		if m > threshold {
			used = append(used, j)
		}
	}
	return used, nil
}
