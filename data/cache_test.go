package data

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// photos writes a folder of images of 8 or 16 bits.
func photos(t *testing.T, deep bool) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder, r := filepath.Join(t.TempDir(), "photos"), rand.New(rand.NewPCG(5, 6))
	fatal.If(t, os.Mkdir(folder, 0o777))
	for i := range leastCached {
		write(t, folder, fmt.Sprintf("%03d.png", i), photo(t, deep, r))
	}
	return folder
}

func photo(t *testing.T, deep bool, r *rand.Rand) []byte {
	t.Helper()
	var m image.Image
	shape := image.Rect(0, 0, 5, 4)
	if deep {
		grey := image.NewGray16(shape)
		for i := range 20 {
			grey.SetGray16(i%5, i/5, color.Gray16{Y: uint16(r.Uint32())})
		}
		m = grey
	} else {
		grey := image.NewGray(shape)
		for i := range grey.Pix {
			grey.Pix[i] = byte(r.Uint32())
		}
		m = grey
	}
	var b bytes.Buffer
	fatal.If(t, png.Encode(&b, m))
	return b.Bytes()
}

// pixelsOf reads a folder.
func pixelsOf(t *testing.T, folder string) ([]float32, File) {
	t.Helper()
	set, err := Load(context.Background(), &Files{Kind: "images", File: folder, Channels: 1}, Dirs{}, Need{Train: true})
	fatal.If(t, err)
	return set.Train.Float32(), set.Files[0]
}

// Pixels that are kept are those of the images, whatever happens to the images or to the file that keeps them.
func TestKeptPixelsAreThoseOfTheImages(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, deep := range []bool{false, true} {
		for name, disturb := range map[string]func(folder, kept string){
			"nothing": func(string, string) {},
			"another image of equal size and time": func(folder, _ string) {
				path := filepath.Join(folder, "007.png")
				info, err := os.Stat(path)
				fatal.If(t, err)
				b := photo(t, deep, r)
				for int64(len(b)) != info.Size() {
					b = photo(t, deep, r)
				}
				write(t, "", path, b)
				fatal.If(t, os.Chtimes(path, time.Time{}, info.ModTime()))
			},
			"a name": func(folder, _ string) {
				_ = os.Rename(filepath.Join(folder, "007.png"), filepath.Join(folder, "999.png"))
			},
			"an image more":      func(folder, _ string) { write(t, folder, "999.png", photo(t, deep, r)) },
			"a pixel that flips": func(_, kept string) { flipLast(t, kept) },
			"a file cut short":   func(_, kept string) { _ = os.Truncate(kept, 300) },
			"an empty file":      func(_, kept string) { write(t, "", kept, "") },
			"a deleted file":     func(_, kept string) { _ = os.Remove(kept) },
		} {
			t.Run(fmt.Sprint(name, deep), func(t *testing.T) {
				folder := photos(t, deep)
				pixelsOf(t, folder)
				kept, err := filepath.Glob(filepath.Join(filepath.Dir(folder), ".photos.*"+cacheSuffix))
				if err != nil || len(kept) != 1 {
					t.Fatalf("kept %q, %v", kept, err)
				}
				disturb(folder, kept[0])
				got, file := pixelsOf(t, folder)
				WithoutCache(true)
				defer WithoutCache(false)
				want, wanted := pixelsOf(t, folder)
				expect.Slice(t, got, want, "the pixels or their checksum differ")
				expect.Equal(t, file, wanted, "the pixels or their checksum differ")
			})
		}
	}
}

func flipLast(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	fatal.If(t, err)
	b[len(b)-1] ^= 1
	write(t, "", path, b)
}

// What is kept is read instead of the images: a file with other pixels, and their checksum, is believed.
func TestKeptPixelsAreRead(t *testing.T) {
	folder := photos(t, true)
	pixelsOf(t, folder)
	p := (&Files{Kind: "images", Channels: 1}).pictures()
	l, err := p.list(folder)
	fatal.If(t, err)
	sources, err := p.sources(context.Background(), folder, l.paths)
	fatal.If(t, err)
	images, err := NewFloats([]int{4, 5}, slices.Repeat([]float32{0.5}, 20*len(l.paths)), nil)
	fatal.If(t, err)
	set := &Set{Shape: images.Shape, Train: images, Files: []File{{Path: "photos", SHA256: "other"}}}
	fatal.If(t, set.writePixels(p.cachePlaces(folder)[0], sources))
	if got, _ := pixelsOf(t, folder); got[0] != 0.5 {
		t.Errorf("got %v, want what is kept", got[0])
	}
}

// Pixels of a folder beside which nothing can be written are kept in the user's cache; processes that read at once do not disturb
// each other.
func TestPixelsInTheUsersCache(t *testing.T) {
	folder := photos(t, false)
	beside := (&Files{Kind: "images", Channels: 1}).pictures().cachePlaces(folder)
	if err := os.Mkdir(beside[0], 0o777); err != nil { // a file cannot take its place
		t.Fatal(err)
	}
	write(t, beside[0], "x", "")
	want, _ := pixelsOf(t, folder)
	fatal.If(t, expect.Err(os.Stat(beside[1])))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_ = os.Remove(beside[1])
			set, err := Load(context.Background(), &Files{Kind: "images", File: folder, Channels: 1}, Dirs{}, Need{Train: true})
			if err != nil || !slices.Equal(set.Train.Float32(), want) {
				t.Errorf("the pixels differ: %v", err)
			}
		})
	}
	all.Wait()
}

// What reading changes is said on every command, but found once: pictures that are kept are not decoded again for it.
func TestKeptPixelsKeepWhatReadingChanges(t *testing.T) {
	folder := photos(t, false)
	coloured := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	coloured.Set(1, 1, color.NRGBA{200, 0, 0, 255})
	for i := range leastCached {
		coloured.Set(4, 3, color.NRGBA{uint8(i), 0, 0, 255})
		var b bytes.Buffer
		fatal.If(t, png.Encode(&b, coloured))
		fatal.If(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d.png", i)), b.Bytes(), 0o600))
	}
	source := &Files{Kind: "images", File: folder}
	first, err := Load(context.Background(), source, Dirs{}, Need{Train: true})
	fatal.If(t, err)
	expect.Equal(t, len(first.Notes), 1, first.Notes)
	r := source.reading()
	p := r.pictures()
	l, err := p.list(folder)
	fatal.If(t, err)
	sources, err := p.sources(context.Background(), folder, l.paths)
	fatal.If(t, err)
	place := p.cachePlaces(folder)[0]
	kept := readPixels(context.Background(), place, sources)
	kept.Notes[1] = "kept"
	fatal.If(t, kept.writePixels(place, sources))
	again, err := Load(context.Background(), source, Dirs{}, Need{Train: true})
	fatal.If(t, err)
	expect.Slice(t, again.Notes, []string{"kept"}, "the notes of kept pixels")
}
