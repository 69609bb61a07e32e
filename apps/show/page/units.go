package page

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/internal/engine/kernel"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// Limits for the content of a page about one run.
const (
	mostUnits      = 400     // units in the grid
	mostListed     = 60      // units in the list of those that samples with names use
	mostImages     = 10_000  // images for pictures and for the statistics of units, codes and heads
	mostValues     = 1 << 26 // values of these images, which limits the number of large images
	mostCorrelated = 1 << 22 // code values for the correlations of units
	topImages      = 8       // images per unit: those that use it most
	topNeighbours  = 6
	bins           = 24 // bins of a histogram
	activeShare    = 0.01
)

// usage contains statistics of all units over a set of codes. The use of unit j by image i is its contribution h_ij |w_j|_2
// if the code weights atoms, otherwise the activation h_ij.
type usage struct {
	n, k  int
	use   []float32 // use of every unit by every image, n x k
	each  []unitUse
	byOne [][]float64 // mean use by class, classes x k; nil without labels
}

// unitUse describes the use of one unit.
type unitUse struct {
	active    float64 // share of the images for which |use| is above 1 % of the image's largest use
	mean, max float64 // mean and maximum of the use
	size      float64 // mean of |use|
	low, high float64 // ends of the histogram
	counts    []int   // numbers of images by use, without images in which the unit is inactive
	top       []int   // images with the largest use, in descending order
	near      []neighbour
}

// neighbour is another unit whose use is correlated with that of a unit.
type neighbour struct {
	unit        int
	correlation float64 // correlation of the uses over the images
}

// usageOf computes the statistics of codes of k units. scales are the factors of the units; nil for none.
func usageOf(codes []float32, k int, scales []float64, labels []int, classes int) *usage {
	u := &usage{n: len(codes) / k, k: k, use: codes, each: make([]unitUse, k)}
	if scales != nil {
		u.use = make([]float32, len(codes))
		for i, v := range codes {
			u.use[i] = float32(float64(v) * scales[i%k])
		}
	}
	largest := make([]float64, u.n)
	for i := range largest {
		for _, v := range u.use[i*k : (i+1)*k] {
			largest[i] = max(largest[i], math.Abs(float64(v)))
		}
	}
	for j := range k {
		u.each[j] = u.unit(j, largest)
	}
	u.correlate()
	if classes > 0 {
		u.classes(labels, classes)
	}
	return u
}

// of returns the use of unit j by image i.
func (u *usage) of(i, j int) float64 { return float64(u.use[i*u.k+j]) }

// unit returns a description of one unit; largest is the largest |use| of every image.
func (u *usage) unit(j int, largest []float64) unitUse {
	one := unitUse{low: math.Inf(1), high: math.Inf(-1), counts: make([]int, bins)}
	var active []float64
	for i := range u.n {
		v := u.of(i, j)
		one.mean += v / float64(u.n)
		one.size += math.Abs(v) / float64(u.n)
		if math.Abs(v) > activeShare*largest[i] {
			active = append(active, v)
			one.low, one.high = min(one.low, v), max(one.high, v)
			one.top = u.withLargest(one.top, i, j)
		}
	}
	one.active = float64(len(active)) / float64(u.n)
	if len(active) == 0 {
		return unitUse{counts: one.counts, mean: one.mean, size: one.size}
	}
	one.low = min(one.low, 0)
	for _, v := range active {
		at := int(float64(bins) * (v - one.low) / (one.high - one.low))
		one.counts[min(max(at, 0), bins-1)]++ // all values may be equal
	}
	one.max = u.of(one.top[0], j)
	return one
}

// withLargest inserts image i into the list of the images with the largest use of unit j. Of images with equal use, the one
// inserted first has priority.
func (u *usage) withLargest(top []int, i, j int) []int {
	size := func(i int) float64 { return math.Abs(u.of(i, j)) }
	at := len(top)
	for at > 0 && size(i) > size(top[at-1]) {
		at--
	}
	if at == topImages {
		return top
	}
	top = slices.Insert(top, at, i)
	return top[:min(topImages, len(top))]
}

