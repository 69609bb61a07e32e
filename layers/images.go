package layers

import (
	"cmp"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
	"tessera/part"
)

// imageOf returns height, width and channels of an image of shape (height, width, channels), or (height, width) with one
// channel.
func imageOf(in []int) ([3]int, error) {
	if len(in) != 2 && len(in) != 3 {
		return [3]int{}, fmt.Errorf("got an input of shape %v, want an image (height, width) or (height, width, channels)", in)
	}
	return [3]int{in[0], in[1], channels(in)}, nil
}

// channels is the length of the last axis of an image (height, width, channels), or of a vector; an image without that
// axis has one channel.
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

// count is a setting that must be >= 1.
type count struct {
	key   string
	value int
}

// positive reports the first count that is < 1.
func positive(counts []count) error {
	for _, c := range counts {
		if c.value < 1 {
			return part.KeyErrorf(c.key, "got %d, want > 0", c.value)
		}
	}
	return nil
}

// longestSide bounds the side of an image in pixels. A longer one is probably a typo, and would overflow.
const longestSide = 1 << 24

// bounded reports the first count that is too large for images of that shape and that kernel: multiplied by a side of
// either, it exceeds longestSide.
func bounded(image [3]int, kernel int, counts []count) error {
	for _, c := range counts {
		if c.value > longestSide/max(image[0], image[1], kernel) {
			return part.KeyErrorf(c.key, "got %d, which spans more than %d pixels on a side", c.value, longestSide)
		}
	}
	return nil
}

// mostWindows bounds the values that a convolution copies of one image: 1 GiB in float32.
const mostWindows = 1 << 28

// boundedWindows returns an error if the copied windows of one image hold too many values.
func boundedWindows(g ops.Convolution) error {
	width := cmp.Or(g.KernelWidth, g.Kernel)
	values := float64(g.Out[0]) * float64(g.Out[1]) * float64(g.Kernel) * float64(width) * float64(g.In[2])
	if values > mostWindows {
		return part.KeyErrorf("kernel", "the windows of one image, %d x %d of %d x %d pixels, hold %.3g values: want at most %.3g",
			g.Out[0], g.Out[1], g.Kernel, width, values, float64(mostWindows))
	}
	return nil
}

// onImages applies an op on tensors (batch, height, width, channels) to x, the images of shape in, and returns its result
// with the shape out.
func onImages(x *gorgonia.Node, image [3]int, out []int, f func(images *gorgonia.Node) (*gorgonia.Node, error)) (*gorgonia.Node, error) {
	var c ops.Chain
	images := c.Reshape(x, x.Shape()[0], image[0], image[1], image[2])
	y := c.Do("images", func() (*gorgonia.Node, error) { return f(images) })
	return c.Reshape(y, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

// addChannels adds one number per channel to x, whose last axis is the channels.
func addChannels(c *ops.Chain, x, numbers *gorgonia.Node) *gorgonia.Node {
	return perChannel(c, x, numbers, c.AddRow)
}

// mulChannels multiplies x, whose last axis is the channels, by one number per channel.
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

// Padding is the number of pixels around an image that the filters of a convolution or the windows of a pooling may cover.
// Filters read zeros there. "same" gives an output of ceil(input / stride) rows and columns, with an odd pixel at the end;
// "valid" is no padding; a number is the pixels on every side.
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

// along returns the output's length and the padding before the input along one axis of length in, for windows that span
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

// back is along for the transposed convolution: a convolution of out values with that padding gives in values. For "same"
// out is the longest such axis.
func (p Padding) back(in, reach, stride int) (out, before int) {
	if p.Same {
		out = in * stride
		return out, max((in-1)*stride+reach-out, 0) / 2
	}
	return (in-1)*stride + reach - 2*p.Pixels, p.Pixels
}
