package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/safetensors"
	"tessera/part"
)

// Arrays are the keys that the data sets idx and npy share: your own samples and labels in array files, whose format (IDX or
// NPY, gzipped or not) is detected from the content. Paths are relative to the current directory. uint8 values become
// value/255, floats are used as they are. Samples are vectors, (n, values), or images, (n, height, width) or (n, height, width,
// channels). With the keys height and width a row of values is an image.
type Arrays struct {
	Images     string `toml:"images" required:"true" doc:"file of the training samples"`
	Labels     string `toml:"labels" doc:"file of their labels, one integer per sample"`
	TestImages string `toml:"test_images" doc:"file of the test samples; without it the set has no test split"`
	TestLabels string `toml:"test_labels" doc:"file of their labels"`
	Layout
}

// HasTest implements [Tester].
func (a *Arrays) HasTest() bool { return a.TestImages != "" }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*Arrays) Origin() Origin { return OwnFiles }

// Check reports keys that need another one.
func (a *Arrays) Check() error {
	if a.TestLabels != "" && a.TestImages == "" {
		return part.KeyError{Key: "test_labels", Problem: "is given without test_images"}
	}
	return a.Layout.check()
}

// Shape implements [Source] by the header of the training samples' file.
func (a *Arrays) Shape(Dirs) ([]int, bool) {
	b, err := head(a.Images, npyHeaderMost)
	if err != nil {
		return nil, false
	}
	dims, err := arrayDims(b)
	if err != nil || len(dims) < 2 {
		return nil, false
	}
	shape, err := a.sampleShape(dims)
	return shape, err == nil
}

// reading implements [reader].
func (a *Arrays) reading() reading { return reading{layout: a.Layout} }

// pictures implements [reader]: images are read as any other.
func (*Arrays) pictures() pictures { return pictures{} }

// load reads the splits of the set of that name.
func (a *Arrays) load(ctx context.Context, name string, need Need) (*Set, error) {
	set := &Set{Name: name, HasTest: a.HasTest(), Scale: a.Scale}
	var err error
	if need.Train || !set.HasTest {
		if set.Train, err = a.split(ctx, set, a.Images, a.Labels); err != nil {
			return nil, err
		}
		set.Shape = set.Train.Shape
	}
	if !need.Test || !set.HasTest {
		return set, nil
	}
	if set.Test, err = a.split(ctx, set, a.TestImages, a.TestLabels); err != nil {
		return nil, err
	}
	return set, sameShape(set, a.TestImages)
}

// split reads one file of samples and, unless it is "", one of labels.
func (a *Arrays) split(ctx context.Context, set *Set, path, labels string) (*Images, error) {
	values, file, err := readArray(ctx, path)
	if err != nil {
		return nil, badFile(set.Name, path, otherFormat(path, err))
	}
	set.Files = append(set.Files, file)
	images, err := a.samples(set, path, values)
	if err != nil || labels == "" {
		return images, err
	}
	values, file, err = readArray(ctx, labels)
	if err != nil {
		return nil, badFile(set.Name, labels, labelError(labels, err))
	}
	set.Files = append(set.Files, file)
	if images.labels, err = values.labels(); err != nil {
		return nil, badFile(set.Name, labels, err)
	}
	if got := len(images.labels); got != images.Len() {
		return nil, &Error{Dataset: set.Name, Path: labels, Problem: fmt.Sprintf("%d labels for %d images", got, images.Len())}
	}
	return images, nil
}

// sameShape checks the test images, from path, against the training images, and completes the set.
func sameShape(set *Set, path string) error {
	if set.Train == nil {
		set.Shape = set.Test.Shape
		return nil
	}
	if by(set.Test.Shape) != by(set.Shape) {
		return &Error{Dataset: set.Name, Path: path, Problem: fmt.Sprintf("the test images differ from the training images (got %s, want %s)",
			by(set.Test.Shape), by(set.Shape))}
	}
	return nil
}

// dropOneChannel makes (height, width, 1) the same shape as (height, width).
func dropOneChannel(shape []int) []int {
	if len(shape) == 3 && shape[2] == 1 {
		return shape[:2]
	}
	return shape
}

func init() {
	Registry.Register("npy", "your own vectors or images in NumPy's .npy files: uint8 or floats; (n,p), (n,h,w) or (n,h,w,c)",
		func() Source { return &NPY{} })
}

// NPY is the user's data set in NumPy's .npy files: uint8, float16, float32 or float64 of (n, p), (n, h, w) or (n, h, w, c).
type NPY struct{ Arrays }

// Load implements [Source].
func (s *NPY) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "npy", need)
}

func init() {
	Registry.Register("idx", "your own images in IDX files, the layout of MNIST: images, labels, test images, test labels",
		func() Source { return &IDX{} })
}

