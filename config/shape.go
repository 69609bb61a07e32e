package config

import (
	"fmt"
	"strings"

	"tessera/internal/volume"
)

// product is the number of values of a shape, 0 where that is not known.
func product(shape []int) int {
	if shape == nil {
		return 0
	}
	return volume.Of(shape)
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
