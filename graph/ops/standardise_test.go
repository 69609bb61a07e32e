package ops_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// blocks lists shapes of tensors with the places and channels of their blocks.
var blocks = []struct {
	shape            []int
	places, channels int
}{
	{[]int{3, 5}, 5, 1},
	{[]int{2, 3, 4}, 4, 1},
	{[]int{3, 2, 3, 2}, 6, 2},
	{[]int{2, 2, 2, 3}, 4, 3},
}

const blockEpsilon = 0.01

func standardised[T ops.Float](i int) gradcheck.Expression[T] {
	c := blocks[i]
	return func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		x := gradcheck.Values[T](tensor.Shape(c.shape).TotalSize(), layers.Everything, random.Stream(1, "standardise", 0))
		return ops.Standardise(b.Leaf("x", c.shape, x, false), c.places, c.channels, blockEpsilon)
	}
}

func init() {
	for i, c := range blocks {
		parallels[fmt.Sprintf("standardise %+v", c)] = standardised[float64](i)
		parallels[fmt.Sprintf("backward of standardise %+v", c)] = backward(standardised[float64](i), 0)
		for input := range 2 {
			parallels[fmt.Sprintf("second derivative %d of standardise %+v", input, c)] = backward(backward(standardised[float64](i), 0), input)
		}
	}
}

func TestStandardisedValuesEqualPlainLoops(t *testing.T) {
	for i, c := range blocks {
		x := gradcheck.Values[float64](tensor.Shape(c.shape).TotalSize(), layers.Everything, random.Stream(1, "standardise", 0))
		want, block := make([]float64, len(x)), c.places*c.channels
		for at := 0; at < len(x); at += block {
			for channel := range c.channels {
				mean, variance := 0.0, 0.0
				for p := range c.places {
					mean += x[at+p*c.channels+channel] / float64(c.places)
				}
				for p := range c.places {
					variance += math.Pow(x[at+p*c.channels+channel]-mean, 2) / float64(c.places)
				}
				for p := range c.places {
					j := at + p*c.channels + channel
					want[j] = (x[j] - mean) / math.Sqrt(variance+blockEpsilon)
				}
			}
		}
		testConvolution(t, fmt.Sprintf("%+v", c), standardised[float64](i), want, 1e-14)
		testConvolution(t, fmt.Sprintf("%+v", c), standardised[float32](i), want, 1e-6)
	}
}

func TestDerivativesOfStandardisationAreRightTwice(t *testing.T) {
	for i, c := range blocks {
		expect.NoError(t, gradcheck.Check(gradcheck.Scalar(standardised[float64](i))), c)
		expect.NoError(t, gradcheck.Check(gradcheck.Scalar(backward(standardised[float64](i), 0))), "backward of", c)
	}
}

func TestStandardiseRefusesBlocksThatDoNotFit(t *testing.T) {
	x := gorgonia.NewMatrix(gorgonia.NewGraph(), tensor.Float64, gorgonia.WithShape(2, 6), gorgonia.WithName("x"))
	for _, c := range []struct {
		places, channels int
		epsilon          float64
	}{{5, 1, 1}, {0, 1, 1}, {6, 0, 1}, {4, 2, 1}, {6, 1, 0}, {6, 1, math.NaN()}} {
		expect.AnyError(t, expect.Err(ops.Standardise(x, c.places, c.channels, c.epsilon)), c, "is accepted for shape", x.Shape())
	}
}
