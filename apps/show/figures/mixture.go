package figures

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"tessera/internal/vectors"

	"tessera/internal/train"
	"tessera/internal/volume"
	"tessera/metrics"
)

// Mixed is a mixture with samples and its training.
type Mixed struct {
	Samples    []float32 // n x d
	Codes      []float32 // n x components: the probabilities of the components
	Names      []string  // names of the d values; nil for none
	Shape      []int     // of a sample
	Components []metrics.Component
	Epochs     []train.Epoch
	Split      string // of the samples, "train"
}

// mostPoints is the maximum number of samples that are drawn, evenly spread.
const mostPoints = 1500

// Mixture draws four panels:
//
//   - samples in the colours of their most probable components, with an ellipse at one and at two standard deviations of each normal
//     component and the number of each component at its mean;
//   - the mean log-likelihood of a sample over the iterations;
//   - the share of the samples over the probability of their component;
//   - the weights of the components.
//
// Samples of more than two values are projected on their two principal axes.
func Mixture(m Mixed) (*Figure, error) {
	d, k := volume.Of(m.Shape), len(m.Components)
	if k == 0 || d < 2 || len(m.Samples) == 0 || len(m.Codes)*d != len(m.Samples)*k {
		return nil, errors.New("figures: want a mixture and its codes of samples of at least two values")
	}
	n := len(m.Samples) / d
	axes, names := m.axes(d, n)
	clusters := panel{title: m.title(n), x: axis{label: names[0]}, y: axis{label: names[1]}}
	certain := make([]int, certainBins)
	members := make([]plotter.XYs, k)
	for i := range n {
		code := m.Codes[i*k : (i+1)*k]
		most := slices.Index(code, slices.Max(code))
		if most < 0 {
			return nil, fmt.Errorf("figures: the code of sample %d is not finite", i)
		}
		certain[min(int(code[most]*certainBins), certainBins-1)]++
		if i*mostPoints/n != (i+1)*mostPoints/n || n <= mostPoints {
			x := vectors.Wide(m.Samples[i*d : (i+1)*d])
			members[most] = append(members[most], plotter.XY{X: vectors.Dot(axes[0], x), Y: vectors.Dot(axes[1], x)})
		}
	}
	weights := panel{title: "(d) weights", x: axis{label: "component", whole: true}, y: axis{label: "weight", max: 0.01}}
	var shares plotter.XYs
	for c := range m.Components {
		clusters.lines = append(clusters.lines, line{points: members[c], color: pale(series(c)), glyph: memberGlyph(c), pointsOnly: true})
	}
	var numbers centred
	for c, one := range m.Components {
		numbers = append(numbers, label{plotter.XY{X: vectors.Dot(axes[0], one.Mean), Y: vectors.Dot(axes[1], one.Mean)}, fmt.Sprint(c), ink})
		if one.Covariance != nil {
			for q, dashes := range [][]vg.Length{nil, dashed} {
				clusters.lines = append(clusters.lines, line{points: ellipse(axes, one, float64(1+q)), color: ink, dashes: dashes})
			}
		}
		shares = append(shares, plotter.XY{X: float64(c), Y: one.Weight})
	}
	clusters.extra = []plot.Plotter{numbers}
	clusters.pad()
	weights.lines = []line{{points: shares, color: series(0), glyph: disc, pointsOnly: true}}
	bound := panel{title: "(b) log-likelihood", x: axis{label: "iteration", whole: true}, y: axis{label: "mean of a sample, nats"}}
	var rise plotter.XYs
	for _, e := range m.Epochs {
		rise = append(rise, plotter.XY{X: e.Epoch, Y: -e.Values.OrNaN("loss") * float64(d)})
	}
	bound.lines = []line{{points: rise, color: series(0), glyph: disc}}
	certainty := panel{title: "(c) responsibilities", x: axis{label: "probability of the most probable component", max: 1}, y: axis{label: "share of the samples", max: 1}}
	var shown plotter.XYs
	for b, count := range certain {
		shown = append(shown, plotter.XY{X: (float64(b) + 0.5) / certainBins, Y: float64(count) / float64(n)})
	}
	certainty.lines = []line{{points: shown, color: series(0), glyph: disc}}
	return panels([][]panel{{clusters, bound}, {certainty, weights}}, nil, 390)
}

// title names the drawn samples.
func (m Mixed) title(n int) string {
	text := "(a) components, "
	if n > mostPoints {
		text += fmt.Sprintf("%d of ", mostPoints)
	}
	if text += fmt.Sprintf("%d samples", n); m.Split != "" {
		text += " (" + m.Split + ")"
	}
	return text
}

