package data

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"tessera/internal/atomicfile"
)

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
