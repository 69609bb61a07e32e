package data

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/parallel/team"
)

func init() {
	RegisterFormat(Format{Dataset: "images", About: "your own images in folders: PNG, JPEG, GIF, BMP, TIFF, WebP; the folders of the first level are classes", Sort: FolderFiles})
	RegisterFormat(Format{Dataset: "png", About: "your own images in a folder of PNG files, with class sub-folders as labels", Sort: FolderFiles})
}

// pictures returns the settings for reading image files. If a folder contains only sub-folders, each sub-folder is a class; labels are
// the indices of the class names in alphabetical order. The set png reads PNG files only, and no folders inside class folders.
// Colours become grey by 0.299 R + 0.587 G + 0.114 B, unless channels = 3; transparency is blended over the background. Pixels are
// value/255, those of images with 16 bits value/65535. JPEG images are rotated by their EXIF orientation. Of an animated GIF only the
// first image is used.
func (f *Files) pictures() pictures {
	p := pictures{channels: max(1, f.Channels), size: f.Size, resize: cmp.Or(f.Resize, resizes[0]), black: f.Background == "black"}
	if f.Kind == "png" {
		p.only, p.flat = ".png", true
	}
	return p
}

// folderClasses lists the classes of the training images without reading the images; none if there are no classes or no files.
func (r reading) folderClasses() []string {
	l, err := r.pictures().list(r.File)
	if err != nil {
		return nil
	}
	return l.classes
}

// imagesTable reads the images of a folder, or one image.
func (r reading) imagesTable(ctx context.Context, l listing) (t table, err error) {
	p := r.pictures()
	if len(r.classes) > 0 {
		if err := l.countBy(r.classes, r.File); err != nil {
			return t, err
		}
	}
	var c changes
	t.values, c, t.files, err = p.cached(ctx, r.File, l.paths, r.shape)
	t.warnings, t.labels, t.classes = p.notes(r.File, l), l.labels, l.classes
	if !r.loose { // of a training
		t.warnings = append(t.warnings, c.notes(r.File != r.Test, r.Channels > 0)...)
	}
	for _, path := range l.paths {
		name, err := filepath.Rel(r.File, path)
		if err != nil {
			return t, err
		}
		if name == "." {
			name = filepath.Base(path)
		}
		t.names = append(t.names, filepath.ToSlash(name))
	}
	return t, err
}

// Inspects implements [Inspector]: folders are not loaded to be checked.
func (f *Files) Inspects() bool { return f.is(FolderFiles) }

// Inspect implements [Inspector]: see [pictures.inspect].
func (f *Files) Inspect(ctx context.Context) (notes []string, err error) {
	var classes []string
	r := f.reading()
	name, p := f.Kind, r.pictures()
	for i, path := range []string{r.File, r.Test} {
		if path == "" {
			continue
		}
		l, err := p.list(path)
		if err != nil {
			return notes, FileError(name, path, err)
		}
		notes = append(notes, p.notes(path, l)...)
		if i == 0 {
			classes = l.classes
		} else if len(classes) > 0 {
			if err := l.countBy(classes, path); err != nil {
				return notes, FileError(name, path, err)
			}
		}
		shape, err := p.shape(l.paths[0])
		if err != nil {
			return notes, FileError(name, l.paths[0], err)
		}
		more, c, err := p.inspect(ctx, path, l.paths, shape)
		if notes = append(notes, more...); err != nil {
			return notes, FileError(name, path, err)
		}
		notes = append(notes, c.notes(i == 0, f.Channels > 0)...)
	}
	return notes, nil
}

// mostInspected is the maximum number of files that an inspection decodes.
const mostInspected = 2000

// mostInspectedBytes is the maximum size in bytes of the pixels of a folder that an inspection decodes into memory.
const mostInspectedBytes = 1 << 30

