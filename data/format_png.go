package data

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/atomicfile"
	"tessera/internal/regular"
	"tessera/team"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// mostPixels bounds one PNG file: decoded, 16-bit colours take 8 bytes a pixel, 2 GiB. A few bytes can claim any size.
const mostPixels = 1 << 28

// pngFiles lists the PNG files of a folder by name. Where the folder has only sub-folders, each is a class: their
// files follow one another, labelled by the position of the folder's name. Other files and hidden ones are left out.
func pngFiles(folder string) (paths []string, labels []int, classes []string, err error) {
	paths, classes, err = pngEntries(folder)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(paths) > 0 {
		return paths, nil, nil, nil
	}
	for label, class := range classes {
		files, _, err := pngEntries(filepath.Join(folder, class))
		if err != nil {
			return nil, nil, nil, err
		}
		paths = append(paths, files...)
		labels = append(labels, slices.Repeat([]int{label}, len(files))...)
	}
	if len(paths) == 0 {
		return nil, nil, nil, &Error{Path: folder, Problem: "there are no .png files in this folder or its sub-folders"}
	}
	return paths, labels, classes, nil
}

// pngEntries returns the PNG files and the sub-folders of a folder, both sorted by name, hidden ones left out.
func pngEntries(folder string) (files, folders []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, badFile("", folder, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(folder, e.Name())
		switch info, err := os.Stat(path); { // follows links, which DirEntry does not
		case errors.Is(err, os.ErrNotExist):
			return nil, nil, &Error{Path: path, Problem: "is a broken link", Hint: "remove it, or restore its target"}
		case err != nil:
			return nil, nil, badFile("", path, err)
		case info.IsDir():
			folders = append(folders, e.Name())
		case strings.EqualFold(filepath.Ext(path), ".png"):
			files = append(files, path)
		}
	}
	return files, folders, nil
}

// pngShape returns the shape of the image of a PNG file, read with that many channels, from its header.
func pngShape(path string, channels int) ([]int, error) {
	f, _, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	config, err := png.DecodeConfig(bufio.NewReader(f))
	if err != nil {
		return nil, cut(err)
	}
	if config.Height > mostPixels/config.Width { // the decoder refuses a width of 0
		return nil, &Error{Path: path, Problem: fmt.Sprintf("the header says %dx%d (height x width), more than %d pixels",
			config.Height, config.Width, mostPixels), Hint: "cut the image into smaller ones"}
	}
	shape := []int{config.Height, config.Width, channels}
	if channels == 1 {
		shape = shape[:2]
	}
	return shape, nil
}

// readPNGs decodes files of one size into images of one or three channels, and hashes them. want is the shape of an image
// as [ReadImages] has it, nil for that of the first file.
func readPNGs(ctx context.Context, paths []string, labels []int, channels int, want []int) (*Images, string, error) {
	shape, err := pngShape(paths[0], channels)
	if err != nil {
		return nil, "", badFile("", paths[0], err)
	}
	if err := fits(paths[0], len(paths), shape, want); err != nil {
		return nil, "", err
	}
	// All headers are checked first, so a wrong size in one file does not determine the memory for all images.
	if err := eachPNG(ctx, paths, func(i int) error { return samePNGSize(paths[i], shape) }); err != nil {
		return nil, "", err
	}
	size, _ := product(shape)
	if _, err := product([]int{size, len(paths)}); err != nil {
		return nil, "", badFile("", paths[0], err)
	}
	pixels := make([]byte, size*len(paths))
	if err := eachPNG(ctx, paths, func(i int) error { return readPNG(pixels[i*size:(i+1)*size], paths[i], shape) }); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(pixels)
	images, err := NewBytes(shape, pixels, labels)
	return images, hex.EncodeToString(sum[:]), err
}

// eachPNG does something with every file and returns the first error by name, however the work was spread.
func eachPNG(ctx context.Context, paths []string, do func(i int) error) error {
	problems := make([]error, len(paths))
	team.For(len(paths), 16, func(from, to int) {
		for i := from; i < to; i++ {
			if problems[i] = ctx.Err(); problems[i] == nil {
				problems[i] = do(i)
			}
		}
	})
	for i, err := range problems {
		if err != nil {
			return badFile("", paths[i], err)
		}
	}
	return nil
}

