package data

import (
	"context"
	"fmt"

	"tessera/part"
)

// Arrays are the keys that the data sets idx and npy share: your own images and labels in array files, whose format (IDX or
// NPY, gzipped or not) is detected from the content. Paths are relative to the current directory. uint8 values become
// value/255, floats are used as they are. Images are (n, height, width), (n, height, width, channels), or (n, values) with
// the keys height and width.
type Arrays struct {
	Images     string `toml:"images" required:"true" doc:"file of the training images"`
	Labels     string `toml:"labels" doc:"file of their labels, one integer per image"`
	TestImages string `toml:"test_images" doc:"file of the test images; without it the set has no test split"`
	TestLabels string `toml:"test_labels" doc:"file of their labels"`
	Height     int    `toml:"height" want:"> 0" doc:"image height in pixels, for files with one row of values per image"`
	Width      int    `toml:"width" want:"> 0" doc:"image width in pixels, for files with one row of values per image"`
}

// HasTest implements [Tester].
func (a *Arrays) HasTest() bool { return a.TestImages != "" }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*Arrays) Origin() Origin { return OwnFiles }

// Check reports keys that need another one.
func (a *Arrays) Check() error {
	switch {
	case a.TestLabels != "" && a.TestImages == "":
		return part.KeyError{Key: "test_labels", Problem: "is given without test_images"}
	case a.Height > 0 && a.Width == 0:
		return part.KeyError{Key: "height", Problem: "is given without width"}
	case a.Width > 0 && a.Height == 0:
		return part.KeyError{Key: "width", Problem: "is given without height"}
	}
	return nil
}

// Shape implements [Source] by the header of the training images' file.
func (a *Arrays) Shape(Dirs) ([]int, bool) {
	b, err := head(a.Images, npyHeaderMost)
	if err != nil {
		return nil, false
	}
	dims, err := arrayDims(b)
	if err != nil || len(dims) < 2 {
		return nil, false
	}
	shape, err := a.imageShape(dropOneChannel(dims[1:]))
	return shape, err == nil
}

// imageShape returns the shape of images that a file holds as values of shape in.
func (a *Arrays) imageShape(in []int) ([]int, error) {
	values, err := product(in)
	if err != nil {
		return nil, err
	}
	size, err := product([]int{a.Height, a.Width})
	switch {
	case err != nil:
		return nil, err
	case len(in) > 1 && a.Height > 0 && (in[0] != a.Height || in[1] != a.Width):
		return nil, fmt.Errorf("the images are %s, but the keys say height = %d, width = %d", by(in), a.Height, a.Width)
	case len(in) > 1:
		return in, nil
	case a.Height == 0:
		return nil, fmt.Errorf("each image is a row of %d values: say its shape with the keys height and width", values)
	case values == 0 || values%size != 0:
		return nil, fmt.Errorf("each image has %d values, but height = %d, width = %d", values, a.Height, a.Width)
	}
	return dropOneChannel([]int{a.Height, a.Width, values / size}), nil
}

// load reads the splits of the set of that name.
func (a *Arrays) load(ctx context.Context, name string, need Need) (*Set, error) {
	set := &Set{Name: name, HasTest: a.HasTest()}
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

// split reads one file of images and, unless it is "", one of labels.
func (a *Arrays) split(ctx context.Context, set *Set, path, labels string) (*Images, error) {
	values, file, err := readArray(ctx, path)
	if err != nil {
		return nil, badFile(set.Name, path, err)
	}
	set.Files = append(set.Files, file)
	images, err := values.images()
	if err != nil {
		return nil, badFile(set.Name, path, err)
	}
	shape, err := a.imageShape(images.Shape)
	if err != nil {
		return nil, badFile(set.Name, path, err)
	}
	if images, err = images.WithShape(shape); err != nil || labels == "" {
		return images, err
	}
	values, file, err = readArray(ctx, labels)
	if err != nil {
		return nil, badFile(set.Name, labels, err)
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
