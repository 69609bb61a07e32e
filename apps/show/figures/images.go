package figures

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"tessera/internal/volume"
	"tessera/metrics"
)

// ImageRow contains images, or vectors, with one caption: originals, reconstructions, atoms, max-approximations.
type ImageRow struct {
	Caption string
	Shape   []int     // shape of one image: (height, width) or (height, width, channels); (values) for a vector
	Images  []float32 // images one after the other, row-major
	Columns int       // images per line; 0 means 10
	Tone    Tone      // tone of images
	Names   []string  // names of vectors, see [Spectra] and [HeatMaps]; nil numbers them
	Values  []string  // names of the values of a vector; nil numbers them
}

// ImageRows draws rows of images below each other, each image magnified by a whole number without smoothing. Three
// channels are drawn as colours; other numbers of channels as the grey of their mean.
func ImageRows(rows ...ImageRow) (*Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("figures: no images to draw")
	}
	blocks := make([]block, len(rows))
	for i, row := range rows {
		columns := row.Columns
		if columns < 1 {
			columns = 10
		}
		r, n, err := newRaster(row.Shape, columns, row.Tone, row.Images, rowWidth, largest)
		if err != nil {
			return nil, err
		}
		blocks[i] = picture(row.Caption, r.image(row.Images, n))
	}
	return stack(blocks), nil
}

// mostInGrid is the maximum number of images of [Grid].
const mostInGrid = 10_000

// Grid draws images in a grid, row by row. A column count of 0 makes the grid about as wide as high. low is drawn black and high
// white in all images; values outside are clipped.
func Grid(shape []int, columns int, low, high float32, images []float32) (*Figure, error) {
	n := len(images) / max(1, volume.Of(shape))
	if n > mostInGrid {
		return nil, fmt.Errorf("figures: a grid has at most %d images (got %d)", mostInGrid, n)
	}
	if columns < 1 {
		columns = gridColumns(n)
	}
	return ImageRows(ImageRow{Shape: shape, Images: Levels(images, low, high), Columns: columns, Tone: Unit})
}

// Levels returns values for the tone [Unit] with 0 for low and 1 for high. It may return the slice itself.
func Levels(values []float32, low, high float32) []float32 {
	if low >= high || low == 0 && high == 1 {
		return values
	}
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = (v - low) / (high - low)
	}
	return values
}

// largestAtom is the maximum width of one atom in pixels.
const largestAtom = 256

// Atoms draws a dictionary as a grid, row by row, each atom scaled separately, see [Signed], below the number of its unit,
// from 0. If cells are too narrow, only some columns are numbered. The decoder's bias, if there is one, is the last cell, in
// a yellow frame. Atoms that are vectors are drawn as a heat map, see [HeatMaps]; names are the names of their values, if
// any.
func Atoms(a *metrics.Atoms, names ...string) (*Figure, error) { return WeighedAtoms(a, nil, names...) }

// WeighedAtoms is like [Atoms], with a bar below the number of each unit: its length is the unit's effect, see
// [metrics.Atoms.Effects], relative to the largest effect of any unit, which fills the width of the cell. Each atom is scaled
// separately, so that without the bar a unit that hardly contributes looks like the others. With nil effects there are no bars;
// heat maps mark the units without effect instead. Units of less than 1 % of the largest effect are dark and crossed out. It returns an error unless there is one effect for each atom, finite and not negative.
func WeighedAtoms(a *metrics.Atoms, effects []float64, names ...string) (*Figure, error) {
	if a == nil || a.Count < 1 || len(a.Values) != a.Count*a.Pixels() || a.Bias != nil && len(a.Bias) != a.Pixels() {
		return nil, errors.New("figures: no atoms to draw")
	}
	if effects != nil && len(effects) != a.Count {
		return nil, fmt.Errorf("figures: got the effects of %d units, want %d, one for each atom", len(effects), a.Count)
	}
	for i, e := range effects {
		if !(e >= 0) || math.IsInf(e, 0) {
			return nil, fmt.Errorf("figures: the effect of unit %d: got %v, want a finite number of at least 0", i, e)
		}
	}
	if isVectors(a.Shape) {
		return vectorAtoms(a, effects, names)
	}
	cells, n := a.Values, a.Count
	if a.Bias != nil {
		cells, n = slices.Concat(a.Values, a.Bias), n+1
	}
	grid, _, err := newRaster(a.Shape, gridColumns(n), Signed, cells, rowWidth, largestAtom)
	if err != nil {
		return nil, err
	}
	numbering := newNumbering(grid, a.Count)
	numbering.biased = a.Bias != nil
	if effects != nil {
		grid.strip, grid.base = grid.strip+bar-rule, bar
	}
	drawn := grid.image(cells, n)
	grid.bars(drawn, effects, n)
	for i := range effects {
		if isDead(effects, i) { // only noise, at full brightness
			grid.strike(drawn, i)
		}
	}
	if a.Bias != nil {
		grid.frame(drawn, a.Count)
	}
	b := picture("", drawn)
	b.draw = func(c draw.Canvas) {
		c.DrawImage(c.Rectangle, drawn)
		numbering.draw(c)
	}
	return stack([]block{b}), nil
}

