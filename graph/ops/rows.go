package ops

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// SoftmaxOp is the spec of [Softmax], over the last axis. softmaxGradOp is the spec of its derivative, y_j (g_j - sum_i g_i
// y_i) with the output y and g as inputs. softmaxBendOp is the spec of the derivative of softmaxGradOp with respect to y, c_j
// (g_j - sum_i g_i y_i) - g_j sum_i c_i y_i with inputs y, g and the gradient c.
type (
	SoftmaxOp     struct{}
	softmaxGradOp struct{}
	softmaxBendOp struct{}
)

// Softmax returns exp(x_j) / sum_i exp(x_i) over the last axis. Each row is shifted by its maximum, so nothing
// overflows. The derivative is y_j * (g_j - sum_i g_i y_i). Gorgonia's softmax is not used: its logarithm silently
// changes the softmax.
func Softmax(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    SoftmaxOp{},
		Rows:    true,
		Float32: fastSoftmax,
		Float64: softmax[float64],
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(softmaxGrad().Apply(y, grad))
		},
	}.Apply(x)
}

// softmaxGrad returns the derivative of a softmax. It is linear in g, and its matrix is symmetric.
func softmaxGrad() Blockwise {
	return Blockwise{
		Spec:    softmaxGradOp{},
		Rows:    true,
		Float32: fastSoftmaxSlope,
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

// group is the number of rows whose sums are computed side by side. Each row is added in its own order, but no addition waits for
// one of another row.
const group = 4

// fastSoftmax computes the same bytes as softmax[float32].
func fastSoftmax(dst []float32, in [][]float32, block int) {
	k := vector.Float32()
	for start := 0; start < len(dst); start += group * block {
		y := dst[start:min(start+group*block, len(dst))]
		for at := 0; at < len(y); at += block {
			x := in[0][start+at:][:block]
			k.AddScalar(y[at:at+block], x, -k.Maximum(x))
		}
		k.ExpRounded(y, y)
		var sums [group]float32
		if len(y) == group*block {
			sums = sumsOfGroup(y, block, block)
		} else {
			for at := 0; at < len(y); at += block {
				for _, v := range y[at : at+block] {
					sums[at/block] += v
				}
			}
		}
		for at := 0; at < len(y); at += block {
			k.DivScalar(y[at:at+block], y[at:at+block], sums[at/block])
		}
	}
}

// sumsOfGroup returns the sums of the first n elements of each row of a group.
func sumsOfGroup(y []float32, block, n int) (sums [group]float32) {
	a, b, c, d := y[:n], y[block:][:n], y[2*block:][:n], y[3*block:][:n]
	var sa, sb, sc, sd float32
	for j := range n {
		sa += a[j]
		sb += b[j]
		sc += c[j]
		sd += d[j]
	}
	return [group]float32{sa, sb, sc, sd}
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

// fastSoftmaxSlope computes the same bytes as softmaxSlope[float32].
func fastSoftmaxSlope(dst []float32, in [][]float32, block int) {
	k := vector.Float32()
	var differences [512]float32 // dst may be y or g
	for start := 0; start < len(dst); start += group * block {
		y, g := in[0][start:], in[1][start:]
		rows := min(group, (len(dst)-start)/block)
		var dots [group]float32
		if rows == group {
			dots = dotsOfGroup(y, g, block)
		} else {
			for j := range rows * block {
				dots[j/block] += y[j] * g[j]
			}
		}
		for r := range rows {
			for from, end := r*block, (r+1)*block; from < end; from += len(differences) {
				to := min(from+len(differences), end)
				k.AddScalar(differences[:to-from], g[from:to], -dots[r])
				k.Mul(dst[start+from:start+to], y[from:to], differences[:to-from])
			}
		}
	}
}

func dotsOfGroup(y, g []float32, block int) (dots [group]float32) {
	a, b, c, d := y[:block], y[block:][:block], y[2*block:][:block], y[3*block:][:block]
	p, q, r, s := g[:block], g[block:][:block], g[2*block:][:block], g[3*block:][:block]
	var da, db, dc, dd float32
	for j := range block {
		da += a[j] * p[j]
		db += b[j] * q[j]
		dc += c[j] * r[j]
		dd += d[j] * s[j]
	}
	return [group]float32{da, db, dc, dd}
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

// LogSoftmaxOp is the spec of [LogSoftmax] over the last axis, with output y and p = exp(y). logSoftmaxGradOp is the
// spec of its derivative: inputs y and g, output g_j - p_j sum_i g_i. logSoftmaxPushOp is the spec of the transpose of
// the derivative: inputs y and c, output c_j - sum_i c_i p_i. logSoftmaxBendOp is the spec of the derivative of
// logSoftmaxGradOp with respect to y: inputs y, g and c, output -c_j p_j sum_i g_i.
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
		Float32: fastLogSoftmax,
		Float64: logSoftmax[float64],
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(logSoftmaxGrad.Apply(y, grad))
		},
	}.Apply(x)
}

var logSoftmaxGrad = Blockwise{
	Spec:    logSoftmaxGradOp{},
	Rows:    true,
	Float32: fastLogSoftmaxSlope,
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

// fastLogSoftmax computes the same bytes as logSoftmax[float32].
func fastLogSoftmax(dst []float32, in [][]float32, block int) {
	k := vector.Float32()
	for start := 0; start < len(dst); start += block {
		x := in[0][start : start+block]
		top, sum := k.Maximum(x), 0.0
		for _, v := range x {
			sum += math.Exp(float64(v - top))
		}
		k.AddScalar(dst[start:start+block], x, -(top + float32(math.Log(sum))))
	}
}

// fastLogSoftmaxSlope computes the same bytes as logSoftmaxSlope[float32].
func fastLogSoftmaxSlope(dst []float32, in [][]float32, block int) {
	k := vector.Float32()
	var p [512]float32 // dst may be y or g
	for start := 0; start < len(dst); start += block {
		y, g, d := in[0][start:start+block], in[1][start:start+block], dst[start:start+block]
		var sum float32
		for _, v := range g {
			sum += v
		}
		for from := 0; from < block; from += len(p) {
			to := min(from+len(p), block)
			part := p[:to-from]
			k.ExpRounded(part, y[from:to])
			for j, v := range part {
				d[from+j] = g[from+j] - v*sum
			}
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

// Standardise shifts and scales the values of every channel of every block of x to mean 0 and variance 1. x is viewed
// as (blocks, places, channels). For the values z of one channel of a block
//
//	y = (z - mean(z)) / sqrt(variance(z) + epsilon)
//
// with the biased variance. The derivative with respect to z maps g to J g = (g - mean(g) - y mean(y g)) /
// sqrt(variance(z) + epsilon), where J is symmetric.
func Standardise(x *gorgonia.Node, places, channels int, epsilon float64) (*gorgonia.Node, error) {
	if len(x.Shape()) < 1 || places < 1 || channels < 1 || x.Shape().TotalSize()%(places*channels) != 0 || !(epsilon > 0) {
		return nil, fmt.Errorf("standardise: shape %v does not divide into blocks of %d places and %d channels, or epsilon %v is not > 0",
			x.Shape(), places, channels, epsilon)
	}
	return StandardiseOp{places, channels, epsilon}.value(x)
}

// StandardiseOp is the spec of [Standardise]. standardiseSlopeOp is the spec of J g with inputs x and g.
// standardiseCurveOp is the spec of the derivative of h·J g with respect to x, with inputs x, g and h.
type (
	StandardiseOp struct {
		Places, Channels int // shape of one block
		Epsilon          float64
	}
	standardiseSlopeOp StandardiseOp
	standardiseCurveOp StandardiseOp
)

func (s StandardiseOp) value(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(s, x, 1)
	o.Float32, o.Float64 = standardise(s, vector.Float32), standardise(s, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return gradientOf(s.slope(in[0], grad))
	}
	return o.Apply(x)
}

// slope returns J g at x.
func (s StandardiseOp) slope(x, g *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(standardiseSlopeOp(s), x, 2)
	o.Float32, o.Float64 = standardiseSlope(s, vector.Float32), standardiseSlope(s, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(s.curve(in[0], in[1], grad))(s.slope(in[0], grad))
	}
	return o.Apply(x, g)
}

// curve returns the derivative of h·J g with respect to x. With m places and r = 1/sqrt(variance + epsilon) it is -r/m (r a
// y + (y·g) J h + (y·h) J g), where a = g·h - m mean(g) mean(h) - (y·g)(y·h)/m.
func (s StandardiseOp) curve(x, g, h *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(standardiseCurveOp(s), x, 3)
	o.Float32, o.Float64 = standardiseCurve(s, vector.Float32), standardiseCurve(s, vector.Float64)
	return o.Apply(x, g, h)
}

// op returns the common fields of the ops. A unit is a block of every input.
func (s StandardiseOp) op(spec any, x *gorgonia.Node, inputs int) *Unitwise {
	o := &Unitwise{
		Spec:     spec,
		Out:      x.Shape().Clone(),
		Units:    x.Shape().TotalSize() / (s.Places * s.Channels),
		Scratch:  4 * s.Places,
		Division: ir.ByUnits,
		Work:     float64(4 * inputs * x.Shape().TotalSize()),
	}
	for range inputs {
		o.ByUnit = append(o.ByUnit, true)
	}
	return o
}

// channel contains the values of one channel of a block, contiguously.
type channel[T Float] struct {
	k *vector.Set[T]
	y []T // the standardised values
	r T   // 1 / sqrt(variance + epsilon)

	g, h []T // values of the other inputs
}

// take copies every stride-th value of x to dst.
func take[T Float](dst, x []T, stride int) {
	if stride == 1 {
		copy(dst, x)
		return
	}
	for i := range dst {
		dst[i] = x[i*stride]
	}
}

// give writes x to every stride-th value of dst: the inverse of take.
func give[T Float](dst, x []T, stride int) {
	if stride == 1 {
		copy(dst, x)
		return
	}
	for i, v := range x {
		dst[i*stride] = v
	}
}

// standardised sets y to (x - mean) / sqrt(variance + epsilon), and r to 1 / sqrt(variance + epsilon). x may be y.
func (c *channel[T]) standardised(x []T, epsilon float64) {
	m := T(len(x))
	c.k.AddScalar(c.y, x, -c.k.Sum(x)/m)
	c.r = T(1 / math.Sqrt(float64(c.k.SumSquares(c.y)/m)+epsilon))
	c.k.MulScalar(c.y, c.y, c.r)
}

// slope writes J g to dst.
func (c *channel[T]) slope(dst, g []T) {
	m := T(len(g))
	mean, dot := c.k.Sum(g)/m, c.k.Dot(c.y, g)/m
	c.k.AddScalar(dst, g, -mean)
	c.k.AddScaled(dst, dst, c.y, -dot)
	c.k.MulScalar(dst, dst, c.r)
}

// curve writes the derivative of h·J g with respect to the values to dst. It overwrites g and h.
func (c *channel[T]) curve(dst []T) {
	m := T(len(c.y))
	yg, yh := c.k.Dot(c.y, c.g), c.k.Dot(c.y, c.h)
	a := c.k.Dot(c.g, c.h) - c.k.Sum(c.g)*c.k.Sum(c.h)/m - yg*yh/m
	c.slope(c.g, c.g)
	c.slope(c.h, c.h)
	c.k.MulScalar(dst, c.y, c.r*a)
	c.k.AddScaled(dst, dst, c.h, yg)
	c.k.AddScaled(dst, dst, c.g, yh)
	c.k.MulScalar(dst, dst, -c.r/m)
}

// standardUnits returns the kernel that computes blocks. f computes the output for one channel from its standardised values; if
// f is nil, these are the output. The values of a single channel are read and written in place, unless f overwrites inputs.
func standardUnits[T Float](s StandardiseOp, kernels func() *vector.Set[T], inPlace bool, f func(c channel[T], dst []T)) units[T] {
	inPlace = inPlace && s.Channels == 1
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		line := func(i int) []T { return scratch[i*s.Places : (i+1)*s.Places] }
		c := channel[T]{k: kernels(), y: line(0), g: line(2), h: line(3)}
		for at := from * s.Places * s.Channels; at < to*s.Places*s.Channels; at += s.Places * s.Channels {
			for i := at; i < at+s.Channels; i++ {
				x, out := c.y, line(1)
				if inPlace {
					x, out = in[0][i:i+s.Places], dst[i:i+s.Places]
					if len(in) > 1 {
						c.g = in[1][i : i+s.Places]
					}
				} else {
					for j, values := range [][]T{x, c.g, c.h}[:len(in)] {
						take(values, in[j][i:], s.Channels)
					}
				}
				if f == nil {
					c.y = out
				}
				c.standardised(x, s.Epsilon)
				if f != nil {
					f(c, out)
				}
				if !inPlace {
					give(dst[i:], out, s.Channels)
				}
			}
		}
	}
}

func standardise[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, true, nil)
}

func standardiseSlope[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, true, func(c channel[T], dst []T) { c.slope(dst, c.g) })
}

func standardiseCurve[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, false, func(c channel[T], dst []T) { c.curve(dst) })
}
