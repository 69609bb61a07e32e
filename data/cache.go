package data

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"tessera/internal/atomicfile"
)

// leastCached is the smallest number of images whose pixels are kept: fewer are decoded at once.
const leastCached = 64

// cacheSuffix is the end of the names of files of pixels.
const cacheSuffix = ".tessera-cache"

// cacheMagic is the first line of a file of pixels. It changes if the same images would be read as other pixels.
const cacheMagic = "tessera pixels 1\n"

// cacheHeader is the second line, in JSON. The pixels follow it.
type cacheHeader struct {
	Sources string // SHA-256 of the settings, names and contents of the image files
	Dims    []int
	Deep    bool   // the pixels are float32, little-endian, otherwise bytes
	Pixels  string // SHA-256 of the pixels
}

var withoutCache atomic.Bool

// WithoutCache sets whether this process decodes all images of folders, neither reading nor writing files of their pixels.
func WithoutCache(is bool) { withoutCache.Store(is) }

// cached is like [pictures.read], for the images of a folder. The decoded pixels of many images are kept in a hidden file beside the
// folder, or in the user's cache if that cannot be written. The file is used only while it has the checksum of the settings and of the
// names and bytes of all images, and its pixels have theirs. It may be deleted at any time.
func (p pictures) cached(ctx context.Context, folder string, paths []string, want []int) (a array, files []File, err error) {
	if len(paths) < leastCached || withoutCache.Load() {
		return p.read(ctx, folder, paths, want)
	}
	sources, err := p.sources(ctx, folder, paths)
	if err != nil {
		return a, nil, err
	}
	places := p.cachePlaces(folder)
	for _, place := range places {
		if a, file, ok := readPixels(ctx, place, sources); ok {
			if err := fits(paths[0], len(paths), a.dims[1:], want); err != nil {
				return a, nil, err
			}
			file.Path = folder
			return a, []File{file}, nil
		}
	}
	if a, files, err = p.read(ctx, folder, paths, want); err != nil {
		return a, files, err
	}
	for _, place := range places {
		if os.MkdirAll(filepath.Dir(place), 0o777) == nil && a.writePixels(place, cacheHeader{sources, a.dims, a.bytes == nil, files[0].SHA256}) == nil {
			break
		}
	}
	return a, files, nil
}

// settings returns the settings on which pixels depend.
func (p pictures) settings() string {
	return fmt.Sprintf("%d %d %d %s %t", p.channels, p.size.Height, p.size.Width, p.resize, p.black)
}

// sources returns a checksum of the settings, and of the names and bytes of all files.
func (p pictures) sources(ctx context.Context, folder string, paths []string) (string, error) {
	sums := make([][sha256.Size]byte, len(paths))
	err := eachImage(ctx, paths, func(i int) error {
		f, _, err := openFile(paths[i])
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		_, err = io.Copy(h, f)
		h.Sum(sums[i][:0])
		return err
	})
	h := sha256.New()
	fmt.Fprintf(h, "%s%s\n", cacheMagic, p.settings())
	for i, path := range paths {
		name, wrong := filepath.Rel(folder, path)
		if err == nil {
			err = wrong
		}
		fmt.Fprintf(h, "%q %x\n", filepath.ToSlash(name), sums[i])
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// cachePlaces lists the paths of the file of pixels, the best one first.
func (p pictures) cachePlaces(folder string) (places []string) {
	whole, err := filepath.Abs(folder)
	if err != nil {
		return nil
	}
	whole = filepath.Clean(whole)
	settings := sha256.Sum256([]byte(p.settings()))
	if above := filepath.Dir(whole); above != whole {
		places = append(places, filepath.Join(above, fmt.Sprintf(".%s.%x%s", filepath.Base(whole), settings[:4], cacheSuffix)))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		place := sha256.Sum256([]byte(whole))
		places = append(places, filepath.Join(dir, "tessera", "pixels", fmt.Sprintf("%x.%x%s", place[:8], settings[:4], cacheSuffix)))
	}
	return places
}

// readPixels reads a file of pixels of the given sources; ok is false if there is none that is whole.
func readPixels(ctx context.Context, path, sources string) (a array, file File, ok bool) {
	f, size, err := openFile(path)
	if err != nil {
		return a, file, false
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	magic, err := r.ReadString('\n')
	if err != nil || magic != cacheMagic {
		return a, file, false
	}
	line, err := r.ReadSlice('\n') // which bounds its length
	var h cacheHeader
	if err != nil || json.Unmarshal(line, &h) != nil || h.Sources != sources {
		return a, file, false
	}
	width := 1
	if h.Deep {
		width = 4
	}
	_, length, err := arrayBytes(h.Dims, width)
	if err != nil || len(h.Dims) < 2 || int64(len(magic)+len(line))+length != size {
		return a, file, false
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil || ctx.Err() != nil {
		return a, file, false
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != h.Pixels {
		return a, file, false
	}
	a = array{dims: h.Dims, scaled: true}
	if h.Deep {
		a.floats = make([]float32, length/4)
		_, _ = binary.Decode(b, binary.LittleEndian, a.floats) // there are enough bytes
	} else {
		a.bytes = b
	}
	return a, File{SHA256: h.Pixels}, true
}

// writePixels writes a file of pixels atomically.
func (a array) writePixels(path string, h cacheHeader) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(to io.Writer) error {
		w := bufio.NewWriter(to)
		w.WriteString(cacheMagic)
		w.Write(append(bytes.TrimSpace(text), '\n'))
		w.Write(a.bytes)
		if a.bytes == nil {
			writeNumbers(w, a.floats)
		}
		return w.Flush() // the error of the first write that failed
	})
}

// mostInspectedBytes is the maximum size in bytes of the pixels of a folder that an inspection decodes into memory.
const mostInspectedBytes = 1 << 30

// inspected decodes the images of a folder as a training does, so that they are kept, and returns a warning if they are equal. ok is
// false for folders of too few or too many images.
func (p pictures) inspected(ctx context.Context, folder string, l listing, shape []int) (note string, ok bool, err error) {
	n, size, err := arrayBytes(append([]int{len(l.paths)}, shape...), 4)
	if err != nil || n == 0 || size > mostInspectedBytes || len(l.paths) < leastCached || len(l.paths) > mostInspected || withoutCache.Load() {
		return "", false, nil
	}
	values, _, err := p.cached(ctx, folder, l.paths, nil)
	if err != nil {
		return "", true, err
	}
	images, err := values.images(false)
	if err == nil {
		if note = images.allEqual(); note != "" {
			note = folder + ": " + note
		}
	}
	return note, true, err
}
