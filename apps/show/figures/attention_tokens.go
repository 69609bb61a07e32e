package figures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tessera"
	"tessera/data"
	"tessera/internal/lists"
)

// Attended is a text with the attention weights of its tokens.
type Attended struct {
	Label  string
	Tokens []string
	Heads  [][][]float32 // of each head, by the token that attends, then by the token to which it attends
}

// mostTokens is the maximum number of tokens whose matrix is legible.
const mostTokens = 32

// AttentionOfTexts returns where the heads of the last layer with attention attend in samples of tokens: from each of the first tokens to each of them.
// It returns nil for a model whose samples are no tokens, or that publishes no attention of all tokens to all.
func AttentionOfTexts(ctx context.Context, r *tessera.Run, samples *data.Images) (list []Attended, err error) {
	t, n, value, heads := r.Tokens(), samples.Pixels(), "", 0
	for _, name := range r.Named() {
		if s := r.ShapeOf(name); t != nil && strings.HasSuffix(name, "attention") && len(s) == 3 && s[1] == n && s[2] == n {
			value, heads = name, s[0]
		}
	}
	if value == "" {
		return nil, nil
	}
	weights, err := r.ValuesOf(ctx, value, samples)
	if err != nil {
		return nil, err
	}
	row := make([]float32, n)
	for i := range samples.Len() {
		samples.Batch(row, []int{i})
		shown := row[:min(n, mostTokens)]
		if end := slices.Index(shown, float32(t.Pad())); end >= 0 {
			shown = shown[:end]
		}
		a := Attended{Label: strings.TrimSuffix(value, ".attention"), Tokens: lists.Map(shown, func(token float32) string {
			name := t.Name(int32(token))
			if t.Exact() { // spaces, and parts of characters
				name = strconv.Quote(name)
			}
			return name
		})}
		for h := range heads {
			of := weights[(i*heads+h)*n*n:]
			a.Heads = append(a.Heads, lists.Of(len(shown), func(k int) []float32 { return of[k*n:][:len(shown)] }))
		}
		list = append(list, a)
	}
	return list, nil
}

// TokenAttention draws a matrix for each head and text: a row for each token that attends, a column for each token to which it attends. The darker a cell,
// the larger the weight.
func TokenAttention(list ...Attended) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("figures: no attention to draw")
	}
	var rows [][]panel
	most := 0
	for _, a := range list {
		n := len(a.Tokens)
		most = max(most, n)
		var all []panel
		for h, weights := range a.Heads {
			side := axis{min: -0.5, max: float64(n) - 0.5, names: a.Tokens, room: n}
			x, y := side, side
			x.label, y.label, y.inverted = "attends to", "token", true
			corner := line{points: plotter.XYs{{}}, pointsOnly: true} // the cells are no points
			all = append(all, panel{title: fmt.Sprintf("%s, head %d", a.Label, h), x: x, y: y, lines: []line{corner}, extra: []plot.Plotter{attended(weights)}})
		}
		rows = slices.AppendSeq(rows, slices.Chunk(all, 2))
	}
	return panels(rows, nil, 140+16*max(most, 8))
}

// attended is a matrix of weights, drawn as the content of a plot.
type attended [][]float32

func (m attended) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	most := slices.Max(append(slices.Concat(m...), 1e-30))
	for i, row := range m {
		for j, v := range row {
			at := vg.Rectangle{Min: vg.Point{X: x(float64(j) - 0.5), Y: y(float64(i) + 0.5)}, Max: vg.Point{X: x(float64(j) + 0.5), Y: y(float64(i) - 0.5)}}
			c.SetColor(blend(series(0), float64(v/most)))
			c.Fill(at.Path())
		}
	}
}
