package ops

import (
	"math"
	"slices"

	"gorgonia.org/gorgonia"
)

// Softmax returns exp(x_j) / sum_i exp(x_i) over the last axis, each row shifted by its maximum so that nothing
// overflows. (The logarithm of Gorgonia's own silently changes the softmax itself.) The derivative is
// y_j * (g_j - sum_i g_i y_i).
func Softmax(x *gorgonia.Node) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(&op{
		name:  "softmax",
		arity: 1,
		rows:  true,
		f32:   softmax[float32],
		f64:   softmax[float64],
		derivative: func(_, y, grad *gorgonia.Node) (*gorgonia.Node, error) {
			return gorgonia.ApplyOp(softmaxGrad(), y, grad)
		},
	}, x)
}

// softmaxGrad maps the output y and g to y_j (g_j - sum_i g_i y_i). It is linear in g, by a symmetric matrix.
func softmaxGrad() *op {
	return &op{
		name:  "softmaxGrad",
		arity: 2,
		rows:  true,
		f32:   softmaxSlope[float32],
		f64:   softmaxSlope[float64],
		derivatives: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(gorgonia.ApplyOp(softmaxBend, in[0], in[1], grad))(gorgonia.ApplyOp(softmaxGrad(), in[0], grad))
		},
	}
}

// softmaxBend maps y, g and the gradient c of what softmaxGrad makes of them to the gradient of y,
// c_j (g_j - sum_i g_i y_i) - g_j sum_i c_i y_i.
var softmaxBend = &op{
	name:  "softmaxBend",
	arity: 3,
	rows:  true,
	f32:   softmaxCurvature[float32],
	f64:   softmaxCurvature[float64],
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
