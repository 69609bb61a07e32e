package metrics

import "math"

// deadFraction of the greatest activation of any unit is what a unit must reach once to count as alive.
const deadFraction = 0.01

// DeadUnits returns the units whose greatest activation over all codes is below 1 % of the greatest of any unit. When no
// activation is positive, no unit is ever active: all are dead.
func DeadUnits(codes []float32, units int) ([]int, error) {
	n, err := rowCount(codes, units)
	if err != nil {
		return nil, err
	}
	greatest := make([]float64, units)
	for j := range greatest {
		greatest[j] = math.Inf(-1)
	}
	for i := range n {
		for j, v := range codes[i*units : (i+1)*units] {
			greatest[j] = max(greatest[j], float64(v))
		}
	}
	most := math.Inf(-1)
	for _, v := range greatest {
		most = max(most, v)
	}
	var dead []int
	for j, v := range greatest {
		if most <= 0 || v < deadFraction*most {
			dead = append(dead, j)
		}
	}
	return dead, nil
}
