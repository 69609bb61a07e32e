package config

import (
	"fmt"
	"math"
	"strings"
)

// product is the number of values of a shape, 0 for none; it stays at its largest where it would overflow.
func product(shape []int) int {
	if shape == nil {
		return 0
	}
	n := 1
	for _, d := range shape {
		if d > 0 && n > math.MaxInt/d {
			return math.MaxInt
		}
		n *= d
	}
	return n
}

// shapeText prints a shape as "28x28 = 784", and a vector as "784".
func shapeText(shape []int) string {
	texts := make([]string, len(shape))
	for i, d := range shape {
		texts[i] = fmt.Sprint(d)
	}
	text := strings.Join(texts, "x")
	if len(shape) > 1 {
		text += fmt.Sprintf(" = %d", product(shape))
	}
	return text
}