// inspect decodes the images of a folder as a training does, so that they are kept, and returns a warning if they are equal. Of too few or
// too many images it compares the first ones, and then decodes all, or of a large folder some that are spread evenly, and says so.
func (p pictures) inspect(ctx context.Context, folder string, paths []string, shape []int) (notes []string, c changes, err error) {
	const first = 16
	n := len(paths)
	_, size, err := arrayBytes(append([]int{n}, shape...), 4)
	kept := err == nil && size <= mostInspectedBytes && n >= leastCached && n <= mostInspected && !withoutCache.Load()
	var values array
	if kept {
		values, c, _, err = p.cached(ctx, folder, paths, nil)
	} else {
		values, _, err = p.read(ctx, folder, paths[:min(first, n)], nil)
	}
	if err == nil {
		var images *Images
		if images, err = values.images(false); err == nil {
			if note := images.allEqual(); note != "" && kept {
				notes = append(notes, folder+": "+note)
			} else if note != "" {
				notes = append(notes, folder+": "+strings.Replace(note, "all", "the first", 1))
			}
		}
	}
	if kept {
		return notes, c, err
	}
	if err := p.sameSizes(ctx, paths, shape); err != nil {
		return notes, c, err
	}
	c = p.changes(folder, paths)
	if n > mostInspected {
		if _, err := imageHeaders(ctx, paths); err != nil {
			return notes, c, err
		}
		some := lists.Of(mostInspected, func(i int) string { return paths[i*(n-1)/(mostInspected-1)] })
		notes = append(notes, fmt.Sprintf("%s: %d of %d images were decoded; of the others only the headers were read", folder, len(some), n))
		paths = some
	}
	return notes, c, eachImage(ctx, paths, func(i int) error {
		return p.open(paths[i], shape, func(image.Image) error { return nil })
	})
}

// pictures contains the settings for reading image files.
type pictures struct {
	channels int
	size     Size   // size of the images; zero: unchanged, and all files must have the same size
	resize   string // method of resizing to that size
	black    bool   // transparent pixels are blended over black, otherwise over white
	only     string // the only accepted extension, "" for all formats
	flat     bool   // sub-folders of class folders are ignored
}

// shape returns the shape of the image in a file after reading, from the header of the file.
func (p pictures) shape(path string) ([]int, error) {
	size := p.size
	if size == (Size{}) {
		f, err := imageHeader(path)
		if err != nil {
			return nil, err
		}
		size = f.size
	}
	if p.channels == 1 {
		return []int{size.Height, size.Width}, nil
	}
	return []int{size.Height, size.Width, p.channels}, nil
}

// read decodes files into images of one shape and hashes them. Images of which some have 16 bits per channel become floats.
func (p pictures) read(ctx context.Context, folder string, paths []string, want []int) (a array, files []File, err error) {
	shape, err := p.shape(paths[0])
	if err != nil {
		return a, nil, FileError("", paths[0], err)
	}
	if err := fits(paths[0], len(paths), shape, want); err != nil {
		return a, nil, err
	}
	if err := p.sameSizes(ctx, paths, shape); err != nil {
		return a, nil, err
	}
	a = array{dims: append([]int{len(paths)}, shape...), scaled: true}
	n, err := product(a.dims)
	if err != nil {
		return a, nil, FileError("", paths[0], err)
	}
	size, colour, digest := n/len(paths), len(shape) == 3, sha256.New()
	first, err := imageHeader(paths[0])
	if err == nil && !first.deep {
		a.bytes = make([]byte, n)
		err = eachImage(ctx, paths, func(i int) error {
			return p.open(paths[i], shape, func(m image.Image) error {
				if isDeep(m.ColorModel()) {
					return errDeep
				}
				copyPixels(a.bytes[i*size:(i+1)*size], m, colour)
				return nil
			})
		})
		digest.Write(a.bytes)
	}
	if err == nil && first.deep || errors.Is(err, errDeep) {
		a.bytes, a.floats = nil, make([]float32, n)
		err = eachImage(ctx, paths, func(i int) error {
			return p.open(paths[i], shape, func(m image.Image) error {
				copyDeep(a.floats[i*size:(i+1)*size], m, colour)
				return nil
			})
		})
		digest.Reset()
		for image := range slices.Chunk(a.floats, size) {
			_ = binary.Write(digest, binary.LittleEndian, image) // a digest fails never
		}
	}
	return a, []File{{Path: folder, SHA256: hex.EncodeToString(digest.Sum(nil))}}, err
}

