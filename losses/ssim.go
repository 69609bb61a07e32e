package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// SSIM is one minus the mean structural similarity of output y and image x, over all windows, channels and images:
//
//	1 - mean of (2 m_x m_y + c1) (2 s_xy + c2) / ((m_x² + m_y² + c1) (s_x² + s_y² + c2))
//
// with the means m, variances s² and covariance s_xy in a Gaussian window of `window` x `window` pixels, c1 = 0.01² and c2 =
// 0.03², for values in [0,1]. Only windows inside the image count. For an image that is smaller than the window, the window
// size is the largest odd number of pixels that fits.
//
// Source: Wang, Bovik, Sheikh and Simoncelli, Image quality assessment: from error visibility to structural similarity,
// 2004. The window, sigma and constants are those of the paper; scikit-image computes the same with gaussian_weights = True and
// use_sample_covariance = False.
type SSIM struct {
	onOutput
	Window int     `toml:"window" want:"> 0" doc:"height and width of the window in pixels, odd"`
	Sigma  float64 `toml:"sigma" want:"> 0" doc:"standard deviation of the window's Gaussian weights in pixels"`
}

func init() {
	Registry.Register("ssim", "1 - structural similarity of output and images in Gaussian windows", func() Loss {
		return &SSIM{Window: 11, Sigma: 1.5}
	})
}

// The constants of the similarity, for values in [0,1].
const (
	ssimMeans     = 0.01 * 0.01
	ssimVariances = 0.03 * 0.03
)

// Check returns an error for a window without a centre.
func (l *SSIM) Check() error {
	if l.Window%2 == 0 {
		return part.KeyErrorf("window", "got %d, want an odd number", l.Window)
	}
	return nil
}

// CheckShape implements [ShapeChecker]: images are (height, width) or (height, width, channels).
func (l *SSIM) CheckShape(shape []int) error {
	if len(shape) != 2 && len(shape) != 3 {
		return fmt.Errorf("images of shape %v have no neighbouring pixels: want (height, width) or (height, width, channels)", shape)
	}
	return nil
}

func (l *SSIM) Build(v Values) (*gorgonia.Node, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	shape, err := v.Shape()
	if err == nil {
		err = l.CheckShape(shape)
	}
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	filter := l.window(shape)
	local := func(x *gorgonia.Node) *gorgonia.Node {
		return c.Do("window", func() (*gorgonia.Node, error) { return filter.Apply(x) })
	}
	y, x := c.Do("on", v.On), c.Do("against", v.Against)
	my, mx := local(y), local(x)
	product := c.Mul(my, mx)
	squares := c.Add(c.Square(my), c.Square(mx))
	covariance := c.Sub(local(c.Mul(y, x)), product)
	variances := c.Sub(local(c.Add(c.Square(y), c.Square(x))), squares)
	above := c.Mul(c.Shift(c.Scale(product, 2), ssimMeans), c.Shift(c.Scale(covariance, 2), ssimVariances))
	below := c.Mul(c.Shift(squares, ssimMeans), c.Shift(variances, ssimVariances))
	return c.From(1, c.Mean(c.Div(above, below))), c.Err()
}

// window returns the Gaussian filter for images of the given shape.
func (l *SSIM) window(shape []int) ops.Separable {
	s := ops.Separable{In: [3]int{1, 1, 1}}
	copy(s.In[:], shape)
	size := min(l.Window, (min(s.In[0], s.In[1])-1)/2*2+1)
	weights := gaussian(size, l.Sigma)
	for axis, taps := range []*[]ops.Tap{&s.Rows, &s.Columns} {
		for from := range s.In[axis] - size + 1 {
			*taps = append(*taps, ops.Tap{From: from, Weights: weights})
		}
	}
	return s
}

// gaussian returns the weights of a Gaussian window of size pixels, with sum 1.
func gaussian(size int, sigma float64) []float64 {
	weights, sum := make([]float64, size), 0.0
	for i := range weights {
		d := float64(i) - float64(size-1)/2
		weights[i] = math.Exp(-d * d / (2 * sigma * sigma))
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}