// correlate finds the units whose uses are most correlated (Pearson), among those that are shown.
func (u *usage) correlate() {
	k := min(u.k, mostUnits)
	n := min(u.n, mostCorrelated/k)
	if n < 3 {
		return
	}
	z := make([]float64, n*k)
	for j := range k {
		mean, square := 0.0, 0.0
		for i := range n {
			mean += u.of(i, j) / float64(n)
		}
		for i := range n {
			d := u.of(i, j) - mean
			z[i*k+j] = d
			square += d * d
		}
		for i := range n {
			if square > 0 {
				z[i*k+j] /= math.Sqrt(square)
			}
		}
	}
	c := make([]float64, k*k)
	kernel.Float64().Gemm(true, false, k, k, n, 1, z, k, z, k, 0, c, k)
	for j := range k {
		var near []neighbour
		for other := range k {
			if v := c[j*k+other]; other != j && v > 0 && u.each[j].active > 0 {
				near = append(near, neighbour{other, v})
			}
		}
		slices.SortStableFunc(near, func(a, b neighbour) int { return cmp.Compare(b.correlation, a.correlation) })
		u.each[j].near = near[:min(topNeighbours, len(near))]
	}
}

// classes computes the mean use of every unit by class.
func (u *usage) classes(labels []int, classes int) {
	sums, counts := make([][]float64, classes), make([]float64, classes)
	for c := range sums {
		sums[c] = make([]float64, u.k)
	}
	for i := range u.n {
		c := labels[i]
		if c < 0 || c >= classes {
			continue
		}
		counts[c]++
		for j := range u.k {
			sums[c][j] += math.Abs(u.of(i, j))
		}
	}
	for c := range sums {
		for j := range sums[c] {
			sums[c][j] /= max(1, counts[c])
		}
	}
	u.byOne = sums
}

// lengths returns the lengths |w_j|_2 of atoms.
func lengths(a *metrics.Atoms) []float64 {
	all := make([]float64, a.Count)
	for j := range all {
		for _, v := range atom(a, j) {
			all[j] += float64(v) * float64(v)
		}
		all[j] = math.Sqrt(all[j])
	}
	return all
}

func atom(a *metrics.Atoms, j int) []float32 { return a.Values[j*a.Pixels() : (j+1)*a.Pixels()] }

// cosine returns the cosine of two atoms, 0 if one of them is zero.
func cosine(a *metrics.Atoms, i, j int) float64 { return vectors.Cosine(atom(a, i), atom(a, j)) }

// pictureBudget limits the size of the pictures of the images that use units most, in bytes of base64.
const pictureBudget = 1_200_000

// unitDetail is the JSON description of a unit, which the page shows after a click on the unit.
type unitDetail struct {
	Active float64      `json:"active"`
	Mean   float64      `json:"mean"`
	Max    float64      `json:"max"`
	Low    float64      `json:"low"`
	High   float64      `json:"high"`
	Counts []int        `json:"counts"`
	Top    [][2]float64 `json:"top"`  // number of the image, use
	Near   [][3]float64 `json:"near"` // number of the unit, correlation, cosine
	Class  []float64    `json:"class,omitempty"`
}

// grid is the section of the atoms of a run. If the code does not weight atoms, it shows the decoder's image for each unit.
type grid struct {
	*runData
	painter  painter
	total    int // number of units in the model; the first ones are shown
	words    string
	negative bool // some picture has negative values
	pictures []doc.Picture
}

// add adds the picture of the next unit.
func (g *grid) add(atom []float32, names []string, use string) {
	j := len(g.pictures)
	unit := strconv.Itoa(j)
	one := g.painter.picture(g.Kind, j, atom, names)
	one.PNG = []string{g.painter.draw(figures.Signed, atom)}
	if g.Units != nil {
		one.Unit, one.Faint = unit, g.Units[j].Active == 0
	}
	one.About += use
	g.pictures = append(g.pictures, one)
}

// picture returns the caption and the explanation of the picture of a unit.
func (p painter) picture(kind string, j int, atom []float32, names []string) doc.Picture {
	one := doc.Picture{Caption: strconv.Itoa(j), About: fmt.Sprintf("%s %d", kind, j)}
	if part := show.PartName(atom, names); part != "" {
		one.About += ": " + part
		if p.shrink > 1 { // the picture does not show which values are large
			one.Caption += ": " + part
		}
	}
	return one
}

func (g *grid) blocks(bias string) []doc.Block {
	words, shown := g.words, len(g.pictures)
	switch {
	case g.Vectors:
		words += " " + g.painter.scale()
	case g.Kind == "atom":
		words += " 0 is black, the largest value of each atom is white"
	default:
		words += " 0 is black"
	}
	if !g.Vectors {
		if g.negative {
			words += "; negative values are blue, and the positive values of the same picture red"
		}
		words += "."
	}
	if g.Units != nil {
		words += fmt.Sprintf(" Select one to enlarge it and to see which %ss use it and which others they use with it. Those that are crossed out are not used by any %s.", g.Noun, g.Noun)
	}
	if shown < g.total {
		words += fmt.Sprintf(" The first %d of %s are shown.", shown, numeral.Count(g.total))
	}
	if bias != "" {
		g.pictures = append(g.pictures, doc.Picture{PNG: []string{bias}, Caption: "bias", About: "bias of the decoder"})
	}
	return []doc.Block{&doc.Group{Title: map[bool]string{true: "Atoms", false: "Units"}[g.Kind == "atom"], Blocks: []doc.Block{doc.Remark("%s", words),
		&doc.Gallery{Style: g.painter.style("grid"), Names: g.Names, Pictures: g.pictures}}}}
}