// memberGlyph returns the shape of the samples of a component. Components with the same colour have different shapes.
func memberGlyph(c int) draw.GlyphDrawer {
	return small{[]draw.GlyphDrawer{disc, draw.CrossGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{}}[c/len(palette)%4]}
}

// small is a glyph that is smaller than that of a measured point.
type small struct{ draw.GlyphDrawer }

func (s small) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	style.Radius *= 0.6
	s.GlyphDrawer.DrawGlyph(c, style, at)
}

// pale returns a colour mixed with white, on which ink can be read.
func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8((v>>8 + 255) / 2) }
	return color.RGBA{mix(r), mix(g), mix(b), 0xFF}
}

// centred writes names at points.
type centred []label

func (l centred) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := textStyle(smallSize)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for _, one := range l {
		at := vg.Point{X: toX(one.at.X), Y: toY(one.at.Y)}
		half := vg.Point{X: style.Width(one.text)/2 + 1, Y: style.FontExtents().Ascent/2 + 1}
		c.FillPolygon(color.White, []vg.Point{at.Sub(half), {X: at.X + half.X, Y: at.Y - half.Y}, at.Add(half), {X: at.X - half.X, Y: at.Y + half.Y}})
		style.Color = one.color
		c.FillText(style, at, one.text)
	}
}

// pad makes the range of both axes a little larger than that of the lines, so that no point is cut at the edge.
func (p *panel) pad() {
	low, high := plotter.XY{X: math.Inf(1), Y: math.Inf(1)}, plotter.XY{X: math.Inf(-1), Y: math.Inf(-1)}
	for _, l := range p.lines {
		for _, at := range l.points {
			low.X, low.Y, high.X, high.Y = min(low.X, at.X), min(low.Y, at.Y), max(high.X, at.X), max(high.Y, at.Y)
		}
	}
	const margin = 0.04
	x, y := margin*(high.X-low.X), margin*(high.Y-low.Y)
	p.x.min, p.x.max, p.y.min, p.y.max = low.X-x, high.X+x, low.Y-y, high.Y+y
}

// certainBins is the number of bins of the probabilities.
const certainBins = 20

// axes returns two directions in which samples are drawn, and their names: the two values, or the principal axes.
func (m Mixed) axes(d, n int) (axes [2][]float64, names [2]string) {
	if d == 2 {
		names = [2]string{"value 0", "value 1"}
		if len(m.Names) == 2 {
			names = [2]string(m.Names)
		}
		return [2][]float64{{1, 0}, {0, 1}}, names
	}
	mean := make([]float64, d)
	for i, v := range m.Samples {
		mean[i%d] += float64(v) / float64(n)
	}
	covariance := mat.NewSymDense(d, nil)
	for i := range n {
		x := vectors.Wide(m.Samples[i*d : (i+1)*d])
		for j := range x {
			x[j] -= mean[j]
		}
		covariance.SymRankOne(covariance, 1/float64(n), mat.NewVecDense(d, x))
	}
	var e mat.EigenSym
	var vectors mat.Dense
	if !e.Factorize(covariance, true) {
		axes[0], axes[1] = make([]float64, d), make([]float64, d)
		axes[0][0], axes[1][1] = 1, 1
		return axes, [2]string{"value 0", "value 1"}
	}
	e.VectorsTo(&vectors)
	for a := range axes { // eigenvalues ascend; the largest element is positive
		axes[a] = mat.Col(nil, d-1-a, &vectors)
		if slices.Max(axes[a]) < -slices.Min(axes[a]) {
			for j := range axes[a] {
				axes[a][j] = -axes[a][j]
			}
		}
	}
	return axes, [2]string{"first principal axis", "second principal axis"}
}

// ellipse returns the outline of a normal distribution at a number of standard deviations, projected on two directions.
func ellipse(axes [2][]float64, c metrics.Component, deviations float64) (outline plotter.XYs) {
	d := len(c.Mean)
	var s [2][2]float64
	for a := range axes {
		for b := range axes {
			for i, v := range axes[a] {
				s[a][b] += v * vectors.Dot(c.Covariance[i*d:(i+1)*d], axes[b])
			}
		}
	}
	// s = L L'
	l00 := math.Sqrt(max(0, s[0][0]))
	l10 := 0.0
	if l00 > 0 {
		l10 = s[1][0] / l00
	}
	l11 := math.Sqrt(max(0, s[1][1]-l10*l10))
	const pieces = 72
	for i := range pieces + 1 {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / pieces)
		outline = append(outline, plotter.XY{X: vectors.Dot(axes[0], c.Mean) + deviations*l00*cos, Y: vectors.Dot(axes[1], c.Mean) + deviations*(l10*cos+l11*sin)})
	}
	return outline
}