// leastNumber is the minimum size of the text of a number, in points.
const leastNumber = vg.Length(4)

// numbering contains the layout of the numbers in the cells of a grid.
type numbering struct {
	grid   *raster
	count  int
	biased bool // the cell after the last unit is the bias
	style  text.Style
	every  int // number of columns from one number to the next
}

// newNumbering selects the largest text size at which every number fits into its cell, and reserves a strip for the numbers
// in the grid.
func newNumbering(grid *raster, count int) numbering {
	n := numbering{grid: grid, count: count, every: 1}
	cell, widest := dots(grid.width*grid.scale), fmt.Sprint(count-1)
	size := min(smallSize, smallSize*cell/textStyle(smallSize).Width(widest))
	n.style = textStyle(max(size, leastNumber))
	if size < leastNumber {
		n.every = int(math.Ceil(float64(n.style.Width(widest+" ") / dots(grid.stepX()))))
	}
	grid.base = rule
	grid.strip = pixels(n.style.FontExtents().Ascent) + 2 + grid.base
	return n
}

func (n numbering) draw(c draw.Canvas) {
	at := func(i int, text string) {
		left, top := i%n.grid.columns*n.grid.stepX(), i/n.grid.columns*n.grid.stepY()
		c.FillText(n.style, vg.Point{X: c.Min.X + dots(left+rule), Y: c.Max.Y - dots(top+rule+n.grid.strip-n.grid.base-1)}, text)
	}
	for i := range n.count {
		if i%n.grid.columns%n.every == 0 {
			at(i, fmt.Sprint(i))
		}
	}
	if n.biased && n.style.Width("bias") <= dots(n.grid.width*n.grid.scale) {
		at(n.count, "bias")
	}
}

// gridColumns returns the number of columns for a grid of n cells: a grid between square and about 2.5 times as wide as high,
// with the fewest empty cells.
func gridColumns(n int) int {
	square := int(math.Ceil(math.Sqrt(float64(n))))
	best, empty := square, n
	for c := square; 2*c*c <= 5*n; c++ {
		if e := (c - n%c) % c; e < empty {
			best, empty = c, e
		}
	}
	return best
}

// displayed contains the indices of the test images that the study shows, by data set.
var displayed = map[string][]int{
	"fashion-mnist": {0, 1, 31, 3, 4, 5, 6, 7, 8, 9},
	"mnist":         {0, 1, 2, 3, 4, 18, 21, 7, 8, 61},
}

// DisplayIndices returns the indices of the test images that figures show, out of n: the study's ten, for other data sets ten
// evenly spaced ones, or all if there are fewer.
func DisplayIndices(dataset string, n int) []int {
	if indices := displayed[dataset]; indices != nil && n > slices.Max(indices) {
		return slices.Clone(indices)
	}
	indices := make([]int, min(10, n))
	for i := range indices {
		indices[i] = i * n / len(indices)
	}
	return indices
}

// Tone is the mapping of values to grey levels.
type Tone int

const (
	// Stretched maps the smallest value of each image to black and the largest to white, as the study does.
	Stretched Tone = iota
	// Unit maps 0 to black and 1 to white in every image and clips other values.
	Unit
	// Signed maps 0 to black and the largest magnitude of each image to full brightness. In an image with negative values,
	// these are blue and positive values are red. Negative values below 1e-6 of the largest magnitude count as 0.
	Signed
)

