package ops

import (
	"math"
	"slices"

	"gorgonia.org/gorgonia"
)

// SoftmaxOp is the spec of [Softmax], over the last axis. softmaxGradOp is the spec of its derivative, y_j (g_j - sum_i g_i
// y_i) with the output y and g as inputs. softmaxBendOp is the spec of the derivative of softmaxGradOp with respect to y,
// c_j (g_j - sum_i g_i y_i) - g_j sum_i c_i y_i with inputs y, g and the gradient c.
type (
	SoftmaxOp     struct{}
	softmaxGradOp struct{}
	softmaxBendOp struct{}
)

// Softmax returns exp(x_j) / sum_i exp(x_i) over the last axis, each row shifted by its maximum so that nothing overflows.
// (Gorgonia's log of a softmax silently changes the softmax.) The derivative is y_j * (g_j - sum_i g_i y_i).
func Softmax(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    SoftmaxOp{},
		Rows:    true,
		Float32: softmax[float32],
		Float64: softmax[float64],
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(softmaxGrad().Apply(y, grad))
		},
	}.Apply(x)
}

// softmaxGrad is linear in g, by a symmetric matrix.
func softmaxGrad() Blockwise {
	return Blockwise{
		Spec:    softmaxGradOp{},
		Rows:    true,
		Float32: softmaxSlope[float32],
		Float64: softmaxSlope[float64],
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(softmaxBend.Apply(in[0], in[1], grad))(softmaxGrad().Apply(in[0], grad))
		},
	}
}

var softmaxBend = Blockwise{
	Spec:    softmaxBendOp{},
	Rows:    true,
	Float32: softmaxCurvature[float32],
	Float64: softmaxCurvature[float64],
}

func softmax[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		x, y := in[0][start:start+block], dst[start:start+block]
		top := slices.Max(x)
		var sum T
		for j, v := range x {
			y[j] = T(math.Exp(float64(v - top)))
			sum += y[j]
		}
		for j := range y {
			y[j] /= sum
		}
	}
}

func softmaxSlope[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		y, g, d := in[0][start:start+block], in[1][start:start+block], dst[start:start+block]
		var dot T
		for j, v := range y {
			dot += v * g[j]
		}
		for j, v := range y {
			d[j] = v * (g[j] - dot)
		}
	}
}

func softmaxCurvature[T Float](dst []T, in [][]T, block int) {
	for start := 0; start < len(dst); start += block {
		y, g, c, d := in[0][start:start+block], in[1][start:start+block], in[2][start:start+block], dst[start:start+block]
		var gy, cy T
		for j, v := range y {
			gy += g[j] * v
			cy += c[j] * v
		}
		for j := range y {
			d[j] = c[j]*(g[j]-gy) - g[j]*cy
		}
	}
}

// LogSoftmaxOp is the spec of [LogSoftmax], over the last axis, with output y and p = exp(y). logSoftmaxGradOp is the spec
// of its derivative, g_j - p_j sum_i g_i with inputs y and g; logSoftmaxPushOp of the transpose of the derivative, c_j -
// sum_i c_i p_i with inputs y and c; logSoftmaxBendOp of the derivative of logSoftmaxGradOp with respect to y, -c_j p_j
// sum_i g_i with inputs y, g and c.
type (
	LogSoftmaxOp     struct{}
	logSoftmaxGradOp struct{}
	logSoftmaxPushOp struct{}
	logSoftmaxBendOp struct{}
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
	Spec:    logSoftmaxGradOp{},
	Rows:    true,
	Float32: logSoftmaxSlope[float32],
	Float64: logSoftmaxSlope[float64],
	Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(logSoftmaxBend.Apply(in[0], in[1], grad))(logSoftmaxPush.Apply(in[0], grad))
	},
}

var logSoftmaxPush = Blockwise{
	Spec:    logSoftmaxPushOp{},
	Rows:    true,
	Float32: logSoftmaxChange[float32],
	Float64: logSoftmaxChange[float64],
}

var logSoftmaxBend = Blockwise{
	Spec:    logSoftmaxBendOp{},
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
