package figures

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// axis is the scale of one direction of a panel.
type axis struct {
	label    string
	log      bool
	whole    bool      // what is counted: no ticks between whole numbers
	inverted bool      // from top to bottom; only of linear axes
	min, max float64   // the least range that is shown; both 0 leave it to the data
	marks    []float64 // the only values with ticks; nil marks round values
	names    []string  // of the values 0, 1, 2, ...
}

// shows reports whether the axis can show a value.
func (a axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

// set gives an axis of a plot its range and ticks. The range of the data is in it already, or is empty.
func (a axis) set(to *plot.Axis) {
	if a.min != a.max {
		to.Min, to.Max = min(to.Min, a.min), max(to.Max, a.max)
	}
	if to.Min > to.Max { // no data
		to.Min, to.Max = 0.1, 1
	}
	if a.marks != nil {
		a.mark(to)
		return
	}
	if a.names != nil {
		to.Tick.Marker = namedTicks(a.names)
		to.Tick.Label.Rotation = math.Pi / 2
		to.Tick.Label.XAlign, to.Tick.Label.YAlign = draw.XRight, draw.YCenter
		return
	}
	if !a.log {
		if to.Min == to.Max {
			half := max(math.Abs(to.Min)/10, 1e-3)
			to.Min, to.Max = to.Min-half, to.Max+half
		}
		to.Tick.Marker = linearTicks{whole: a.whole}
		if a.inverted {
			to.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
		}
		return
	}
	to.Min, to.Max = floorLog(to.Min), ceilLog(to.Max)
	if to.Min == to.Max {
		to.Min, to.Max = to.Min/2, to.Max*2
	}
	to.Scale = plot.LogScale{}
	to.Tick.Marker = logTicks{}
}

// mark gives an axis ticks at some values only.
func (a axis) mark(to *plot.Axis) {
	var ticks plot.ConstantTicks
	for _, v := range a.marks {
		ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(v)})
	}
	to.Tick.Marker = ticks
	if a.log {
		to.Scale = plot.LogScale{}
	}
}

// floorLog is the nearest d*10^n that is not above v, for a digit d: where a logarithmic axis may end.
func floorLog(v float64) float64 {
	n := math.Floor(math.Log10(v))
	return decimal(math.Floor(v/math.Pow(10, n)+1e-9), int(n))
}

func ceilLog(v float64) float64 {
	n := math.Floor(math.Log10(v))
	return decimal(math.Ceil(v/math.Pow(10, n)-1e-9), int(n))
}

// decimal is digit * 10^n, as exactly as it can be written.
func decimal(digit float64, n int) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(digit, 'f', -1, 64)+"e"+strconv.Itoa(n), 64) // digits and an exponent
	return v
}

// namedTicks labels 0, 1, 2, ... with names, evenly spread ones where there are many.
type namedTicks []string

const (
	mostNames = 40
	longest   = 24 // letters of a name
)

// height is how many pixels the names take below an axis.
func (n namedTicks) height() (most int) {
	for _, t := range n.Ticks(0, float64(len(n))) {
		most = max(most, pixels(textStyle(tickSize).Width(t.Label)))
	}
	return most
}

// Ticks implements [plot.Ticker].
func (n namedTicks) Ticks(least, most float64) (ticks []plot.Tick) {
	every := (len(n) + mostNames - 1) / mostNames
	for i := 0; i < len(n); i += every {
		name := []rune(n[i])
		if len(name) > longest {
			name = append(name[:longest-1], '…')
		}
		if v := float64(i); least <= v && v <= most {
			ticks = append(ticks, plot.Tick{Value: v, Label: string(name) + "  "}) // a distance from the axis
		}
	}
	return ticks
}

// linearTicks marks and labels three to six multiples of 1, 2 or 5 times a power of ten, fewer where only whole numbers have a
// meaning.
type linearTicks struct{ whole bool }

// Ticks implements [plot.Ticker].
func (l linearTicks) Ticks(least, most float64) []plot.Tick {
	rough := (most - least) / 6
	n := int(math.Floor(math.Log10(rough)))
	step := decimal(10, n)
	for _, digit := range []float64{5, 2, 1} {
		if s := decimal(digit, n); s >= rough {
			step = s
		}
	}
	if l.whole {
		step = max(1, step)
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := int(math.Ceil(least/step - 1e-9)); float64(i)*step <= most+1e-9*step; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return ticks
}

// logTicks marks all d * 10^n and labels powers of ten; on short ranges 2 and 5 too, on very short ones
// every d but 6, 7 and 9, whose labels would touch. There are always two labels.
type logTicks struct{}

// Ticks implements [plot.Ticker].
func (logTicks) Ticks(least, most float64) []plot.Tick {
	decades := math.Log10(most / least)
	var ticks []plot.Tick
	labels := 0
	for n := int(math.Floor(math.Log10(least))); n <= int(math.Ceil(math.Log10(most))); n++ {
		for digit := 1; digit <= 9; digit++ {
			v := decimal(float64(digit), n)
			if v < least*(1-1e-9) || v > most*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || decades < 2.3 && (digit == 2 || digit == 5) || decades < 0.8 && digit != 6 && digit != 7 && digit != 9 {
				t.Label = tickLabel(v)
				labels++
			}
			ticks = append(ticks, t)
		}
	}
	if labels < 2 { // from 0.6 to 0.7
		for i := range ticks {
			ticks[i].Label = tickLabel(ticks[i].Value)
		}
	}
	return ticks
}

// tickLabel writes a number without an exponent as long as that is short.
func tickLabel(v float64) string {
	if v != 0 && (math.Abs(v) < 1e-4 || math.Abs(v) >= 1e6) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
