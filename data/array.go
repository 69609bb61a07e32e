package data

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"tessera/internal/safetensors"
)

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
	for i, v := range a.floats {
		if v64 := float64(v); math.IsNaN(v64) || math.IsInf(v64, 0) {
			what := "image"
			if len(a.dims) == 2 { // which may be codes
				what = "row"
			}
			return nil, fmt.Errorf("%s %d holds the value %v", what, i/images.pixels, v)
		}
	}
	return images, nil
}

// otherFormat says which data set reads a file that is no array file.
func otherFormat(path string, err error) error {
	if !errors.Is(err, errNoArray) {
		return err
	}
	start, _ := head(path, 16)
	other := ""
	switch {
	case strings.HasPrefix(string(start), zipMagic):
		other = "npz"
	case safetensors.Is(start):
		other = "safetensors"
	case strings.EqualFold(filepath.Ext(path), ".csv"), strings.EqualFold(filepath.Ext(path), ".tsv"):
		other = "csv"
	default:
		return err
	}
	return &Error{Path: path, Problem: "is neither an NPY nor an IDX file", Hint: fmt.Sprintf("write name = %q in the dataset table", other)}
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
