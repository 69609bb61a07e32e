package optim_test

import (
	"fmt"

	"tessera/optim"
)

// A rule can update any slice of a parameter. The caller keeps the state and counts the steps from 1.
func ExampleRule() {
	rule := &optim.SGD{Rate: 0.1, Momentum: 0.5}
	w := []float32{1, -1}
	state := [][]float32{make([]float32, len(w))}
	for step := 1; step <= 2; step++ {
		gradient := []float32{1, -2}
		rule.Update(w, gradient, state, rule.LearningRate(), step)
	}
	fmt.Printf("%.2f\n", w)
	// Output: [0.75 -0.50]
}

// The learning rates of the first and the last of 30 steps: three epochs of ten steps each, with a warm-up of one
// epoch.
func ExampleRate() {
	schedule := &optim.Cosine{Final: 0.1}
	fmt.Printf("%.4f %.4f\n", optim.Rate(0.01, schedule, 1, 1, 10, 3), optim.Rate(0.01, schedule, 1, 30, 10, 3))
	// Output: 0.0010 0.0010
}

// Gradients are clipped by their global norm, so that their directions stay the same.
func ExampleClipFactor() {
	a, b := []float32{3}, []float32{0, 4}
	norm := optim.Norm(a, b)
	fmt.Printf("%.0f %.4f\n", norm, optim.ClipFactor(norm, 1))
	// Output: 5 0.2000
}
