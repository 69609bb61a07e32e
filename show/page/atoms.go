package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/show/figures"
)

// pictureBudget bounds the pictures of the images that use units most, in bytes of base64.
const pictureBudget = 1_200_000

// Units is the grid of atoms of a run, or of what its decoder draws for each unit where a code does not weigh atoms.
type Units struct {
	Kind     string // "atom" or "unit"
	Noun     string // what a sample is called
	Total    int    // of the model; the first ones are shown
	Words    string
	Each     []UnitCell
	Columns  *Columns // of vectors; nil for images
	Bias     picture  // "" without any
	Negative bool     // a picture has values below 0
	Used     bool     // how units are used was measured
	Use      string   // what a use is, in words
	Images   pictures // that use a unit most, by their number
}

// pictures are images by their number.
type pictures map[int]picture

// UnitCell is one unit of the grid.
type UnitCell struct {
	Number  int
	Picture picture
	Label   string // for a screen reader
	Detail  unitDetail
}

// unitDetail is what a click shows, as the scripts read it.
type unitDetail struct {
	Active float64      `json:"active"`
	Mean   float64      `json:"mean"`
	Max    float64      `json:"max"`
	Low    float64      `json:"low"`
	High   float64      `json:"high"`
	Counts []int        `json:"counts"`
	Top    [][2]float64 `json:"top"`  // image, use
	Near   [][3]float64 `json:"near"` // unit, correlation, cosine
	Class  []float64    `json:"class,omitempty"`
}

// plainUnits is the grid of a run that was not measured.
func plainUnits(run *tessera.Run) *Units {
	a := run.Atoms()
	if a == nil {
		return nil
	}
	u := &Units{Kind: "atom", Noun: nounOf(run.Shape()), Total: a.Count}
	u.Negative = negative(a.Values)
	u.Words = fmt.Sprintf("The %s atoms of the decoder's last layer. How they are used is not measured yet.", grouped(a.Count))
	p := newPainter(a.Shape).forVectors(a.Values, a.Bias)
	u.Columns = columnsOf(run, p.most)
	for j := range min(a.Count, mostUnits) {
		u.Each = append(u.Each, UnitCell{Number: j, Picture: p.draw(figures.Signed, atom(a, j)), Label: fmt.Sprintf("atom %d", j)})
	}
	return u
}

// units is the grid with the use of every unit.
func (v *view) units() (*Units, error) {
	u := &Units{Kind: "atom", Noun: v.noun(), Total: v.run.Units(), Used: true, Use: "contribution: activation × length of the atom"}
	drawings, err := v.drawings(u)
	if err != nil || drawings == nil {
		return nil, err
	}
	u.Negative = negative(drawings) || v.direct && negative(v.atoms.Bias)
	p := v.painter.forVectors(drawings)
	if v.direct && v.atoms.Bias != nil {
		p = v.painter.forVectors(drawings, v.atoms.Bias)
		u.Bias = p.draw(figures.Signed, v.atoms.Bias)
	}
	u.Columns = columnsOf(v.run, p.most)
	pixels := len(v.image(0))
	for j := range min(v.run.Units(), mostUnits) {
		cell := UnitCell{Number: j, Picture: p.draw(figures.Signed, drawings[j*pixels:(j+1)*pixels]), Detail: v.detail(j)}
		cell.Label = fmt.Sprintf("%s %d, used by %.0f %% of the %ss", u.Kind, j, 100*cell.Detail.Active, u.Noun)
		u.Each = append(u.Each, cell)
	}
	v.topPictures(u)
	return u, nil
}

// Columns are the values of vectors, the columns of their pictures.
type Columns struct {
	Names []string `json:"names"` // nil where they have none, or too many
	Count int      `json:"-"`
	Most  string   `json:"-"` // the largest magnitude of the pictures
}

// mostColumns is how many columns of a picture have names.
const mostColumns = 60

// columnsOf describes the values of the vectors of a run, nil for images.
func columnsOf(run *tessera.Run, most float64) *Columns {
	if len(run.Shape()) > 1 {
		return nil
	}
	c := &Columns{Count: run.Shape()[0], Most: short(most)}
	if c.Count <= mostColumns {
		c.Names, _ = run.ValueNames(context.Background()) // without the file they have none
	}
	return c
}

// scaled returns vectors in the units in which the model sees them, so that their values have a common scale. Images stay as they are.
func (v *view) scaled(values []float32) []float32 {
	if v.scaling == nil || len(v.run.Shape()) > 1 {
		return values
	}
	out := make([]float32, len(values))
	for i, x := range values {
		at := i % len(v.scaling.Shift)
		out[i] = (x - v.scaling.Shift[at]) * v.scaling.Factor[at]
	}
	return out
}

// negative reports whether a value is below 0.
func negative(values []float32) bool {
	return slices.ContainsFunc(values, func(v float32) bool { return v < 0 })
}

