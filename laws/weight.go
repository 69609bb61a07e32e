package laws

import (
	"fmt"
	"math"

	"tessera/losses"
)

// Weight contains the laws of schedules of a loss weight.
var Weight = Laws[losses.Weight]{
	{"is finite and not negative at every epoch and in the end", weightRange},
	{"depends on nothing but the epoch", weightRepeatable},
	{"ends where it tends to", weightEnds},
}

// weightRange checks the beginning of every step of long and short epochs, and the end.
func weightRange(fresh func() losses.Weight) error {
	w := fresh()
	at := func(epoch float64) error {
		if v := w.At(epoch); !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("after %g epochs: weight %v", epoch, v)
		}
		return nil
	}
	if err := at(math.Inf(1)); err != nil {
		return err
	}
	return instants(func(epoch, _ float64) error { return at(epoch) })
}

func weightRepeatable(fresh func() losses.Weight) error {
	w := fresh()
	return instants(func(epoch, _ float64) error {
		if a, b := w.At(epoch), fresh().At(epoch); a != b {
			return fmt.Errorf("after %g epochs: weight %v, a fresh schedule gives %v", epoch, a, b)
		}
		return nil
	})
}

// weightEnds compares the weight at infinity, which programs without training use, with the weight after very many epochs.
func weightEnds(fresh func() losses.Weight) error {
	const long = 1e12 // epochs
	if end, late := fresh().At(math.Inf(1)), fresh().At(long); !(math.Abs(end-late) <= 1e-6*(1+math.Abs(end))) {
		return fmt.Errorf("weight %v in the end, but %v after %g epochs", end, late, long)
	}
	return nil
}