// ToneOf returns the tone for images with values from low to high: [Unit] for those that fill at least a quarter of [0,1], else
// [Stretched], for example for pictures of a camera with 12 bits in files of 16 bits, which [Unit] would draw black.
func ToneOf(low, high float32) Tone {
	if 0 <= low && high <= 1 && high-low >= 0.25 {
		return Unit
	}
	return Stretched
}

// raster draws images side by side, each magnified by a whole number without smoothing.
type raster struct {
	height, width, channels int // shape of one image
	columns, scale          int
	strip                   int // pixels above every image, for its number
	base                    int // the lowest pixels of the strip: a line, else a white atom would melt into the strip
	tone                    Tone
}

// newRaster selects the magnification of images: the largest for which the given number of columns fits into width and one
// image fits into cell, both in pixels.
func newRaster(shape []int, columns int, tone Tone, values []float32, width, cell int) (*raster, int, error) {
	if len(shape) < 2 || len(shape) > 3 {
		return nil, 0, fmt.Errorf("figures: images of shape %v cannot be drawn, want (height, width) or (height, width, channels)", shape)
	}
	r := &raster{height: shape[0], width: shape[1], channels: 1, columns: columns, tone: tone}
	if len(shape) == 3 {
		r.channels = shape[2]
	}
	size := r.height * r.width * r.channels
	if size < 1 || len(values) == 0 || len(values)%size != 0 {
		return nil, 0, fmt.Errorf("figures: got %d values, want whole images of shape %v", len(values), shape)
	}
	if !finite(values) {
		return nil, 0, errors.New("figures: images with NaN or infinite values cannot be drawn")
	}
	n := len(values) / size
	r.columns = min(r.columns, n)
	r.scale = max(1, min((width-rule)/columns-rule, cell)/max(r.width, 1))
	return r, n, nil
}

func finite(values []float32) bool {
	return !slices.ContainsFunc(values, func(v float32) bool { return v-v != 0 })
}

func (r *raster) stepX() int { return r.width*r.scale + rule }
func (r *raster) stepY() int { return r.height*r.scale + rule + r.strip }

func (r *raster) image(values []float32, n int) *image.RGBA {
	rows := (n + r.columns - 1) / r.columns
	picture := image.NewRGBA(image.Rect(0, 0, r.columns*r.stepX()+rule, rows*r.stepY()+rule))
	size := r.height * r.width * r.channels
	for i := range rows * r.columns {
		left, top := i%r.columns*r.stepX(), i/r.columns*r.stepY()
		if i >= n { // the last row may be shorter
			fill(picture, image.Rect(left+rule, top+rule, left+r.stepX()+rule, top+r.stepY()+rule), color.RGBA{255, 255, 255, 255})
			continue
		}
		fill(picture, image.Rect(left, top, left+r.stepX()+rule, top+r.stepY()+rule), separator)
		fill(picture, image.Rect(left+rule, top+rule, left+r.stepX(), top+rule+r.strip-r.base), color.RGBA{255, 255, 255, 255})
		r.one(picture, left+rule, top+rule+r.strip, values[i*size:(i+1)*size])
	}
	return picture
}

// bar is the height of the bars of effects, in pixels.
const bar = 2 * rule

// bars draws the effects of units, relative to the largest, over the lines below their numbers. Of the other cells, up to n, the
// line remains.
func (r *raster) bars(picture *image.RGBA, effects []float64, n int) {
	for i := len(effects); i < n; i++ {
		left, top := i%r.columns*r.stepX()+rule, i/r.columns*r.stepY()+rule+r.strip-r.base
		fill(picture, image.Rect(left, top, left+r.width*r.scale, top+r.base-rule), color.RGBA{255, 255, 255, 255})
	}
	most := 0.0
	for _, e := range effects {
		most = max(most, e)
	}
	for i, e := range effects {
		if most == 0 {
			return
		}
		left, top := i%r.columns*r.stepX()+rule, i/r.columns*r.stepY()+rule+r.strip-r.base
		length := int(math.Round(e / most * float64(r.width*r.scale)))
		fill(picture, image.Rect(left, top, left+length, top+r.base), barColor)
	}
}

