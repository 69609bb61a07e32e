package data

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tessera/part"
)

func init() {
	Registry.Register("png", "your own images in a folder of PNG files of one size, with class sub-folders as labels",
		func() Source { return &PNG{Channels: 1} })
}

// PNG is the user's data set in folders of PNG files of one size, in the order of their names. In a folder that has
// sub-folders only, each of them is a class; labels count the classes by name. Folders are relative to the current
// one. Colours become grey by 0.299 R + 0.587 G + 0.114 B, or stay with channels = 3; transparency is seen over black.
type PNG struct {
	Images     string `toml:"images" required:"true" doc:"folder of the training images"`
	TestImages string `toml:"test_images" doc:"folder of the test images; without it the set has no test split"`
	Channels   int    `toml:"channels" doc:"1 reads the images in grey, 3 in red, green and blue"`
}

// HasTest implements [Tester].
func (p *PNG) HasTest() bool { return p.TestImages != "" }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*PNG) Origin() Origin { return OwnFiles }

// Check reports an invalid number of channels.
func (p *PNG) Check() error {
	if p.Channels != 1 && p.Channels != 3 {
		return part.KeyErrorf("channels", "got %d, want 1 or 3", p.Channels)
	}
	return nil
}

// Shape implements [Source] by the header of the first file.
func (p *PNG) Shape(Dirs) ([]int, bool) {
	paths, _, _, err := pngFiles(p.Images)
	if err != nil {
		return nil, false
	}
	shape, err := pngShape(paths[0], p.Channels)
	return shape, err == nil
}

// Load implements [Source].
func (p *PNG) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	set := &Set{Name: "png", HasTest: p.HasTest()}
	if need.Train || !set.HasTest {
		images, classes, err := p.folder(ctx, set, p.Images)
		if err != nil {
			return nil, err
		}
		set.Train, set.Shape, set.Classes = images, images.Shape, classes
	}
	if !need.Test || !set.HasTest {
		return set, nil
	}
	images, classes, err := p.folder(ctx, set, p.TestImages)
	if err != nil {
		return nil, err
	}
	if set.Train != nil && !slices.Equal(classes, set.Classes) {
		return nil, &Error{Dataset: set.Name, Path: p.TestImages, Problem: fmt.Sprintf("the class folders differ from those of the training images (got %q, want %q)",
			strings.Join(classes, " "), strings.Join(set.Classes, " "))}
	}
	set.Test, set.Classes = images, classes
	return set, sameShape(set, p.TestImages)
}

// folder reads one folder.
func (p *PNG) folder(ctx context.Context, set *Set, folder string) (*Images, []string, error) {
	paths, labels, classes, err := pngFiles(folder)
	if err != nil {
		return nil, nil, badFile(set.Name, folder, err)
	}
	images, sum, err := readPNGs(ctx, paths, labels, p.Channels, nil)
	if err != nil {
		return nil, nil, badFile(set.Name, folder, err)
	}
	set.Files = append(set.Files, File{Path: folder, SHA256: sum})
	return images, classes, nil
}