// plainUnits adds the grid of a run that was not measured.
func (r *Run) plainUnits(run *tessera.Run) {
	a := run.Atoms()
	if a == nil {
		return
	}
	r.data.describe(run)
	g := &grid{runData: &r.data, painter: newPainter(a.Shape).forVectors(a.Values, a.Bias), total: a.Count, negative: negative(a.Values)}
	g.words = fmt.Sprintf("The %s atoms of the decoder's last layer. How they are used is not measured yet.", numeral.Count(a.Count))
	names := show.OutputNames(context.Background(), run)
	for j := range min(a.Count, mostUnits) {
		g.add(atom(a, j), names, "")
	}
	r.Sections = g.blocks("")
}

// units returns the grid with the use of every unit.
func (v *view) units(d *runData) ([]doc.Block, error) {
	d.describe(v.run)
	d.Use = "contribution: activation × length of the atom"
	g := &grid{runData: d, total: v.run.Units()}
	drawings, err := v.drawings(g)
	if err != nil || drawings == nil {
		return nil, err
	}
	g.negative = negative(drawings) || v.direct && negative(v.atoms.Bias)
	g.painter = v.painter.forVectors(drawings)
	bias := ""
	if v.direct && v.atoms.Bias != nil {
		g.painter = v.painter.forVectors(drawings, v.atoms.Bias)
		bias = g.painter.draw(figures.Signed, v.atoms.Bias)
	}
	pixels, names := len(v.image(0)), show.OutputNames(context.Background(), v.run)
	if v.run.Decodes() != nil { // means of samples are drawn
		names = show.ValueNames(context.Background(), v.run)
	}
	d.Units = map[int]unitDetail{}
	for j := range min(v.run.Units(), mostUnits) {
		d.Units[j] = v.detail(j)
		g.add(drawings[j*pixels:(j+1)*pixels], names, fmt.Sprintf(", used by %.0f %% of the %ss", 100*d.Units[j].Active, d.Noun))
	}
	v.topPictures(d)
	blocks := g.blocks(bias)
	if d.Vectors && v.names != nil {
		list := &doc.Group{Title: "Units and the " + d.Noun + "s that use them most", Blocks: []doc.Block{v.list(names, mostListed)}}
		blocks = slices.Insert(blocks, 0, doc.Block(list))
	}
	return blocks, nil
}

// mostColumns is the maximum number of columns that are named below a picture of a vector.
const mostColumns = 72

// describe sets the names of the values of vectors.
func (d *runData) describe(run *tessera.Run) {
	if d.Vectors = len(run.Shape()) == 1; d.Vectors && run.OutputIsSample() && run.Shape()[0] <= mostColumns {
		d.Names, _ = run.ValueNames(context.Background()) // without the file they have none
	}
}

// scaled scales vectors like the inputs of the model, so that their values are comparable. It returns images unchanged.
func (v *view) scaled(values []float32) []float32 {
	if v.inTheirUnit() {
		return values
	}
	return v.scaling.Unclipped(values)
}

// rescaled returns outputs of the model in the unit of scaled.
func (v *view) rescaled(outputs []float32) []float32 {
	if v.inTheirUnit() {
		return outputs
	}
	return v.scaling.Redone(outputs)
}

// inTheirUnit reports whether samples are drawn in their own unit: images, unless outputs have another one.
func (v *view) inTheirUnit() bool {
	return v.scaling == nil || len(v.run.Shape()) > 1 && v.scaling.Lossy() == ""
}

// negative reports whether a value is below 0.
func negative(values []float32) bool {
	return slices.ContainsFunc(values, func(v float32) bool { return v < 0 })
}