// strike darkens an image and crosses it out.
func (r *raster) strike(picture *image.RGBA, i int) {
	left, top := i%r.columns*r.stepX()+rule, i/r.columns*r.stepY()+rule+r.strip
	for y := top; y < top+r.height*r.scale; y++ {
		row := picture.Pix[picture.PixOffset(left, y):picture.PixOffset(left+r.width*r.scale, y)]
		for k := range row {
			if k%4 < 3 {
				row[k] /= 3
			}
		}
		x := left + (top+r.height*r.scale-1-y)*(r.width*r.scale-1)/max(1, r.height*r.scale-1) // from the left below to the right above
		fill(picture, image.Rect(x, y, x+1, y+1).Intersect(image.Rect(left, y, left+r.width*r.scale, y+1)), deadColor)
	}
}

// frame draws the lines around an image.
func (r *raster) frame(picture *image.RGBA, i int) {
	left, top := i%r.columns*r.stepX(), i/r.columns*r.stepY()
	right, bottom := left+r.stepX()+rule, top+r.stepY()+rule
	fill(picture, image.Rect(left, top, right, top+rule), frameColor)
	fill(picture, image.Rect(left, bottom-rule, right, bottom), frameColor)
	fill(picture, image.Rect(left, top, left+rule, bottom), frameColor)
	fill(picture, image.Rect(right-rule, top, right, bottom), frameColor)
}

// rounding is the largest magnitude of a negative value, relative to the largest magnitude of the image, that counts as 0: it comes
// from rounding, as in a mean of non-negative values.
const rounding = 1e-6

// one draws an image with its upper left corner at (left, top).
func (r *raster) one(picture *image.RGBA, left, top int, values []float32) {
	low, high := r.levels(values)
	signed := r.tone == Signed && slices.Min(values) < -rounding*high
	for y := range r.height {
		for x := range r.width {
			at := (y*r.width + x) * r.channels
			c := shade(values[at:at+r.channels], low, high, signed)
			x0, y0 := left+x*r.scale, top+y*r.scale
			fill(picture, image.Rect(x0, y0, x0+r.scale, y0+r.scale), c)
		}
	}
}

// levels returns the values of an image that are drawn black and white.
func (r *raster) levels(values []float32) (black, white float32) {
	if r.tone == Unit {
		return 0, 1
	}
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	if r.tone == Signed {
		least, most = 0, max(-least, most)
	}
	if least == most { // one value everywhere: black, as 0 is
		return least, least + 1
	}
	return least, most
}

// shade returns the colour of one pixel: three unsigned channels unchanged, otherwise the mean of the channels.
func shade(values []float32, black, white float32, signed bool) color.RGBA {
	scaled := func(v float32) float32 { return (v - black) / (white - black) }
	if len(values) == 3 && !signed {
		return color.RGBA{level(scaled(values[0])), level(scaled(values[1])), level(scaled(values[2])), 255}
	}
	mean := float32(0)
	for _, v := range values {
		mean += scaled(v) / float32(len(values))
	}
	switch {
	case !signed:
		return color.RGBA{level(mean), level(mean), level(mean), 255}
	case mean < 0:
		return color.RGBA{level(-mean * 0.3), level(-mean * 0.55), level(-mean), 255}
	}
	return color.RGBA{level(mean), level(mean * 0.45), level(mean * 0.3), 255}
}

// level returns a value in [0,1] as a byte.
func level(v float32) uint8 { return uint8(math.Round(255 * float64(min(max(v, 0), 1)))) }

func fill(picture *image.RGBA, area image.Rectangle, c color.RGBA) {
	area = area.Intersect(picture.Rect)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		row := picture.Pix[picture.PixOffset(area.Min.X, y):picture.PixOffset(area.Max.X, y)]
		for i := 0; i < len(row); i += 4 {
			row[i], row[i+1], row[i+2], row[i+3] = c.R, c.G, c.B, c.A
		}
	}
}

// Pixels draws one image of shape (height, width) or (height, width, channels), one pixel for each position. Non-finite values
// are an error.
func Pixels(shape []int, tone Tone, values []float32) (*image.RGBA, error) {
	r, n, err := newRaster(shape, 1, tone, values, 0, 1)
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, fmt.Errorf("figures: got %d images, want one", n)
	}
	drawn := image.NewRGBA(image.Rect(0, 0, r.width, r.height))
	r.one(drawn, 0, 0, values)
	return drawn, nil
}
