package ops

import (
	"math"
	"slices"

	"gorgonia.org/gorgonia"
)

// LogSoftmaxOp is the spec of [LogSoftmax], over the last axis, with output y and p = exp(y). LogSoftmaxGradOp is the spec
// of its derivative, g_j - p_j sum_i g_i with inputs y and g; LogSoftmaxPushOp of the transpose of the derivative, c_j -
// sum_i c_i p_i with inputs y and c; LogSoftmaxBendOp of the derivative of LogSoftmaxGradOp with respect to y, -c_j p_j
// sum_i g_i with inputs y, g and c.
type (
	LogSoftmaxOp     struct{}
	LogSoftmaxGradOp struct{}
	LogSoftmaxPushOp struct{}
	LogSoftmaxBendOp struct{}
)

// LogSoftmax returns x_j - log(sum_i exp(x_i)) over the last axis, each row shifted by its maximum: nothing overflows, and
// small probabilities stay accurate. The derivative is g_j - exp(y_j) sum_i g_i, which can be differentiated once more.
func LogSoftmax(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    LogSoftmaxOp{},
		Rows:    true,
		Float32: logSoftmax[float32],
		Float64: logSoftmax[float64],
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(logSoftmaxGrad.Apply(y, grad))
		},
	}.Apply(x)
}

var logSoftmaxGrad = Blockwise{
	Spec:    LogSoftmaxGradOp{},
	Rows:    true,
	Float32: logSoftmaxSlope[float32],
	Float64: logSoftmaxSlope[float64],
	Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(logSoftmaxBend.Apply(in[0], in[1], grad))(logSoftmaxPush.Apply(in[0], grad))
	},
}

var logSoftmaxPush = Blockwise{
	Spec:    LogSoftmaxPushOp{},
	Rows:    true,
	Float32: logSoftmaxChange[float32],
	Float64: logSoftmaxChange[float64],
}

var logSoftmaxBend = Blockwise{
	Spec:    LogSoftmaxBendOp{},
	Rows:    true,
	Float32: logSoftmaxCurvature[float32],
	Float64: logSoftmaxCurvature[float64],
}

func logSoftmax[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		x, y := in[0][start:start+block], dst[start:start+block]
		top := slices.Max(x)
		sum := 0.0
		for _, v := range x {
			sum += math.Exp(float64(v - top))
		}
		shift := top + T(math.Log(sum))
		for j, v := range x {
			y[j] = v - shift
		}
	}
}

func logSoftmaxSlope[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		y, g, d := in[0][start:start+block], in[1][start:start+block], dst[start:start+block]
		var sum T
		for _, v := range g {
			sum += v
		}
		for j, v := range y {
			d[j] = g[j] - T(math.Exp(float64(v)))*sum
		}
	}
}

func logSoftmaxChange[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		y, c, d := in[0][start:start+block], in[1][start:start+block], dst[start:start+block]
		var dot T
		for j, v := range y {
			dot += T(math.Exp(float64(v))) * c[j]
		}
		for j := range y {
			d[j] = c[j] - dot
		}
	}
}

func logSoftmaxCurvature[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		y, g, c, d := in[0][start:start+block], in[1][start:start+block], in[2][start:start+block], dst[start:start+block]
		var sum T
		for _, v := range g {
			sum += v
		}
		for j, v := range y {
			d[j] = -c[j] * T(math.Exp(float64(v))) * sum
		}
	}
}