// sameSizes returns an error for files with another size than shape, unless they are resized. It checks all headers before
// memory is allocated, so that a wrong size in one file does not determine the memory for all images.
func (p pictures) sameSizes(ctx context.Context, paths []string, shape []int) error {
	if p.size != (Size{}) {
		return nil
	}
	first := Size{shape[0], shape[1]}
	return eachImage(ctx, paths, func(i int) error {
		f, err := imageHeader(paths[i])
		if err == nil && f.size != first {
			err = &Error{Path: paths[i], Problem: fmt.Sprintf("the image is %dx%d (height x width), the first one is %dx%d",
				f.size.Height, f.size.Width, first.Height, first.Width), Hint: fmt.Sprintf(`all images of a set must have one size: write size = [%d, %d] (height, width) in the dataset table to bring them to it, with resize = "crop", "pad" or "stretch"`, first.Height, first.Width)}
		}
		return err
	})
}

// eachImage calls do for every file, on several goroutines. If several calls fail, it returns the error of the first file by
// name, which names the other files that cannot be read.
func eachImage(ctx context.Context, paths []string, do func(i int) error) error {
	problems := make([]error, len(paths))
	team.For(len(paths), 16, func(from, to int) {
		for i := from; i < to; i++ {
			if problems[i] = ctx.Err(); problems[i] == nil {
				problems[i] = do(i)
			}
		}
	})
	var first error
	var unread *Error
	var others []string
	for i, err := range problems {
		if err != nil {
			err = FileError("", paths[i], err)
		}
		var bad *Error
		switch broken := errors.As(err, &bad) && bad.Problem == unreadable && !errors.Is(err, errDeep); {
		case err != nil && first == nil:
			if first = err; broken && len(paths) > 1 {
				unread = bad
			}
		case broken:
			others = append(others, paths[i])
		}
	}
	if unread != nil {
		unread.Hint = "delete it, or move it out of the folder"
		if others != nil {
			const most = 12
			unread.Hint = "delete it and others that cannot be read, or move them out of the folder: " + strings.Join(lists.Map(others[:min(most, len(others))], inLine), ", ")
			if more := len(others) - most; more > 0 {
				unread.Hint += fmt.Sprintf(" and %d more", more)
			}
		}
	}
	return first
}

// open passes one file, an image of the given shape without transparency, to do.
func (p pictures) open(path string, shape []int, do func(image.Image) error) error {
	return openImage(path, func(f *imageFile) error { return p.decode(f, shape, do) })
}

// decode is like open, for a file with its header.
func (p pictures) decode(f *imageFile, shape []int, do func(image.Image) error) error {
	to := image.Pt(shape[1], shape[0])
	return f.use(func(m image.Image) error {
		m = flat(m, p.black)
		if p.size != (Size{}) && turned(m.Bounds().Size(), f.orientation) != to {
			m = resized(m, f.orientation, to, p.resize, len(shape) == 3)
		} else {
			m = upright(m, f.orientation)
		}
		if got := m.Bounds().Size(); got != to { // its header said another size
			return fmt.Errorf("the image is %dx%d (height x width), its header says %dx%d", got.Y, got.X, to.Y, to.X)
		}
		return do(m)
	})
}

// Size is `size = n`, n rows and n columns, or `size = [height, width]`, in pixels. The zero value is no size.
type Size struct{ Height, Width int }

// mostSide is the largest height and width in a size.
const mostSide = 1 << 14

