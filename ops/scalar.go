// Package ops contains small helpers for Gorgonia nodes and ops that Gorgonia lacks, one per file.
package ops

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Scalar returns the constant v in the precision of like, the form that arithmetic with like needs
// (a float32 graph refuses float64 constants).
func Scalar(like *gorgonia.Node, v float64) *gorgonia.Node {
	if like.Dtype() == tensor.Float64 {
		return gorgonia.NewConstant(v)
	}
	return gorgonia.NewConstant(float32(v))
}
