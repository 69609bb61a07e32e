package data

import (
	"context"

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
		if deep, _ := isDeepFile(l.paths[0]); deep {
			text += " with 16 bits per channel"
		}
	}
	if f.TestImages != "" {
		test, err := p.list(f.TestImages)
		if err != nil {
			return "", badFile(name, f.TestImages, err)
		}
		text += ", " + numeral.Of(len(test.paths), "test image")
	}
	if len(l.classes) > 0 {
		text += ", " + classText(l.classes, l.labels)
	}
	return text, nil
}