func (s *Size) FromTOML(value any) error {
	sides := []any{value, value}
	if list, ok := value.([]any); ok {
		sides = list
	}
	wrong := fmt.Errorf("got %s, want a number of pixels, or [height, width], from 1 to %d; 0 keeps the size of the files", valueText(value), mostSide)
	if value == int64(0) {
		*s = Size{}
		return nil
	}
	if len(sides) != 2 {
		return wrong
	}
	for i, into := range []*int{&s.Height, &s.Width} {
		n, ok := sides[i].(int64)
		if !ok || n < 1 || n > mostSide {
			return wrong
		}
		*into = int(n)
	}
	return nil
}

// valueText writes a value of TOML for a message, texts in quotes.
func valueText(value any) string {
	switch x := value.(type) {
	case string:
		return fmt.Sprintf("%q", x)
	case []any:
		texts := lists.Map(x, valueText)
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return fmt.Sprint(value)
}

func (s Size) TOML() any {
	if s == (Size{}) {
		return 0
	}
	return []int{s.Height, s.Width}
}

// resizes lists the values of [Files.Resize].
var resizes = []string{"crop", "pad", "stretch"}

type listing struct {
	paths   []string
	labels  []int    // one per file; nil without classes
	classes []string // names of the first-level folders with images
	skipped []string // relative paths of files that are not images, and of ignored folders
}

// deepest is the maximum depth of nested folders.
const deepest = 64

// list lists the image files of a folder in the order of their names. If the folder contains only sub-folders, each of them
// is a class that includes all images below it; labels are the indices of the class names in alphabetical order. Hidden files
// are ignored; other files that are not images are listed as skipped. Images next to folders of images are an error, but the data set of one
// format (png) ignores the folders.
func (p pictures) list(folder string) (listing, error) {
	var l listing
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		wrong := &Error{Path: folder, Problem: "is a file, want a folder of images"}
		if other := reads(folder); other != "" {
			wrong.Hint = fmt.Sprintf("write name = %q in the dataset table", other)
		}
		return l, wrong
	}
	files, folders, err := p.entries(&l, folder, "")
	if err != nil {
		return l, err
	}
	skipped := len(l.skipped)
	for _, name := range folders {
		if len(files) > 0 && p.flat {
			l.skipped = append(l.skipped, name+"/")
			continue
		}
		below, err := p.below(&l, folder, name, 1)
		switch {
		case err != nil:
			return l, err
		case len(below) > 0 && len(files) > 0: // one forgotten file would otherwise hide all classes
			return l, &Error{Path: folder, Problem: fmt.Sprintf("has images (%s) next to folders of images (%s)", filepath.Base(files[0]), name),
				Hint: "move every image into the folder of its class, or all of them into one folder"}
		case len(files) > 0:
			l.skipped = l.skipped[:skipped]
		case len(below) > 0 || p.flat:
			l.labels = append(l.labels, slices.Repeat([]int{len(l.classes)}, len(below))...)
			l.classes = append(l.classes, name)
			l.paths = append(l.paths, below...)
		}
	}
	if l.paths = append(l.paths, files...); len(l.paths) == 0 {
		return l, p.none(folder)
	}
	return l, nil
}

func (p pictures) none(folder string) error {
	if p.only == "" {
		return &Error{Path: folder, Problem: "there are no PNG, JPEG, GIF, BMP, TIFF or WebP images in this folder or its sub-folders"}
	}
	e := &Error{Path: folder, Problem: "there are no " + p.only + " files in this folder or its sub-folders"}
	if other, err := (pictures{}).list(folder); err == nil {
		e.Hint = fmt.Sprintf(`write name = "images" in the dataset table to read the %d images of other formats, such as %s`, len(other.paths), filepath.Base(other.paths[0]))
	}
	return e
}

