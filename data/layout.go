package data

import (
	"fmt"
	"slices"

	"tessera/part"
)

// Layout is how the values of an array file are to be understood: the keys that all data sets of array files share.
type Layout struct {
	Height int    `toml:"height" want:"> 0" doc:"image height in pixels, where a row of values is an image; without height and width it is a vector"`
	Width  int    `toml:"width" want:"> 0" doc:"image width in pixels, where a row of values is an image"`
	Axes   string `toml:"axes" doc:"axes of arrays of four axes: samples, height, width, channels, or channels before height and width; by default nhwc, unless the sizes look like nchw, which is an error"`
	Scale  Scale  `toml:"scale" doc:"how values are scaled: bytes (x/255, of floats up to 255), minmax (to [0,1]), standardise (both by statistics of the fitted samples, kept with the model), or a factor; by default they are used as they are"`
}

// The values of [Layout.Axes].
const (
	channelsLast  = "nhwc"
	channelsFirst = "nchw"
)

// check reports keys that need another one.
func (l *Layout) check() error {
	switch {
	case l.Height > 0 && l.Width == 0:
		return part.KeyError{Key: "height", Problem: "is given without width"}
	case l.Width > 0 && l.Height == 0:
		return part.KeyError{Key: "width", Problem: "is given without height"}
	case l.Axes != "" && l.Axes != channelsLast && l.Axes != channelsFirst:
		return part.KeyErrorf("axes", "got %q, want %q or %q", l.Axes, channelsLast, channelsFirst)
	}
	return nil
}

// sampleShape returns the shape of samples that a file holds in an array of these axes.
func (l *Layout) sampleShape(dims []int) ([]int, error) {
	if len(dims) == 4 && l.Axes == channelsFirst {
		dims = []int{dims[0], dims[2], dims[3], dims[1]}
	}
	in := dropOneChannel(dims[1:])
	values, err := product(in)
	if err != nil {
		return nil, err
	}
	size, err := product([]int{l.Height, l.Width})
	switch {
	case err != nil:
		return nil, err
	case len(in) > 1 && l.Height > 0 && (in[0] != l.Height || in[1] != l.Width):
		return nil, fmt.Errorf("the images are %s, but the keys say height = %d, width = %d", by(in), l.Height, l.Width)
	case len(in) > 1 || l.Height == 0:
		return in, nil
	case values == 0 || values%size != 0:
		return nil, fmt.Errorf("each image has %d values, but height = %d, width = %d", values, l.Height, l.Width)
	}
	return dropOneChannel([]int{l.Height, l.Width, values / size}), nil
}

// samples returns the samples of an array, from path, and notes in the set what is doubtful about them.
func (l *Layout) samples(set *Set, path string, a array) (*Images, error) {
	images, doubt, err := l.read(a)
	if err != nil {
		return nil, badFile(set.Name, path, err)
	}
	if doubt != nil && set.doubt == nil {
		set.doubt = &Error{Dataset: set.Name, Path: path, Problem: doubt.Problem, Hint: doubt.Hint}
	}
	return images, nil
}

// read returns the samples of an array, and what is doubtful about them.
func (l *Layout) read(a array) (images *Images, doubt *Error, err error) {
	dims := a.dims
	if len(dims) == 4 && l.Axes == channelsFirst {
		a = a.channelsLast()
	}
	l.ofBytes(a)
	if images, err = a.images(); err != nil {
		return nil, nil, err
	}
	shape, err := l.sampleShape(dims)
	if err != nil {
		return nil, nil, err
	}
	if images, err = images.WithShape(shape); err != nil {
		return nil, nil, err
	}
	return images, l.doubt(dims, images), nil
}

// ofBytes divides floats that are bytes by 255.
func (l *Layout) ofBytes(a array) {
	if l.Scale.Method != scaleBytes {
		return
	}
	for i := range a.floats {
		a.floats[i] /= 255
	}
}

// mostDoubted is the largest value of floats that are doubtful as images: that of a byte.
const mostDoubted = 255

// doubt returns why the values of an array are probably not what was meant, nil where nothing is doubtful.
func (l *Layout) doubt(dims []int, images *Images) *Error {
	if len(dims) == 2 && len(images.Shape) == 3 && l.Axes == channelsFirst {
		return &Error{
			Problem: fmt.Sprintf("axes = %q is for arrays of four axes, but rows of values are read as height, width, channels", channelsFirst),
			Hint:    "save the array with the shape (n, channels, height, width), or leave axes out if each row has the channels last",
		}
	}
	few := []int{1, 3, 4} // channels of an image
	if len(dims) == 4 && l.Axes == "" && slices.Contains(few, dims[1]) && dims[3] > 4 {
		return &Error{
			Problem: fmt.Sprintf("its axes (%d, %d, %d, %d) look like samples, channels, height, width", dims[0], dims[1], dims[2], dims[3]),
			Hint: fmt.Sprintf("write axes = %q in the dataset table, or axes = %q if these are %d rows of %d columns with %d channels",
				channelsFirst, channelsLast, dims[1], dims[2], dims[3]),
		}
	}
	if len(images.Shape) < 2 || images.floats == nil || l.Scale != (Scale{}) {
		return nil
	}
	if low, high := images.Range(); low >= 0 && high > 2 && high <= mostDoubted {
		return &Error{
			Problem: fmt.Sprintf("its values, floats, reach from %g to %g: they look like bytes from 0 to 255", low, high),
			Hint:    `write scale = "bytes" in the dataset table to divide them by 255, or scale = 1 to use them as they are`,
		}
	}
	return nil
}

// channelsLast returns an array of axes (n, channels, height, width) as (n, height, width, channels).
func (a array) channelsLast() array {
	n, channels, pixels := a.dims[0], a.dims[1], a.dims[2]*a.dims[3]
	return array{dims: []int{n, a.dims[2], a.dims[3], channels}, ints: a.ints, texts: a.texts,
		bytes: moveChannels(a.bytes, n, channels, pixels), floats: moveChannels(a.floats, n, channels, pixels)}
}

func moveChannels[T any](values []T, n, channels, pixels int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(values))
	for i := range n {
		for c := range channels {
			for p := range pixels {
				out[(i*pixels+p)*channels+c] = values[(i*channels+c)*pixels+p]
			}
		}
	}
	return out
}
