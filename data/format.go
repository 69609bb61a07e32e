package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/atomicfile"
)

// ReadImages reads the images, or the codes, of a file that belongs to no data set: .npy, IDX, both gzipped or not (detected
// from the content), one PNG, or a folder of PNG files of one size. uint8 values become value/255, floats are taken as they
// are; arrays are (n, values), (n, height, width) or (n, height, width, channels).
//
// shape is the shape of one image that the caller needs. Images with as many values are reshaped to it, others are refused.
// PNG files are read in grey unless shape has three channels. With a nil shape, the file determines the shape. All errors
// about the file are an *Error.
func ReadImages(ctx context.Context, path string, shape []int) (*Images, error) {
	images, err := readImages(ctx, path, shape)
	if err != nil {
		return nil, badFile("", path, err)
	}
	if shape == nil {
		return images, nil
	}
	if err := fits(path, images.Len(), images.Shape, shape); err != nil {
		return nil, err
	}
	return images.WithShape(shape)
}

// fits refuses the n images of a file if their shape got is not the shape want, nil for any.
func fits(path string, n int, got, want []int) error {
	if want == nil {
		return nil
	}
	if len(got) > 1 && len(want) > 1 && !slices.Equal(got, want) {
		return &Error{Path: path, Problem: fmt.Sprintf("the images are %s, want %s", by(got), by(want))}
	}
	values, err := product(got)
	if err != nil {
		return badFile("", path, err)
	}
	if wanted, err := product(want); err != nil || wanted != values {
		hint := ""
		if slices.Equal(append([]int{n}, got...), want) {
			hint = fmt.Sprintf("one image alone is saved with the shape (1,%s)", strings.ReplaceAll(by(want), "x", ","))
		}
		return &Error{Path: path, Problem: fmt.Sprintf("each row has %d values (%s), want %s", values, by(got), by(want)), Hint: hint}
	}
	return nil
}

func readImages(ctx context.Context, path string, shape []int) (*Images, error) {
	channels := 1
	if len(shape) == 3 && shape[2] == 3 {
		channels = 3
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		paths, labels, _, err := pngFiles(path)
		if err != nil {
			return nil, err
		}
		images, _, err := readPNGs(ctx, paths, labels, channels, shape)
		return images, err
	}
	start, err := head(path, len(pngMagic))
	if err != nil {
		return nil, err
	}
	if string(start) == pngMagic {
		images, _, err := readPNGs(ctx, []string{path}, nil, channels, shape)
		return images, err
	}
	a, _, err := readArray(ctx, path)
	if err != nil {
		return nil, err
	}
	return a.images()
}

// readArray reads an NPY or an IDX file, gzipped or not. No more is read, nor more memory taken, than the header of the file
// says.
func readArray(ctx context.Context, path string) (array, File, error) {
	size, err := arraySize(path)
	if err != nil {
		return array{}, File{Path: path}, err
	}
	b, file, err := readFile(ctx, path, size)
	if errors.Is(err, errTooLarge) {
		return array{}, file, fmt.Errorf("the header says %d bytes in all, the file has more", size)
	} else if err != nil {
		return array{}, file, err
	}
	a, err := parseArray(b)
	return a, file, err
}

var errNoArray = errors.New("is neither an NPY nor an IDX nor a PNG file")

func parseArray(b []byte) (array, error) {
	switch {
	case bytes.HasPrefix(b, []byte(npyMagic)):
		return parseNPY(b)
	case isIDX(b):
		return parseIDX(b)
	}
	return array{}, errNoArray
}

// WriteImages writes images of that shape, row-major, in the format that the name of path asks for:
//
//	x.npy                        float32, (n, shape...), the values as they are
//	x.idx, x-ubyte, either .gz   IDX bytes (value*255, rounded and clipped to [0,255])
//	x.png                        one image, as bytes
//	any other name without an    a new folder 00000.png, 00001.png, ..., as bytes
//	extension
//
// Codes, of shape (units), are written as .npy only. Files appear complete or not at all; an existing file is
// replaced, a folder that is not empty is refused.
func WriteImages(path string, shape []int, values []float32) error {
	size, err := product(shape)
	if err != nil {
		return err
	}
	if size == 0 || len(values)%size != 0 {
		return fmt.Errorf("%d values are not a whole number of images of shape %v", len(values), shape)
	}
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	dims := append([]int{len(values) / size}, shape...)
	switch {
	case format == "npy":
		return atomicfile.Write(path, func(w io.Writer) error { return writeNPY(w, dims, values) })
	case len(shape) < 2:
		return fmt.Errorf("%s: vectors of %d values are not images: write them to a name that ends in .npy", path, size)
	case format == "idx":
		return atomicfile.Write(path, func(w io.Writer) error { return writeIDXFile(w, path, dims, toBytes(values)) })
	case len(shape) == 3 && shape[2] != 1 && shape[2] != 3:
		return fmt.Errorf("%s: a PNG file has 1 or 3 channels, not %d: write to a name that ends in .npy", path, shape[2])
	case format == "png" && dims[0] != 1:
		return fmt.Errorf("%s: %d images do not fit into one PNG file: give the name of a folder", path, dims[0])
	case format == "png":
		return atomicfile.Write(path, func(w io.Writer) error { return encodePNG(w, shape, toBytes(values)) })
	}
	return writePNGs(path, shape, toBytes(values))
}

// FormatOf returns the format in which [WriteImages] writes to a path of that name: "npy", "idx", "png" or "folder".
// It lets a command refuse a name before it computes anything.
func FormatOf(path string) (string, error) {
	name := strings.ToLower(filepath.Base(path))
	bare := strings.TrimSuffix(name, ".gz")
	switch {
	case strings.HasSuffix(bare, ".idx"), strings.HasSuffix(bare, "-ubyte"):
		return "idx", nil
	case strings.HasSuffix(name, ".npy"):
		return "npy", nil
	case strings.HasSuffix(name, ".png"):
		return "png", nil
	case filepath.Ext(name) == "", strings.HasSuffix(path, "/"):
		return "folder", nil
	}
	return "", fmt.Errorf("%s: the name must end in .npy, .idx, .idx.gz or .png, or have no extension, for a folder of PNG files", path)
}

// writeIDXFile writes an IDX file, gzipped where its name says so.
func writeIDXFile(w io.Writer, path string, dims []int, values []byte) error {
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return writeIDX(w, dims, values)
	}
	z := gzip.NewWriter(w)
	if err := writeIDX(z, dims, values); err != nil {
		return err
	}
	return z.Close()
}

// toBytes returns value*255, rounded and clipped to [0,255]; NaN gives 0.
func toBytes(values []float32) []byte {
	b := make([]byte, len(values))
	for i, v := range values {
		if v > 0 {
			b[i] = byte(math.Round(255 * float64(min(v, 1))))
		}
	}
	return b
}

// by formats a shape as 28x28.
func by(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}
