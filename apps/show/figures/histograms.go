package figures

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"tessera/internal/numeral"
)

// CodeRow contains the codes of some images by one model.
type CodeRow struct {
	Caption string
	Units   int       // values of one code
	Codes   []float32 // codes, n x Units
}

// Sizes in a histogram, in pixels: a bin is one pixel wide.
const (
	bins           = 100
	barHeight      = 72
	histogramGap   = 10
	histogramHead  = 8  // half of the height of a label, above the bars
	histogramFoot  = 18 // height of the labels of the axis
	histogramLeft  = 34 // width of the labels of the counts, left of the first histogram
	histogramWidth = bins + histogramGap
)

// Histograms draws, for each row, one histogram of each code's values in 100 bins with a dashed red line at the largest value,
// and a legend. All codes of a row have the same range: [0,1] if they lie in it and reach at least 0.2, otherwise from their
// smallest value (or 0, if it is smaller) to their largest. Counts are clipped at a quarter of the units, as in the study, so
// that the many small values do not hide the few large ones.
func Histograms(rows ...CodeRow) (*Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("figures: no codes to draw")
	}
	blocks := []block{histogramNames()}
	for _, row := range rows {
		if row.Units < 1 || len(row.Codes) == 0 || len(row.Codes)%row.Units != 0 {
			return nil, fmt.Errorf("figures: got %d values, want whole codes of %d units", len(row.Codes), row.Units)
		}
		h, err := newHistograms(row)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block{caption: row.Caption, width: histogramLeft + len(row.Codes)/row.Units*histogramWidth,
			height: histogramHead + barHeight + histogramFoot, draw: h.draw})
	}
	return stack(blocks), nil
}

// largestDashes is the dash pattern of the line at the largest value.
var largestDashes = []vg.Length{2, 2}

// histogramNames returns the legend above the rows.
func histogramNames() block {
	names := legend{{name: "number of units with that value", color: palette[0]}, {name: "largest value", color: markLine, dashes: largestDashes}}
	width := 5 * histogramWidth
	return block{width: width, height: names.height(width), draw: names.draw}
}

// leastReach is the maximum of the codes below which [0,1] would show only a line at 0.
const leastReach = 0.2

// histograms is a row of histograms.
type histograms struct {
	CodeRow
	low, high float64 // the range of values
	cut       int     // maximum drawn count
}

func newHistograms(row CodeRow) (*histograms, error) {
	h := &histograms{CodeRow: row, high: math.Inf(-1), cut: max(1, row.Units/4)}
	if !finite(row.Codes) {
		return nil, errors.New("figures: codes with NaN or infinite values cannot be drawn")
	}
	for _, v := range row.Codes {
		h.low, h.high = min(h.low, float64(v)), max(h.high, float64(v))
	}
	if h.low == 0 && h.high <= 1 && h.high >= leastReach || h.high <= h.low {
		h.high = h.low + 1
	}
	return h, nil
}

// bin returns the bin of a value; the last bin includes its right end.
func (h *histograms) bin(v float32) int {
	return min(bins-1, int(float64(bins)*(float64(v)-h.low)/(h.high-h.low)))
}

// counts returns the number of values of a code in each bin, and the bin of the largest value.
func (h *histograms) counts(code []float32) (counts [bins]int, largest int) {
	for _, v := range code {
		b := h.bin(v)
		counts[b]++
		largest = max(largest, b)
	}
	return counts, largest
}

func (h *histograms) draw(c draw.Canvas) {
	foot := c.Min.Y + dots(histogramFoot)
	label := textStyle(smallSize)
	label.XAlign, label.YAlign = draw.XRight, draw.YCenter
	c.FillText(label, vg.Point{X: c.Min.X + dots(histogramLeft-4), Y: foot + dots(barHeight)}, fmt.Sprint(h.cut))
	units := label
	units.XAlign, units.Rotation = draw.XCenter, math.Pi/2
	c.FillText(units, vg.Point{X: c.Min.X + dots(histogramLeft-12), Y: foot + dots(barHeight)/2}, "units")
	c.FillText(label, vg.Point{X: c.Min.X + dots(histogramLeft-4), Y: foot}, "0")
	for i := range len(h.Codes) / h.Units {
		h.one(c, c.Min.X+dots(histogramLeft+i*histogramWidth), foot, h.Codes[i*h.Units:(i+1)*h.Units])
	}
}

// one draws the histogram of one code with its lower left corner at (left, foot).
func (h *histograms) one(c draw.Canvas, left, foot vg.Length, code []float32) {
	right, top := left+dots(bins), foot+dots(barHeight)
	counts, largest := h.counts(code)
	for i, n := range counts {
		if n > 0 {
			x, height := left+dots(i), dots(barHeight)*vg.Length(min(n, h.cut))/vg.Length(h.cut)
			c.FillPolygon(palette[0], corners(x, foot, x+dots(1), foot+height))
		}
	}
	mark := left + dots(largest) + dots(1)/2
	c.StrokeLine2(draw.LineStyle{Color: markLine, Width: dots(1), Dashes: largestDashes}, mark, foot, mark, top)
	c.StrokeLine2(draw.LineStyle{Color: ink, Width: dots(1)}, left, foot, right, foot)
	label := textStyle(smallSize)
	label.YAlign = draw.YTop
	c.FillText(label, vg.Point{X: left, Y: foot - 2}, shortNumber(h.low))
	label.XAlign = draw.XRight
	c.FillText(label, vg.Point{X: right, Y: foot - 2}, shortNumber(h.high))
	label.XAlign = draw.XCenter
	if label.Width(shortNumber(h.low))+label.Width(shortNumber(h.high))+2*label.Width("  value") < right-left {
		c.FillText(label, vg.Point{X: (left + right) / 2, Y: foot - 2}, "value")
	}
}

func shortNumber(v float64) string { return numeral.Digits(v, 3) }

func corners(x0, y0, x1, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}
