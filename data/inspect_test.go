package data

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// An inspection finds the damaged files that a training would not read, with the same error.
func TestInspectionDecodesPictures(t *testing.T) {
	for _, size := range []Size{{}, {8, 8}} {
		for _, name := range []string{"picture.png", "picture.gif", "picture.bmp", "turned1.jpg"} {
			dir := copied(t, map[string]string{"a": name})
			whole, err := os.ReadFile(filepath.Join(dir, "a"))
			fatal.If(t, err)
			_ = os.Remove(filepath.Join(dir, "a"))
			for i := range 20 {
				write(t, dir, fmt.Sprintf("%02d%s", i, filepath.Ext(name)), whole)
			}
			write(t, dir, "90"+filepath.Ext(name), whole[:len(whole)*2/3])
			source := &Files{Kind: "images", Images: dir, Channels: 1, Size: size}
			_, loaded := source.Load(background, nil, Both)
			if _, err := source.Inspect(background); err == nil || loaded == nil || err.Error() != loaded.Error() {
				t.Errorf("%s %v: inspected: %v, loaded: %v", name, size, err, loaded)
			}
		}
	}
}

// Of a large folder all headers are read and some files decoded, which a note says.
func TestInspectionOfALargeFolderSaysWhatItDecoded(t *testing.T) {
	var b bytes.Buffer
	fatal.If(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))))
	dir := t.TempDir()
	for i := range mostInspected + 1 {
		write(t, dir, fmt.Sprintf("%05d.png", i), b.Bytes())
	}
	source := &Files{Kind: "images", Images: dir, Channels: 1, Size: Size{1, 1}}
	want := fmt.Sprintf("%s: %d of %d images were decoded; of the others only the headers were read", dir, mostInspected, mostInspected+1)
	if notes, err := source.Inspect(background); err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("got %q, %v, want %q", notes, err, want)
	}
	write(t, dir, fmt.Sprintf("%05d.png", mostInspected), b.Bytes()[:len(b.Bytes())-20]) // the last file is decoded
	expect.AnyError(t, expect.Err(source.Inspect(background)), "a truncated file")
}
