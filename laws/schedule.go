package laws

import (
	"fmt"
	"math"

	"tessera/optim"
)

// Schedule contains the laws of learning-rate schedules.
var Schedule = Laws[optim.Schedule]{
	{"is finite and not negative over runs of any length", scheduleRange},
	{"depends on nothing but its arguments", scheduleRepeatable},
}

// instants calls f at the beginning of every step, and at and beyond the end, of runs of several lengths.
func instants(f func(epoch, epochs float64) error) error {
	const stepsPerEpoch = 7
	for _, epochs := range []int{1, 2, 10, 500} {
		for step := range (epochs + 2) * stepsPerEpoch {
			if err := f(float64(step)/stepsPerEpoch, float64(epochs)); err != nil {
				return err
			}
		}
	}
	return nil
}

func scheduleRange(fresh func() optim.Schedule) error {
	s := fresh()
	return instants(func(epoch, epochs float64) error {
		if f := s.Factor(epoch, epochs); !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("epoch %g of %g: factor %v", epoch, epochs, f)
		}
		return nil
	})
}

func scheduleRepeatable(fresh func() optim.Schedule) error {
	s := fresh()
	return instants(func(epoch, epochs float64) error {
		if a, b := s.Factor(epoch, epochs), fresh().Factor(epoch, epochs); a != b {
			return fmt.Errorf("epoch %g of %g: factor %v, a fresh schedule gives %v", epoch, epochs, a, b)
		}
		return nil
	})
}
