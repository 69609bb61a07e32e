package layers

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

// imageOf returns height, width and channels of an image of shape (height, width, channels), or (height, width) with one
// channel.
func imageOf(in []int) ([3]int, error) {
	if len(in) != 2 && len(in) != 3 {
		return [3]int{}, fmt.Errorf("got an input of shape %v, want an image (height, width) or (height, width, channels): { kind = \"reshape\", shape = [HEIGHT, WIDTH, CHANNELS] } before the layer makes one of a vector", in)
	}
	return [3]int{in[0], in[1], channels(in)}, nil
}

// channels returns the length of the last axis of an image (height, width, channels) or of a vector; an image (height, width)
// has one channel.
func channels(shape []int) int {
	if len(shape) == 2 {
		return 1
	}
	return shape[len(shape)-1]
}

// resized returns the image shape in with the height and width of out.
func resized(in []int, out [3]int) []int {
	shape := []int{out[0], out[1]}
	return append(shape, in[2:]...)
}

// count is a setting that must be >= 1: its key and its value.
type count struct {
	key   string
	value int
}

// positive returns an error for the first count that is < 1.
func positive(counts []count) error {
	for _, c := range counts {
		if c.value < 1 {
			return part.KeyErrorf(c.key, "got %d, want > 0", c.value)
		}
	}
	return nil
}

// longestSide is the maximum side of an image in pixels. A longer side is probably a typo and would overflow.
const longestSide = 1 << 24

// bounded returns an error for the first count that is too large: its product with the longest side of the image and the
// kernel exceeds longestSide.
func bounded(image [3]int, kernel int, counts []count) error {
	for _, c := range counts {
		if c.value > longestSide/max(image[0], image[1], kernel) {
			return part.KeyErrorf(c.key, "got %d, which spans more than %d pixels on a side", c.value, longestSide)
		}
	}
	return nil
}

// mostWindows is the maximum number of values that a convolution copies into windows for one image: 1 GiB in float32.
const mostWindows = 1 << 28

// boundedWindows returns an error if the copied windows of one image contain too many values.
func boundedWindows(g ops.Convolution) error {
	width := cmp.Or(g.KernelWidth, g.Kernel)
	values := float64(g.Out[0]) * float64(g.Out[1]) * float64(g.Kernel) * float64(width) * float64(g.In[2])
	if values > mostWindows {
		return part.KeyErrorf("kernel", "the windows of one image, %d x %d of %d x %d pixels, hold %.3g values: want at most %.3g",
			g.Out[0], g.Out[1], g.Kernel, width, values, float64(mostWindows))
	}
	return nil
}