// below returns the images of a folder and, unless flat is set, of all folders below it.
func (p pictures) below(l *listing, folder, name string, depth int) ([]string, error) {
	files, folders, err := p.entries(l, filepath.Join(folder, name), name)
	if err != nil {
		return nil, err
	}
	if depth == deepest && len(folders) > 0 {
		return nil, &Error{Path: filepath.Join(folder, name), Problem: fmt.Sprintf("folders are nested more than %d deep; is one of them a link to a folder that contains it?", deepest)}
	}
	for _, sub := range folders {
		if p.flat {
			l.skipped = append(l.skipped, filepath.ToSlash(filepath.Join(name, sub))+"/")
			continue
		}
		more, err := p.below(l, folder, filepath.Join(name, sub), depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// entries returns the image files and the sub-folders of a folder, both sorted by name, without hidden ones.
func (p pictures) entries(l *listing, folder, name string) (files, folders []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, FileError("", folder, err)
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
			return nil, nil, FileError("", path, err)
		case info.IsDir():
			folders = append(folders, e.Name())
		case p.reads(path):
			files = append(files, path)
		default:
			l.skipped = append(l.skipped, filepath.ToSlash(filepath.Join(name, e.Name())))
		}
	}
	return files, folders, nil
}

func (p pictures) reads(path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	if p.only != "" {
		return extension == p.only
	}
	return slices.ContainsFunc(imageFormats, func(f imageFormat) bool { return slices.Contains(f.extensions, extension) })
}

// countBy converts the labels of the images in a folder to indices into the classes of the training images. It returns an
// error for an unknown class. Without classes the labels do not change.
func (l *listing) countBy(classes []string, folder string) error {
	if len(l.classes) == 0 {
		return nil
	}
	if slices.ContainsFunc(l.classes, func(name string) bool { return !slices.Contains(classes, name) }) {
		return &Error{Path: folder, Problem: fmt.Sprintf("the class folders differ from those of the training images (got %q, want %q)",
			strings.Join(l.classes, " "), strings.Join(classes, " ")), Hint: "rename the other folders, or leave them out"}
	}
	for i, label := range l.labels {
		l.labels[i] = slices.Index(classes, l.classes[label])
	}
	l.classes = classes
	return nil
}

// notes lists warnings: skipped files, and indications of a wrong folder.
func (p pictures) notes(folder string, l listing) (notes []string) {
	const most = 5
	if n := len(l.skipped); n > 0 {
		shown := inLine(strings.Join(l.skipped[:min(n, most)], ", "))
		if n > most {
			shown += fmt.Sprintf(" and %d others", n-most)
		}
		what, images := "no PNG, JPEG, GIF, BMP, TIFF or WebP images", ""
		if p.only != "" {
			what = "not read: only " + p.only + " files of class folders are"
			if slices.ContainsFunc(l.skipped, (pictures{}).reads) {
				images = `; name = "images" reads images of other formats`
			}
		}
		notes = append(notes, fmt.Sprintf("%s: skipped %d of %d files, %s: %s%s", folder, n, n+len(l.paths), what, shown, images))
	}
	var several []string
	for _, path := range l.paths {
		if ext := strings.ToLower(filepath.Ext(path)); ext == ".gif" || strings.HasPrefix(ext, ".tif") {
			if n := pages(path); n > 1 {
				several = append(several, fmt.Sprintf("%s has %d", inLine(filepath.Base(path)), n))
			}
		}
	}
	if n := len(several); n > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s of %d with more than one image, of which the first is read: %s; save each image as a file to read all", folder, numeral.Of(n, "file"), len(l.paths), strings.Join(several[:min(n, most)], ", ")))
	}
	splits := []string{"train", "training", "test", "testing", "val", "valid", "validation"}
	if len(l.classes) > 1 && !slices.ContainsFunc(l.classes, func(c string) bool { return !slices.Contains(splits, strings.ToLower(c)) }) {
		notes = append(notes, fmt.Sprintf("%s: the classes are %s: to use these folders as splits, name each with images and test_images", folder, strings.Join(l.classes, ", ")))
	}
	return notes
}

// mostForColour is the maximum number of pictures that are searched for colours, in as many rows and columns at most as searchedForColour.
const (
	mostForColour     = 16
	searchedForColour = 64
)

// changes are warnings about what readable pictures lose, or gain, when they are read, "" for none: one about different depths, one about colours that become
// grey, one about pictures that are enlarged.
type changes [3]string

