package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/atomicfile"
)

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

var errNoArray = errors.New("is neither an NPY nor an IDX file, nor one of the other formats that are read: .npz, .safetensors, .csv, PNG, JPEG, GIF, BMP")

func parseArray(b []byte) (array, error) {
	switch {
	case bytes.HasPrefix(b, []byte(npyMagic)):
		return parseNPY(b)
	case isIDX(b):
		return parseIDX(b)
	}
	return array{}, errNoArray
}

// WriteImages is [WriteRows] of images, or codes, without names and labels.
func WriteImages(path string, shape []int, values []float32) error {
	return WriteRows(path, "images", shape, values, Rows{})
}

// writePictures writes images as bytes.
func writePictures(path, format string, dims []int, values []float32) error {
	n, shape := dims[0], dims[1:]
	switch {
	case format == "idx":
		return atomicfile.Write(path, func(w io.Writer) error { return writeIDXFile(w, path, dims, toBytes(values)) })
	case len(shape) == 3 && shape[2] != 1 && shape[2] != 3:
		return fmt.Errorf("%s: a PNG file has 1 or 3 channels, not %d: write to a name that ends in .npy", path, shape[2])
	case format == "png" && n != 1:
		return fmt.Errorf("%s: %d images do not fit into one PNG file: give the name of a folder", path, n)
	case format == "png":
		return atomicfile.Write(path, func(w io.Writer) error { return encodePNG(w, shape, toBytes(values)) })
	}
	return writePNGs(path, shape, toBytes(values))
}

// FormatOf returns the format in which [WriteRows] writes to a path of that name: "npy", "npz", "csv", "idx", "png" or "folder".
// It lets a command refuse a name before it computes anything.
func FormatOf(path string) (string, error) {
	name := strings.ToLower(filepath.Base(path))
	bare := strings.TrimSuffix(name, ".gz")
	switch {
	case strings.HasSuffix(bare, ".idx"), strings.HasSuffix(bare, "-ubyte"):
		return "idx", nil
	case strings.HasSuffix(name, ".npy"), strings.HasSuffix(name, ".npz"), strings.HasSuffix(name, ".csv"):
		return name[len(name)-3:], nil
	case strings.HasSuffix(name, ".png"):
		return "png", nil
	case filepath.Ext(name) == "", strings.HasSuffix(path, "/"):
		return "folder", nil
	}
	return "", fmt.Errorf("%s: the name must end in .npy, .npz, .csv, .idx, .idx.gz or .png, or have no extension, for a folder of PNG files", inLine(path))
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
