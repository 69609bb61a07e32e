package data

import (
	"context"
	"fmt"

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
func (a *Arrays) reading() (reading, Layout) { return reading{}, a.Layout }

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
