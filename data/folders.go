package data

import (
	"context"
	"strings"

	"tessera/part"
)

func init() {
	Registry.Register("images", "your own images in folders: PNG, JPEG, GIF, BMP; the folders of the first level are classes",
		func() Source { return &ImageFolders{Folders{Channels: 1, Resize: "crop"}} })
	Registry.Register("png", "your own images in a folder of PNG files, with class sub-folders as labels",
		func() Source { return &PNG{Folders{Channels: 1, Resize: "crop"}} })
}

// Folders are the keys that the data sets images and png share: folders of image files, in the order of their names. In a folder
// that has sub-folders only, each of them is a class; labels count the classes by name. Folders are relative to the current one.
// Colours become grey by 0.299 R + 0.587 G + 0.114 B, or stay with channels = 3; transparency is seen over black. JPEG images are
// turned by their EXIF orientation. Of an animated GIF the first image is used.
type Folders struct {
	Images     string `toml:"images" required:"true" doc:"folder of the training images"`
	TestImages string `toml:"test_images" doc:"folder of the test images; without it the set has no test split"`
	Channels   int    `toml:"channels" doc:"1 reads the images in grey, 3 in red, green and blue"`
	Size       Size   `toml:"size" doc:"size to which all images are brought: a number of pixels, or [height, width]; 0 takes files of one size as they are"`
	Resize     string `toml:"resize" oneof:"crop pad stretch" doc:"how images are brought to size: the middle is cut out (crop), black is added (pad), or proportions change (stretch)"`
	Scale      Scale  `toml:"scale" doc:"how values, which are bytes / 255, are scaled: minmax (to [0,1]), standardise (both by statistics of the fitted images, kept with the model), or a factor"`
}

// ImageFolders is the user's data set in folders of image files. Images of a class may be in folders of any depth.
type ImageFolders struct{ Folders }

// PNG is the user's data set in folders of PNG files. Other files, and folders in class folders, are left out.
type PNG struct{ Folders }

// HasTest implements [Tester].
func (f *Folders) HasTest() bool { return f.TestImages != "" }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*Folders) Origin() Origin { return OwnFiles }

// Check reports an invalid number of channels.
func (f *Folders) Check() error {
	if f.Channels != 1 && f.Channels != 3 {
		return part.KeyErrorf("channels", "got %d, want 1 or 3", f.Channels)
	}
	if f.Resize != "" && !isResize(f.Resize) {
		return part.KeyErrorf("resize", "got %q, want %s", f.Resize, strings.Join(resizes, ", "))
	}
	return nil
}

func (f *Folders) all() pictures {
	how := f.Resize
	if how == "" {
		how = resizes[0]
	}
	return pictures{channels: f.Channels, size: f.Size, resize: how}
}

func (p *PNG) pictures() pictures {
	only := p.all()
	only.only, only.flat = ".png", true
	return only
}

func (i *ImageFolders) pictures() pictures { return i.all() }

// reading implements [reader]: array files are read as any other.
func (*Folders) reading() (reading, Layout) { return reading{}, Layout{} }

// Shape implements [Source] by the header of the first file.
func (p *PNG) Shape(Dirs) ([]int, bool) { return p.shape(p.pictures()) }

// Shape implements [Source] by the header of the first file.
func (i *ImageFolders) Shape(Dirs) ([]int, bool) { return i.shape(i.pictures()) }

// Classes implements [Classed] by the sub-folders of the training images.
func (p *PNG) Classes(Dirs) (int, bool) { return p.classes(p.pictures()) }

// Classes implements [Classed] by the sub-folders of the training images.
func (i *ImageFolders) Classes(Dirs) (int, bool) { return i.classes(i.pictures()) }

// Load implements [Source].
func (p *PNG) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return p.load(ctx, "png", p.pictures(), need)
}

// Load implements [Source].
func (i *ImageFolders) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return i.load(ctx, "images", i.pictures(), need)
}

// Inspect implements [Inspector] by the headers of all files.
func (p *PNG) Inspect(ctx context.Context) ([]string, error) {
	return p.inspect(ctx, "png", p.pictures())
}

// Inspect implements [Inspector] by the headers of all files.
func (i *ImageFolders) Inspect(ctx context.Context) ([]string, error) {
	return i.inspect(ctx, "images", i.pictures())
}

func (f *Folders) inspect(ctx context.Context, name string, p pictures) (notes []string, err error) {
	var classes []string
	for i, path := range []string{f.Images, f.TestImages} {
		if path == "" {
			continue
		}
		l, err := p.list(path)
		if err != nil {
			return notes, badFile(name, path, err)
		}
		notes = append(notes, p.notes(path, l)...)
		if i == 0 {
			classes = l.classes
		} else if len(classes) > 0 {
			if err := l.countBy(classes, path); err != nil {
				return notes, badFile(name, path, err)
			}
		}
		shape, err := p.shape(l.paths[0])
		if err != nil {
			return notes, badFile(name, l.paths[0], err)
		}
		if err := p.sameSizes(ctx, l.paths, shape); err != nil {
			return notes, badFile(name, path, err)
		}
	}
	return notes, nil
}

func (f *Folders) shape(p pictures) ([]int, bool) {
	l, err := p.list(f.Images)
	if err != nil {
		return nil, false
	}
	shape, err := p.shape(l.paths[0])
	return shape, err == nil
}

func (f *Folders) classes(p pictures) (int, bool) {
	n := len(f.trainingClasses(p))
	return n, n > 0
}

func (f *Folders) load(ctx context.Context, name string, p pictures, need Need) (*Set, error) {
	set := &Set{Name: name, HasTest: f.HasTest(), Scale: f.Scale}
	if need.Train || !set.HasTest {
		l, err := p.list(f.Images)
		if err != nil {
			return nil, badFile(set.Name, f.Images, err)
		}
		if set.Train, err = folder(ctx, set, p, f.Images, l); err != nil {
			return nil, err
		}
		set.Shape, set.Classes = set.Train.Shape, l.classes
	}
	if !need.Test || !set.HasTest {
		return set, nil
	}
	l, err := p.list(f.TestImages)
	if err != nil {
		return nil, badFile(set.Name, f.TestImages, err)
	}
	classes := set.Classes
	if set.Train == nil {
		classes = f.trainingClasses(p)
	}
	if len(classes) > 0 {
		if err := l.countBy(classes, f.TestImages); err != nil {
			return nil, badFile(set.Name, f.TestImages, err)
		}
	}
	if set.Test, err = folder(ctx, set, p, f.TestImages, l); err != nil {
		return nil, err
	}
	if len(set.Classes) == 0 {
		set.Classes = l.classes
	}
	return set, sameShape(set, f.TestImages)
}

// trainingClasses lists the classes of the training images, which are not read; none if they have none, or are not there.
func (f *Folders) trainingClasses(p pictures) []string {
	l, err := p.list(f.Images)
	if err != nil {
		return nil
	}
	return l.classes
}

// folder reads the images of one folder.
func folder(ctx context.Context, set *Set, p pictures, path string, l listing) (*Images, error) {
	set.Notes = append(set.Notes, p.notes(path, l)...)
	images, sum, err := p.read(ctx, l.paths, l.labels, nil)
	if err != nil {
		return nil, badFile(set.Name, path, err)
	}
	set.Files = append(set.Files, File{Path: path, SHA256: sum})
	return images, nil
}