// IDX is the user's data set in IDX files, as MNIST's are: unsigned bytes or floats of 3 or 4 axes, gzipped or not.
type IDX struct{ Arrays }

// Load implements [Source].
func (s *IDX) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "idx", need)
}

// array is the content of a file of numbers, row-major: exactly one of bytes, floats, ints and texts.
type array struct {
	dims   []int
	bytes  []byte
	floats []float32
	ints   []int    // any other integers: labels, but never pixels
	texts  []string // names or labels
}

// arrayDims returns the axes of an NPY or IDX file from its first bytes.
func arrayDims(b []byte) ([]int, error) {
	if isIDX(b) {
		_, dims, _, err := idxHeader(b)
		return dims, err
	}
	h, err := parseNPYHeader(b)
	return h.dims, err
}

// arraySize returns the uncompressed bytes of an NPY or IDX file as its header claims them. A claim that the file cannot meet
// is an error.
func arraySize(path string) (int64, error) {
	b, err := head(path, npyHeaderMost)
	if err != nil {
		return 0, err
	}
	dims, size, length, err := arrayHeader(b)
	if err != nil {
		return 0, err
	}
	_, want, err := arrayBytes(dims, size)
	if err != nil {
		return 0, err
	}
	return int64(length) + want, plausible(path, int64(length), want)
}

// arrayHeader returns the axes, the bytes of a value and the length of the header of an NPY or IDX file.
func arrayHeader(b []byte) (dims []int, size, length int, err error) {
	switch {
	case bytes.HasPrefix(b, []byte(npyMagic)):
		var h npyHeader
		if h, err = parseNPYHeader(b); err == nil {
			size, err = h.valueSize()
		}
		return h.dims, size, h.length, err
	case isIDX(b):
		var kind byte
		kind, dims, length, err = idxHeader(b)
		return dims, idxSize[kind], length, err
	}
	return nil, 0, 0, errNoArray
}

// images returns the array as images of shape dims[1:]; one channel is (height, width).
func (a array) images() (*Images, error) {
	if len(a.dims) < 2 || len(a.dims) > 4 {
		return nil, fmt.Errorf("the array has %d axes, want (images, values), (images, height, width) or "+
			"(images, height, width, channels)", len(a.dims))
	}
	if a.bytes == nil && a.floats == nil && a.dims[0] != 0 {
		return nil, fmt.Errorf("the values are neither bytes nor floats: save them as uint8 (0 to 255) or float32")
	}
	if a.dims[0] == 0 {
		return nil, fmt.Errorf("there are no images in it")
	}
	shape := dropOneChannel(a.dims[1:])
	if a.bytes != nil {
		return NewBytes(shape, a.bytes, nil)
	}
	images, err := NewFloats(shape, a.floats, nil)
	if err != nil {
		return nil, err
	}
	if place, v := images.notFinite(); place != "" {
		return nil, fmt.Errorf("%s: got %v, want a finite number", place, v)
	}
	images.finite = true
	return images, nil
}

// otherFormat replaces the error of a file that is no array file, if a data set of another name reads it.
func otherFormat(path string, err error) error {
	if other := reads(path); errors.Is(err, errNoArray) && other != "" {
		return &Error{Path: path, Problem: "is neither an NPY nor an IDX file", Hint: fmt.Sprintf("write name = %q in the dataset table", other)}
	}
	return err
}

// reads returns the name of the data set that reads a file, "" if there is none.
func reads(path string) string {
	start, _ := head(path, 16)
	switch {
	case strings.HasPrefix(string(start), zipMagic):
		return "npz"
	case safetensors.Is(start):
		return "safetensors"
	case strings.HasPrefix(string(start), npyMagic):
		return "npy"
	case isIDX(start):
		return "idx"
	case strings.EqualFold(filepath.Ext(path), ".csv"), strings.EqualFold(filepath.Ext(path), ".tsv"):
		return "csv"
	}
	return ""
}

// labelError words the error of a file of labels.
func labelError(path string, err error) error {
	if other := reads(path); errors.Is(err, errNoArray) && other != "" {
		return &Error{Path: path, Problem: "labels are read from .npy and IDX files", Hint: fmt.Sprintf(
			"save them as a .npy file of whole numbers, or samples and labels in one file, which name = %q reads", other)}
	}
	return err
}

// labels returns the array as one label per image.
func (a array) labels() ([]int, error) {
	if len(a.dims) != 1 {
		return nil, fmt.Errorf("the array has %d axes, want one label per image", len(a.dims))
	}
	if a.floats != nil || a.texts != nil {
		return nil, fmt.Errorf("labels must be integers")
	}
	if a.ints != nil {
		return a.ints, nil
	}
	labels := make([]int, len(a.bytes))
	for i, b := range a.bytes {
		labels[i] = int(b)
	}
	return labels, nil
}

// Layout has the keys that all data sets of array files share: how the values of a file are understood.
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