// drawings are the images of the units that are shown: their atoms, or what the decoder adds for the largest activation of each unit.
func (v *view) drawings(u *Units) ([]float32, error) {
	if v.direct {
		u.Words = fmt.Sprintf("Each of the %s units of a code has one atom. A reconstruction is the sum of the atoms, each multiplied by the activation of its unit%s%s.",
			grouped(u.Total), withBias(v.atoms), withActivation(v.run.Model))
		return v.atoms.Values, nil
	}
	u.Kind, u.Use = "unit", "activation"
	if !slices.Contains(v.run.Values(), losses.Output) {
		u.Words = fmt.Sprintf("The model has no decoder. Each picture is the mean of the %d %ss that use one of the %s units most.", topImages, u.Noun, grouped(u.Total))
		return v.means(), nil
	}
	u.Words = fmt.Sprintf("The decoder is not one layer of atoms. Each picture shows what one of the %s units changes in the %s of the zero code, at its largest activation.",
		grouped(u.Total), u.Noun)
	units := v.run.Units()
	k := min(units, mostUnits)
	codes := make([]float32, (k+1)*units)
	for j := range k {
		codes[j*units+j] = float32(v.usage.each[j].max)
	}
	images, err := v.run.Decode(codes)
	if err != nil {
		return nil, err
	}
	pixels := len(images) / (k + 1)
	base := images[k*pixels:]
	for i := range k * pixels {
		images[i] -= base[i%pixels]
		if v.scaling != nil && len(v.run.Shape()) == 1 {
			images[i] *= v.scaling.Factor[i%pixels]
		}
	}
	return images[:k*pixels], nil
}

// means are, for every unit that is shown, the means of the images that use it most.
func (v *view) means() []float32 {
	pixels, k := len(v.image(0)), min(v.run.Units(), mostUnits)
	all := make([]float32, k*pixels)
	for j := range k {
		one := &v.usage.each[j]
		for _, i := range one.top {
			for p, x := range v.scaled(v.image(i)) {
				all[j*pixels+p] += x / float32(len(one.top))
			}
		}
	}
	return all
}

func withBias(a *metrics.Atoms) string {
	if a.Bias == nil {
		return ""
	}
	return ", plus the bias"
}

// withActivation says that a decoder does not end with its sum.
func withActivation(m *config.Model) string {
	if len(m.Decoder) == 0 { // a baseline
		return ""
	}
	activation := "that of another layer"
	switch last := m.Decoder[len(m.Decoder)-1].Layer.(type) {
	case *layers.Dense:
		activation = string(last.Activation)
	case *layers.Tied:
		activation = string(last.Activation)
	}
	if activation == "linear" {
		return ""
	}
	return ", then passed through the last activation of the decoder"
}

// detail is what a click on unit j shows.
func (v *view) detail(j int) unitDetail {
	one := v.usage.each[j]
	d := unitDetail{Active: round(one.active), Mean: round(one.mean), Max: round(one.max), Low: round(one.low), High: round(one.high), Counts: one.counts,
		Top: [][2]float64{}, Near: [][3]float64{}}
	for _, i := range one.top {
		d.Top = append(d.Top, [2]float64{float64(v.number(i)), round(v.usage.of(i, j))})
	}
	for _, n := range one.near {
		near := [3]float64{float64(n.unit), round(n.correlation), 0}
		if v.direct {
			near[2] = round(cosine(v.atoms, j, n.unit))
		}
		d.Near = append(d.Near, near)
	}
	for _, byClass := range v.usage.byOne {
		d.Class = append(d.Class, round(byClass[j]))
	}
	return d
}

// topPictures draws the images that use units most, fewer for each unit where the page would become too large.
func (v *view) topPictures(u *Units) {
	p := v.painter.forVectors(v.scaled(v.images[:min(len(v.images), 100*len(v.image(0)))]))
	for most := topImages; most > 0; most /= 2 {
		u.Images = pictures{}
		size := 0
		for j := range u.Each {
			d := &u.Each[j].Detail
			d.Top = d.Top[:min(most, len(d.Top))]
			for _, i := range v.usage.each[u.Each[j].Number].top[:len(d.Top)] {
				if number := v.number(i); u.Images[number] == "" {
					u.Images[number] = p.draw(v.tone, v.scaled(v.image(i)))
					size += len(u.Images[number])
				}
			}
		}
		if size <= pictureBudget {
			return
		}
	}
}

// ClassCodes is the mean use of the units by the images of one class.
type ClassCodes struct {
	Class  string
	Images int
	Strip  picture    // one pixel per unit
	Most   []UnitLink // the units that the class uses more than the other classes do
}

// UnitLink is a unit beside a text.
type UnitLink struct {
	Number int
	Label  string
}

// typical is how many units are shown for a class.
const typical = 8

// codes compares the codes of the classes, nil without labels.
func (v *view) codes() (list []ClassCodes) {
	counts := make([]int, len(v.classes))
	for _, c := range v.labels {
		if c >= 0 && c < len(counts) {
			counts[c]++
		}
	}
	most := 0.0
	for _, c := range v.usage.byOne {
		most = max(most, slices.Max(c))
	}
	for c, name := range v.classes {
		uses := v.usage.byOne[c]
		one := ClassCodes{Class: name, Images: counts[c], Strip: heat(uses, most)}
		excess := make([]float64, len(uses))
		order := make([]int, len(uses))
		for j := range uses {
			mean := 0.0
			for _, other := range v.usage.byOne {
				mean += other[j] / float64(len(v.classes))
			}
			excess[j], order[j] = uses[j]-mean, j
		}
		slices.SortStableFunc(order, func(a, b int) int { return compare(excess[b], excess[a]) })
		for _, j := range order[:min(typical, len(order))] {
			if excess[j] > 0 && j < mostUnits {
				one.Most = append(one.Most, UnitLink{j, fmt.Sprintf("%d: %s, mean of all classes %s", j, short(uses[j]), short(uses[j]-excess[j]))})
			}
		}
		list = append(list, one)
	}
	return list
}

// sharePercent is a share in words.
func sharePercent(share float64) string {
	text := fmt.Sprintf("%.1f", 100*share)
	return strings.TrimSuffix(text, ".0") + " %"
}
