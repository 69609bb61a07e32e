package data

import (
	"fmt"
	"math"
)

// rangeSlack is the accepted distance of values from the range of the fitted samples, as a fraction of its width. For the
// range [0,1] no distance is accepted.
const rangeSlack = 0.5

// Outside says that values are outside of the range of the fitted samples, from least to most, and what to do: they probably have another scale.
// It returns "" for others, and ignores NaN, which means a missing entry.
func Outside(values []float32, least, most float32) string {
	slack := rangeSlack * (most - least)
	if least == 0 && most == 1 {
		slack = 0
	}
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range values {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	if low >= least-slack && high <= most+slack {
		return ""
	}
	hint := "scale them as the training images were scaled"
	if least >= 0 && most <= 1 && low >= 0 && high > 1 && high <= 255 {
		hint = "save them as uint8, or divide them by 255"
	}
	return fmt.Sprintf("values from %g to %g, outside of [%g,%g], the range of the training: %s", low, high, least, most, hint)
}
