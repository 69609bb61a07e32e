package posthoc

import (
	"errors"
	"math"
	"slices"
	"sort"

	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// Curve is a piecewise linear function through the points (x, y), with both coordinates in ascending order. It is
// constant before the first and after the last point.
type Curve struct {
	X []float64 `json:"x"`
	Y []float64 `json:"y"`
}

// At returns the value of the curve at x.
func (g Curve) At(x float64) float64 {
	i := sort.SearchFloat64s(g.X, x)
	switch {
	case i == 0:
		return g.Y[0]
	case i == len(g.X):
		return g.Y[i-1]
	}
	share := (x - g.X[i-1]) / (g.X[i] - g.X[i-1])
	return g.Y[i-1] + share*(g.Y[i]-g.Y[i-1])
}

// IsotonicRegression returns the non-decreasing curve g that minimises sum_i (y_i - g(x_i))², by pooling adjacent
// violators. The y of equal x are averaged first. Between the points the curve is linear. Both slices must have the
// same length, at least 1.
//
// Source: Barlow et al., Statistical inference under order restrictions, 1972.
func IsotonicRegression(x, y []float64) Curve {
	order := lists.Range(0, len(x))
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	type block struct{ mean, weight, low, high float64 }
	var points []block // one block for each distinct x
	for _, i := range order {
		if n := len(points); n > 0 && points[n-1].low == x[i] {
			p := &points[n-1]
			p.mean, p.weight = (p.mean*p.weight+y[i])/(p.weight+1), p.weight+1
			continue
		}
		points = append(points, block{y[i], 1, x[i], x[i]})
	}
	var pooled []block
	for _, b := range points {
		for n := len(pooled); n > 0 && pooled[n-1].mean >= b.mean; n = len(pooled) {
			last := pooled[n-1]
			w := last.weight + b.weight
			b = block{(last.mean*last.weight + b.mean*b.weight) / w, w, last.low, b.high}
			pooled = pooled[:n-1]
		}
		pooled = append(pooled, b)
	}
	var g Curve
	for _, b := range pooled {
		g.X, g.Y = append(g.X, b.low), append(g.Y, b.mean)
		if b.high > b.low {
			g.X, g.Y = append(g.X, b.high), append(g.Y, b.mean)
		}
	}
	return g
}

// leastProbability is the smallest probability of an isotonic calibration before the probabilities are divided by their
// sum. With a probability of 0 the cross entropy could be infinite.
const leastProbability = 1e-7

// Isotonic is the name of [IsotonicCurves].
const Isotonic = "isotonic"

// IsotonicCurves computes log of g_k(p_k) / sum_j g_j(p_j), where p is the softmax of z. Each g_k is piecewise linear and does not
// decrease.
//
// Source: Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD 2002 (one class against
// the rest).
type IsotonicCurves struct {
	Curves []Curve `json:"curves"` // g of the formula, one for each class
}

var _ Method = (*IsotonicCurves)(nil)

func init() {
	Registry.Register(Isotonic, "a curve that does not decrease maps the probability of each class to its frequency", func() Method { return &IsotonicCurves{} })
}

func (c *IsotonicCurves) Check(classes int) error {
	for _, g := range c.Curves {
		if len(g.X) != len(g.Y) || len(g.X) == 0 || !slices.IsSorted(g.X) || !slices.IsSorted(g.Y) {
			return errors.New("a curve does not ascend")
		}
		if err := checkFinite(slices.Concat(g.X, g.Y)...); err != nil {
			return err
		}
	}
	return otherClasses(Isotonic, len(c.Curves), classes)
}

// Fit implements [Method]. It fits one curve for each class. It maps the predicted probability of the class to the frequency with which
// samples belong to the class.
func (c *IsotonicCurves) Fit(logits []float32, labels []int, classes int) error {
	p := make([]float64, len(logits))
	for i := range labels {
		vectors.Softmax(p[i*classes:(i+1)*classes], logits[i*classes:(i+1)*classes])
	}
	x, y := make([]float64, len(labels)), make([]float64, len(labels))
	for k := range classes {
		for i, class := range labels {
			x[i], y[i] = p[i*classes+k], 0
			if class == k {
				y[i] = 1
			}
		}
		c.Curves = append(c.Curves, IsotonicRegression(x, y))
	}
	return nil
}

// Apply implements [Method]. It replaces logits by the logarithms of the calibrated probabilities.
func (c *IsotonicCurves) Apply(logits []float32, classes int) {
	p := make([]float64, classes)
	for row := range slices.Chunk(logits, classes) {
		vectors.Softmax(p, row)
		sum := 0.0
		for k := range p {
			p[k] = max(c.Curves[k].At(p[k]), leastProbability)
			sum += p[k]
		}
		for k := range row {
			row[k] = float32(math.Log(p[k] / sum))
		}
	}
}
