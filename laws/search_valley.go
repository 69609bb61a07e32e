package laws

import (
	"errors"
	"math"
)

// valley is the objective of the laws: quadratic along most directions, flat near its minimum along the last, where a
// quadratic model of it is wrong everywhere.
type valley struct {
	curvature, target []float32
	quartic           bool
	looks             int
	fail              int // the evaluation that fails; 0 for none
	edge              float64
}

func newValley(n int, quartic bool) *valley {
	v := &valley{target: normal(source(), n, 1), quartic: quartic, edge: math.Inf(1)}
	for i := range n {
		v.curvature = append(v.curvature, float32(math.Pow(100, float64(i)/float64(max(n-1, 1))))/10)
	}
	return v
}

var errLook = errors.New("a failing evaluation")

func (v *valley) evaluate(w, g []float32) (sum float64, err error) {
	if v.looks++; v.looks == v.fail {
		return 0, errLook
	}
	for i := range w {
		c, d := float64(v.curvature[i]), float64(w[i])-float64(v.target[i])
		sum += c * d * d / 2
		slope := c * d
		if v.quartic {
			sum += d * d * d * d
			slope += 4 * d * d * d
		}
		if d > v.edge {
			sum = math.NaN()
		}
		g[i] = float32(slope)
	}
	return sum, nil
}