// samePNGSize refuses a file whose header says another size than that of the first file.
func samePNGSize(path string, shape []int) error {
	got, err := pngShape(path, 1)
	if err != nil {
		return err
	}
	if got[0] != shape[0] || got[1] != shape[1] {
		return &Error{Path: path, Problem: fmt.Sprintf("the image is %dx%d (height x width), the first one is %dx%d",
			got[0], got[1], shape[0], shape[1]), Hint: "all images of a set must have one size"}
	}
	return nil
}

// readPNG decodes one file of that shape into dst.
func readPNG(dst []byte, path string, shape []int) error {
	channels := 1
	if len(shape) == 3 {
		channels = shape[2]
	}
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoded, err := png.Decode(bufio.NewReader(f))
	if err != nil {
		return cut(err)
	}
	if channels == 1 {
		if grey, ok := decoded.(*image.Gray); ok && len(grey.Pix) == len(dst) {
			copy(dst, grey.Pix)
			return nil
		}
		// Grey is 0.299 R + 0.587 G + 0.114 B; transparent pixels are blended over black.
		grey := &image.Gray{Pix: dst, Stride: shape[1], Rect: image.Rect(0, 0, shape[1], shape[0])}
		draw.Draw(grey, grey.Rect, decoded, decoded.Bounds().Min, draw.Src)
		return nil
	}
	rgba := image.NewRGBA(image.Rect(0, 0, shape[1], shape[0]))
	draw.Draw(rgba, rgba.Rect, decoded, decoded.Bounds().Min, draw.Src)
	for i := range shape[0] * shape[1] {
		copy(dst[3*i:3*i+3], rgba.Pix[4*i:])
	}
	return nil
}

// cut replaces an unexpected end of the file by a message that users understand.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// encodePNG writes one image of bytes.
func encodePNG(w io.Writer, shape []int, pixels []byte) error {
	rect := image.Rect(0, 0, shape[1], shape[0])
	var img image.Image = &image.Gray{Pix: pixels, Stride: shape[1], Rect: rect}
	if len(shape) == 3 && shape[2] == 3 {
		rgba := image.NewNRGBA(rect)
		for i := range shape[0] * shape[1] {
			rgba.SetNRGBA(i%shape[1], i/shape[1], color.NRGBA{pixels[3*i], pixels[3*i+1], pixels[3*i+2], 255})
		}
		img = rgba
	}
	return png.Encode(w, img)
}

// writePNGs writes images as 00000.png, 00001.png, ... into a folder that is made beside and renamed, so that it is
// complete or not there. A folder that has something in it already is refused: old and new images would be mixed.
func writePNGs(folder string, shape []int, pixels []byte) (err error) {
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return &os.PathError{Op: "write images to", Path: folder, Err: errors.New("the folder is not empty")}
	}
	folder = filepath.Clean(folder)
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved // a link keeps pointing where it does
	}
	beside, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(beside)
		}
	}()
	size, _ := product(shape)
	n := len(pixels) / size
	digits := max(5, len(strconv.Itoa(n-1)))
	disk := atomicfile.OS{}
	for i := range n {
		path := filepath.Join(beside, fmt.Sprintf("%0*d.png", digits, i))
		one := func(w io.Writer) error { return encodePNG(w, shape, pixels[i*size:(i+1)*size]) }
		if err := disk.WriteFile(path, one); err != nil {
			return err
		}
	}
	if err := disk.Sync(beside); err != nil {
		return err
	}
	if err := os.Chmod(beside, 0o755); err != nil { // MkdirTemp gives 0700
		return err
	}
	// An empty folder is removed first, because renaming fails on any existing folder. Removing fails if the folder is not
	// empty any more.
	if info, err := os.Stat(folder); err == nil && info.IsDir() {
		if err := os.Remove(folder); err != nil {
			return err
		}
	}
	return os.Rename(beside, folder)
}