// onImages applies an op on tensors (batch, height, width, channels) to x, a batch of images of shape image, and reshapes every
// result to out.
func onImages(x *gorgonia.Node, image [3]int, out []int, f func(images *gorgonia.Node) (*gorgonia.Node, error)) (*gorgonia.Node, error) {
	var c ops.Chain
	images := c.Reshape(x, x.Shape()[0], image[0], image[1], image[2])
	y := c.Do("images", func() (*gorgonia.Node, error) { return f(images) })
	return c.Reshape(y, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

// addChannels adds one number per channel to x, whose last axis contains the channels.
func addChannels(c *ops.Chain, x, numbers *gorgonia.Node) *gorgonia.Node {
	return perChannel(c, x, numbers, c.AddRow)
}

// mulChannels multiplies x, whose last axis contains the channels, by one number per channel.
func mulChannels(c *ops.Chain, x, numbers *gorgonia.Node) *gorgonia.Node {
	return perChannel(c, x, numbers, c.MulRow)
}

// perChannel combines x with one number per channel.
func perChannel(c *ops.Chain, x, numbers *gorgonia.Node, f func(rows, row *gorgonia.Node) *gorgonia.Node) *gorgonia.Node {
	if c.Err() != nil {
		return nil
	}
	shape := x.Shape()
	places := volume.Of(shape[1:]) / numbers.Shape()[0]
	return c.Reshape(f(c.Flatten(x), c.Tile(numbers, places)), shape...)
}

// Padding is the number of pixels by which the filters of a convolution, or the windows of a pooling, may extend beyond the
// image. Filters read zeros there. With "same" the output has ceil(input / stride) rows and columns; an odd number of padding
// pixels has one more at the end. "valid" is no padding. A number is the number of pixels on every side.
type Padding struct {
	Same   bool
	Pixels int // used if Same is false
}

// FromTOML sets p from a TOML value: "same", "valid" or a number >= 0.
func (p *Padding) FromTOML(value any) error {
	switch x := value.(type) {
	case string:
		switch x {
		case "same":
			*p = Padding{Same: true}
			return nil
		case "valid":
			*p = Padding{}
			return nil
		}
		return fmt.Errorf("got %q, want \"same\", \"valid\" or a number of pixels >= 0", x)
	case int64:
		if x >= 0 {
			*p = Padding{Pixels: int(x)}
			return nil
		}
	}
	return fmt.Errorf("got %v, want \"same\", \"valid\" or a number of pixels >= 0", value)
}

// TOML returns the value that [Padding.FromTOML] reads back.
func (p Padding) TOML() any {
	switch {
	case p.Same:
		return "same"
	case p.Pixels == 0:
		return "valid"
	}
	return p.Pixels
}

// along returns the length of the output and the padding before the input along an axis of length in, for windows that span
// reach pixels. The length is < 1 if no window fits.
func (p Padding) along(in, reach, stride int) (out, before int) {
	if p.Same {
		out = (in + stride - 1) / stride
		return out, max((out-1)*stride+reach-in, 0) / 2
	}
	slack := in + 2*p.Pixels - reach
	if slack < 0 {
		return 0, p.Pixels
	}
	return slack/stride + 1, p.Pixels
}

// back is the inverse of along, for the transposed convolution. It returns the length out of an axis for which a convolution
// with this padding has in outputs. For "same" it returns the largest such out.
func (p Padding) back(in, reach, stride int) (out, before int) {
	if p.Same {
		out = in * stride
		return out, max((in-1)*stride+reach-out, 0) / 2
	}
	return (in-1)*stride + reach - 2*p.Pixels, p.Pixels
}

// tokensOf interprets a shape as tokens: the last axis is the features of a token, the other axes index the tokens. A vector
// is one token; the tokens of an image (height, width) are its rows, the tokens of an image with channels its pixels.
func tokensOf(shape []int) (tokens, features int) {
	features = shape[len(shape)-1]
	return volume.Of(shape) / features, features
}

// mapTokens returns x W for x of shape (tokens, features), plus the bias if it is not nil.
func mapTokens(c *ops.Chain, x, weight, bias *gorgonia.Node) *gorgonia.Node {
	y := c.MatMul(x, weight)
	if bias == nil {
		return y
	}
	return c.AddRow(y, bias)
}

// scaleAndShift declares the parameters of a normalisation of n channels.
func scaleAndShift(n int) []Parameter {
	return []Parameter{
		{Name: "scale", Shape: []int{n}, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1},
		{Name: "shift", Shape: []int{n}, Init: &Constant{Value: 0}, FanIn: 1, FanOut: 1},
	}
}

// scaledAndShifted applies scale and shift to normalised values y.
func scaledAndShifted(s Scope, y *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return addChannels(&c, mulChannels(&c, y, s.Parameter("scale")), s.Parameter("shift")), c.Err()
}

// maskSampler draws 0 with probability drop and keep otherwise.
type maskSampler struct{ drop, keep float64 }

func (m maskSampler) Sample(dst []float32, r *rand.Rand) {
	keep := float32(m.keep)
	for i := range dst {
		dst[i] = keep
		if r.Float64() < m.drop {
			dst[i] = 0
		}
	}
}

// SampleNumbers draws the values of Sample from the generator below the stream, for package train.
func (m maskSampler) SampleNumbers(dst []float32, p *kernel.PCG) {
	p.Choose(dst, m.drop, 0, float32(m.keep))
}
