package data

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"tessera/internal/atomicfile"
)

// leastCached is the smallest number of images whose pixels are kept: fewer are decoded at once.
const leastCached = 64

const cacheSuffix = ".tessera-cache"

// cacheMagic is the first line of a file of pixels. It changes if the same images would be read as other pixels. The second line is the
// checksum of the settings, names and contents of the image files; the checksum of what follows, a packed set, begins the third.
const cacheMagic = "tessera pixels 4\n"

var withoutCache atomic.Bool

// WithoutCache sets whether this process decodes all images of folders, neither reading nor writing files of their pixels.
func WithoutCache(is bool) { withoutCache.Store(is) }

// cached is like [pictures.read], for the images of a folder. The decoded pixels of many images are kept in a hidden file beside the
// folder, or in the user's cache if that cannot be written. The file is used only while it has the checksum of the settings and of the
// names and bytes of all images, and its pixels have theirs. It may be deleted at any time. It keeps what reading changes, because finding it
// decodes some images.
func (p pictures) cached(ctx context.Context, folder string, paths []string, want []int) (a array, c changes, files []File, err error) {
	if len(paths) < leastCached || withoutCache.Load() {
		if a, files, err = p.read(ctx, folder, paths, want); err == nil {
			c = p.changes(folder, paths)
		}
		return a, c, files, err
	}
	sources, err := p.sources(ctx, folder, paths)
	if err != nil {
		return a, c, nil, err
	}
	places := p.cachePlaces(folder)
	for _, place := range places {
		if m := readPixels(ctx, place, sources); m != nil {
			if err := fits(paths[0], len(paths), m.Train.Shape, want); err != nil {
				return a, c, nil, err
			}
			copy(c[:], m.Notes)
			a = array{dims: append([]int{m.Train.n}, m.Train.Shape...), bytes: m.Train.bytes, floats: m.Train.floats, scaled: true}
			return a, c, []File{{Path: folder, SHA256: m.Files[0].SHA256}}, nil
		}
	}
	if a, files, err = p.read(ctx, folder, paths, want); err != nil {
		return a, c, files, err
	}
	images, err := a.images(false)
	if err != nil {
		return a, c, nil, err
	}
	c = p.changes(folder, paths)
	set := &Set{Shape: images.Shape, Train: images, Files: files, Notes: c[:]}
	for _, place := range places {
		if os.MkdirAll(filepath.Dir(place), 0o777) == nil && set.writePixels(place, sources) == nil {
			break
		}
	}
	return a, c, files, nil
}

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

// readPixels reads a file of pixels of the given sources; nil if there is none that is whole.
func readPixels(ctx context.Context, path, sources string) *Set {
	f, size, err := openFile(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil || ctx.Err() != nil {
		return nil
	}
	b, ok := bytes.CutPrefix(b, []byte(cacheMagic+sources+"\n"))
	if !ok || len(b) < sha256.Size || sha256.Sum256(b[sha256.Size:]) != [sha256.Size]byte(b) {
		return nil
	}
	set, err := Unpack(b[sha256.Size:])
	if err != nil || set.Train == nil || len(set.Files) != 1 {
		return nil
	}
	return set
}

// writePixels writes a file of pixels atomically.
func (s *Set) writePixels(path, sources string) error {
	h := sha256.New()
	if err := s.Pack(h); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s\n%s", cacheMagic, sources, h.Sum(nil))
		return cmp.Or(err, s.Pack(w))
	})
}
