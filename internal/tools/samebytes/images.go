package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// encodedImages is the number of images that are encoded and decoded.
const encodedImages = 64

// generatedSize contains the size in pixels of the images of generated data sets.
var generatedSize = map[string]int{"swimmer": 32, "bars": 8}

// imagesOf returns images of a data set as a .npy file: the first test images, or random ones of the size of a generated set.
func imagesOf(dataset string, folders []string) ([]byte, error) {
	if size, ok := generatedSize[dataset]; ok {
		pixels := make([]byte, encodedImages*size*size)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range pixels {
			pixels[i] = byte(random.Uint32())
		}
		return npy(pixels, encodedImages, size, size), nil
	}
	for _, folder := range folders {
		for _, name := range []string{"t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte"} {
			file, err := os.ReadFile(filepath.Join(folder, dataset, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			return firstImages(file)
		}
	}
	return nil, &noImages{dataset, folders}
}

// noImages is the error for a data set whose files are missing.
type noImages struct {
	dataset string
	folders []string
}

// Error implements error: the data set and the searched folders.
func (e *noImages) Error() string {
	return fmt.Sprintf("data set %s: no test images in %q", e.dataset, e.folders)
}

// firstImages returns the first images of an IDX file, compressed or not, as a .npy file.
func firstImages(file []byte) ([]byte, error) {
	if bytes.HasPrefix(file, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			return nil, err
		}
		if file, err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	const header = 16 // four big-endian integers: magic, images, rows, columns
	if len(file) < header || binary.BigEndian.Uint32(file) != 0x803 {
		return nil, errors.New("not an IDX file of images")
	}
	n, rows, columns := binary.BigEndian.Uint32(file[4:]), binary.BigEndian.Uint32(file[8:]), binary.BigEndian.Uint32(file[12:])
	n = min(n, encodedImages)
	if uint64(n)*uint64(rows)*uint64(columns) > uint64(len(file)-header) {
		return nil, errors.New("the IDX file is cut short")
	}
	return npy(file[header:header+n*rows*columns], int(n), int(rows), int(columns)), nil
}

// npy returns bytes as a .npy file in version 1.0 of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
func npy(pixels []byte, n, rows, columns int) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, %d), }", n, rows, columns)
	const before = 10
	for (before+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	start := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return slices.Concat(start, []byte(header), pixels)
}
