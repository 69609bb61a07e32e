package data

import (
	"context"
	"fmt"
	"strings"

	"tessera/internal/numeral"
)

// Describe implements [Describer]: numbers of images, their shape and classes.
func (p *PNG) Describe(context.Context) (string, error) { return p.describe("png", p.pictures()) }

// Describe implements [Describer]: numbers of images, their shape and classes.
func (i *ImageFolders) Describe(context.Context) (string, error) {
	return i.describe("images", i.pictures())
}

func (f *Folders) describe(name string, p pictures) (string, error) {
	l, err := p.list(f.Images)
	if err != nil {
		return "", badFile(name, f.Images, err)
	}
	text := numeral.Of(len(l.paths), "training image")
	if shape, err := p.shape(l.paths[0]); err == nil {
		text += " of " + numeral.Shape(shape)
	}
	if f.TestImages != "" {
		test, err := p.list(f.TestImages)
		if err != nil {
			return "", badFile(name, f.TestImages, err)
		}
		text += ", " + numeral.Of(len(test.paths), "test image")
	}
	if n := len(l.classes); n > 0 {
		text += fmt.Sprintf(", %d classes: %s", n, strings.Join(l.classes[:min(n, 5)], ", "))
		if n > 5 {
			text += ", ..."
		}
	}
	return text, nil
}