// notes returns the warnings; those after the first only of the training's pictures, because they are about keys for all, and that about colours unless
// grey was asked for.
func (c changes) notes(training, grey bool) (notes []string) {
	for i, note := range c {
		if note != "" && (i == 0 || training && !(i == 1 && grey)) {
			notes = append(notes, note)
		}
	}
	return notes
}

// changes finds them in the headers of all pictures of a folder, and in a few decoded ones. What cannot be read is left to its reader.
func (p pictures) changes(folder string, paths []string) (c changes) {
	files, _ := imageHeaders(context.Background(), paths) // their errors are those of their decoders
	var maybe []string                                    // pictures with colours
	deep, enlarged := 0, 0
	for i, f := range files {
		if f == nil {
			continue
		}
		if f.deep {
			deep++
		}
		if f.coloured {
			maybe = append(maybe, paths[i])
		}
		if lower, narrower := f.size.Height < p.size.Height, f.size.Width < p.size.Width; lower && narrower || p.resize != "pad" && (lower || narrower) {
			enlarged++
		}
	}
	c[0] = depthsNote(folder, deep, len(paths))
	if p.channels == 1 && coloured(maybe) {
		c[1] = inLine(folder) + ": coloured pictures are read in grey: write channels = 3, which keeps their colours, or channels = 1"
	}
	if enlarged > 0 {
		c[2] = fmt.Sprintf("%s: %d of %d pictures are smaller than size and are enlarged", inLine(folder), enlarged, len(paths))
	}
	return c
}

// depthsNote returns a warning about a folder of which some of n pictures have 16 bits per channel and the others 8; "" if all have one depth.
func depthsNote(folder string, deep, n int) string {
	if deep == 0 || deep == n {
		return ""
	}
	return fmt.Sprintf("%s: %d of %d pictures have 16 bits per channel, the others 8: each is divided by its own white, 65535 or 255; if they show the same brightness by the same number, save all with 16 bits", inLine(folder), deep, n)
}

// coloured reports whether one of a few of the pictures has a pixel that is not grey.
func coloured(paths []string) (is bool) {
	for i := 0; i < len(paths) && !is; i += max(1, len(paths)/mostForColour) {
		_ = useImage(paths[i], func(m image.Image) error { // its error is that of its decoder
			b := m.Bounds()
			for y := b.Min.Y; y < b.Max.Y; y += max(1, b.Dy()/searchedForColour) {
				for x := b.Min.X; x < b.Max.X; x += max(1, b.Dx()/searchedForColour) {
					red, green, blue, _ := m.At(x, y).RGBA()
					is = is || red != green || green != blue
				}
			}
			return nil
		})
	}
	return is
}

// Deep reports whether a source has 16-bit pixels: those of the first image file, or of arrays with the scale `uint16`. It is false if the files
// are missing.
func Deep(s Source) bool {
	f, ok := s.(*Files)
	if !ok || !f.is(FolderFiles) {
		return ok && f.Scale.divisor() == 65535
	}
	r := f.reading()
	l, err := r.pictures().list(r.File)
	if err != nil || len(l.paths) == 0 {
		return false
	}
	first, err := imageHeader(l.paths[0])
	return err == nil && first.deep
}

func (f *Files) describeFolders() (string, error) {
	r := f.reading()
	name, p := f.Kind, r.pictures()
	l, err := p.list(r.File)
	if err != nil {
		return "", FileError(name, r.File, err)
	}
	text := numeral.Of(len(l.paths), "training image")
	if shape, err := p.shape(l.paths[0]); err == nil {
		text += " of " + numeral.Shape(shape)
		if first, err := imageHeader(l.paths[0]); err == nil && first.deep {
			text += " with 16 bits per channel"
		}
	}
	if r.Test != "" {
		test, err := p.list(r.Test)
		if err != nil {
			return "", FileError(name, r.Test, err)
		}
		text += ", " + numeral.Of(len(test.paths), "test image")
	}
	if len(l.classes) > 0 {
		text += ", " + classText(l.classes, l.labels)
	}
	return text, nil
}
