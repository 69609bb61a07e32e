package metrics

import (
	"fmt"
	"math"
)

// KLTarget is the activation that the study's measure expects where a model has no target of its own.
const KLTarget = 0.01

// klClip keeps means away from 0 and 1, where the divergence is infinite.
const klClip = 1e-7

// KL returns the sum over units of the Kullback-Leibler divergence KL(p || t_j) = p ln(p/t_j) + (1-p) ln((1-p)/(1-t_j)),
// where t_j is the mean of unit j over all codes, clipped to [1e-7, 1-1e-7]. ok is false where a code leaves [0,1] (or
// is NaN) or there is none: the measure has no meaning there. A target outside (0,1) is an error.
func KL(codes []float32, units int, target float64) (sum float64, ok bool, err error) {
	if !(target > 0 && target < 1) {
		return 0, false, fmt.Errorf("metrics: kl target %g, want in (0,1)", target)
	}
	means, err := unitMeans(codes, units)
	if err != nil {
		return 0, false, err
	}
	if len(codes) == 0 {
		return 0, false, nil
	}
	for _, v := range codes {
		if !(v >= 0 && v <= 1) {
			return 0, false, nil
		}
	}
	for _, t := range means {
		t = min(max(t, klClip), 1-klClip)
		sum += target*math.Log(target/t) + (1-target)*math.Log((1-target)/(1-t))
	}
	return sum, true, nil
}

// unitMeans returns the mean activation of every unit over all codes; zeros when there is no code.
func unitMeans(codes []float32, units int) ([]float64, error) {
	n, err := rowCount(codes, units)
	if err != nil {
		return nil, err
	}
	means := make([]float64, units)
	for i := range n {
		for j, v := range codes[i*units : (i+1)*units] {
			means[j] += float64(v)
		}
	}
	for j := range means {
		means[j] /= float64(max(n, 1))
	}
	return means, nil
}
