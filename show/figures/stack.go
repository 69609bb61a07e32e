package figures

import (
	"image"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// block is a drawing under a caption; blocks are stacked to a figure.
type block struct {
	caption       string
	width, height int // pixels, without the caption
	draw          func(draw.Canvas)
}

// captionHeight is how many pixels a caption takes with the space below it.
func (b block) captionHeight() int {
	if b.caption == "" {
		return 0
	}
	return pixels(textStyle(labelSize).Height(b.caption)) + 6
}

// picture is a block that shows pixels as they are.
func picture(caption string, pixels image.Image) block {
	size := pixels.Bounds().Size()
	return block{caption: caption, width: size.X, height: size.Y, draw: func(c draw.Canvas) {
		c.DrawImage(c.Rectangle, pixels)
	}}
}

// stack returns a figure of blocks below each other, wide enough for the widest block and caption.
func stack(blocks []block) *Figure {
	f := &Figure{height: 2*margin - gap}
	style := textStyle(labelSize)
	for _, b := range blocks {
		f.width = max(f.width, 2*margin+b.width, 2*margin+pixels(style.Width(b.caption)))
		f.height += b.captionHeight() + b.height + gap
	}
	f.draw = func(c draw.Canvas) {
		top := margin
		for _, b := range blocks {
			top += b.captionHeight()
			if b.caption != "" {
				c.FillText(style, vg.Point{X: dots(margin), Y: dots(f.height-top+6) - style.FontExtents().Descent/2}, b.caption)
			}
			b.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: dots(margin), Y: dots(f.height - top - b.height)},
				Max: vg.Point{X: dots(margin + b.width), Y: dots(f.height - top)},
			}})
			top += b.height + gap
		}
	}
	return f
}