// drawings returns the pictures of the shown units, and describes them in g.words: their atoms; otherwise the change that a
// unit at its largest activation makes in the decoder's image of the zero code; or, without a decoder of codes alone, the mean
// of the images that use the unit most.
func (v *view) drawings(g *grid) ([]float32, error) {
	if v.direct {
		g.words = fmt.Sprintf("Each of the %s units of a code has one atom. A reconstruction is the sum of the atoms, each multiplied by the activation of its unit%s%s.",
			numeral.Count(g.total), withBias(v.atoms), withActivation(v.run.Model))
		return v.atoms.Values, nil
	}
	g.Kind, g.Use = "unit", "activation"
	if !slices.Contains(v.run.Values(), losses.Output) {
		g.words = fmt.Sprintf("The model has no decoder. Each picture is the mean of the %d %ss that use one of the %s units most.", topImages, g.Noun, numeral.Count(g.total))
		return v.means(), nil
	}
	if err := v.run.Decodes(); err != nil {
		g.words = fmt.Sprintf("The decoder reads more than the code. Each picture is the mean of the %d %ss that use one of the %s units most.", topImages, g.Noun, numeral.Count(g.total))
		return v.means(), nil
	}
	g.words = fmt.Sprintf("The decoder is not one layer of atoms. Each picture shows what one of the %s units changes in the %s of the zero code, at its largest activation.",
		numeral.Count(g.total), g.Noun)
	return v.effects(0, min(v.run.Units(), mostUnits))
}

// effects returns what each of k units, from the first one on, changes in the decoder's output for the zero code, at its largest
// activation.
func (v *view) effects(first, k int) ([]float32, error) {
	units := v.run.Units()
	codes := make([]float32, (k+1)*units)
	for j := range k {
		codes[j*units+first+j] = float32(v.usage.each[first+j].max)
	}
	images, err := v.coder.Decode(codes)
	if err != nil {
		return nil, err
	}
	pixels := len(images) / (k + 1)
	base := images[k*pixels:]
	for i := range k * pixels {
		images[i] -= base[i%pixels]
		if v.scaling != nil && len(v.run.Shape()) == 1 && v.run.OutputIsSample() {
			images[i] *= v.scaling.Factor[i%pixels]
		}
	}
	return images[:k*pixels], nil
}

// means returns, for every shown unit, the mean of the images that use it most.
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

// withActivation notes that a decoder applies an activation to the sum of its atoms.
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

// detail returns the description of unit j that the page shows after a click on the unit.
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

// topPictures draws the images that use units most. It draws fewer images per unit if the page would otherwise become too large.
func (v *view) topPictures(data *runData) {
	p := v.painter.forVectors(v.scaled(v.images[:min(len(v.images), 100*len(v.image(0)))]))
	for most := topImages; most > 0; most /= 2 {
		data.Images, data.Called = map[int]string{}, nil
		size := 0
		for j, d := range data.Units {
			d.Top = d.Top[:min(most, len(d.Top))]
			data.Units[j] = d
			for _, i := range v.usage.each[j].top[:len(d.Top)] {
				if number := v.number(i); data.Images[number] == "" {
					data.Images[number] = p.draw(v.tone, v.scaled(v.image(i)))
					v.call(data, i)
					size += len(data.Images[number])
				}
			}
		}
		if size <= pictureBudget {
			return
		}
	}
}

// call adds the name of sample i, if it has one.
func (v *view) call(data *runData, i int) {
	at := v.number(i)
	if at >= len(v.names) {
		return
	}
	if data.Called == nil {
		data.Called = map[int]string{}
	}
	data.Called[at] = v.names[at]
}

// typical is the number of units that are shown for a class.
const typical = 8

// codes compares the mean use of the units by the images of the classes, nil without labels.
func (v *view) codes() []doc.Block {
	if len(v.classes) == 0 {
		return nil
	}
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
	t := &doc.Table{Columns: doc.Columns("class", v.noun()+"s", "units", "typical units")}
	for c, name := range v.classes {
		uses := v.usage.byOne[c]
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
		var links []doc.Picture
		for _, j := range order[:min(typical, len(order))] {
			if excess[j] > 0 && j < mostUnits {
				links = append(links, doc.Picture{Unit: strconv.Itoa(j), Caption: strconv.Itoa(j),
					About: fmt.Sprintf("%d: %s, mean of all classes %s", j, numeral.Float(uses[j]), numeral.Float(uses[j]-excess[j]))})
			}
		}
		t.Row(name, counts[c], []doc.Picture{{PNG: []string{heat(uses, most)}, About: "mean use of the units"}}, links)
	}
	return []doc.Block{&doc.Group{Title: "Codes by class", Blocks: []doc.Block{doc.Remark("Mean use of every unit, from the first on the left to the last on the right, by the %ss of each class: "+
		"a stronger colour is more. Next to it are the typical units of the class: those that it uses most, compared with the mean of all classes.", v.noun()), t}}}
}
