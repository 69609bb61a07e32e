package vectors

import (
	"errors"
	"fmt"
)

// ErrNoClass is the error for logits that are not finite: they have no largest one.
var ErrNoClass = errors.New("no class")

// Class returns the class that the logits of a sample predict: the index of the largest logit, the first of equal ones. If a logit is NaN
// or infinite, the error is [ErrNoClass]. Every path from logits to a class or a label uses it.
func Class(logits []float32) (class int, err error) {
	for i, z := range logits {
		if z-z != 0 {
			return 0, fmt.Errorf("%w: logit %d is not finite (got %v): the values of the sample are too large, or the training has diverged", ErrNoClass, i, z)
		}
		if z > logits[class] {
			class = i
		}
	}
	return class, nil
}
