package page

import (
	"image"
	"image/draw"
	"math"

	"tessera/metrics"
	"tessera/show/figures"
)

// Sprite is the atoms of a trial in one picture.
type Sprite struct {
	Picture picture `json:"picture"`
	Columns int     `json:"columns"`
	Height  int     `json:"height"` // of one atom, in pixels
	Width   int     `json:"width"`
	Shown   int     `json:"shown"`
	Total   int     `json:"total"`
}

// spriteBudget bounds the atoms of all trials of a sweep, in bytes of base64.
const spriteBudget = 3_200_000

// levels is how many grey levels a sprite has: fewer give smaller files.
const levels = 15

// spriteOf draws as many atoms as fit the budget, nil if none can be drawn.
func spriteOf(a *metrics.Atoms, budget int) *Sprite {
	n := min(a.Count, mostUnits)
	for {
		s := firstAtoms(a, n)
		if s == nil || len(s.Picture) <= budget || n == 1 {
			return s
		}
		n = max(1, min(n-1, n*budget*9/10/len(s.Picture)))
	}
}

// firstAtoms draws the first n atoms, at least ten in a row.
func firstAtoms(a *metrics.Atoms, n int) *Sprite {
	p := newPainter(a.Shape).forVectors(a.Values)
	columns := min(n, max(10, (n+9)/10))
	height, width := p.shape[0], p.shape[1]
	drawn := image.NewRGBA(image.Rect(0, 0, columns*(width+1)-1, (n+columns-1)/columns*(height+1)-1))
	for j := range n {
		values := p.small(atom(a, j))
		if p.most == 0 {
			values = coarse(values)
		}
		one, err := p.pixels(figures.Signed, values)
		if err != nil {
			return nil
		}
		at := image.Pt(j%columns*(width+1), j/columns*(height+1))
		draw.Draw(drawn, image.Rectangle{at, at.Add(one.Rect.Size())}, one, image.Point{}, draw.Src)
	}
	return &Sprite{Picture: encode(drawn), Columns: columns, Height: height, Width: width, Shown: n, Total: a.Count}
}

// coarse rounds values to a few levels of their largest magnitude.
func coarse(values []float32) []float32 {
	most := float32(0)
	for _, v := range values {
		most = max(most, v, -v)
	}
	rounded := make([]float32, len(values))
	for i, v := range values {
		if most > 0 {
			rounded[i] = float32(math.Round(float64(v/most)*levels)) / levels
		}
	}
	return rounded
}
