package laws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/metrics"
)

// Metric contains the laws of metrics.
var Metric = Laws[metrics.Metric]{
	{"describes itself", described},
	{"gives finite numbers or the reason why there are none", finiteValues},
	{"gives the same numbers again", repeats},
	{"does not change its inputs", changesNothing},
	{"reads only the inputs that it declares", readsDeclared},
	{"does not depend on how images are cut into batches", cutAnyhow},
	{"does not depend on the order of the images unless it says so", orderless},
	{"does not depend on the scale of units if it says so", scaleless},
}

// tolerance is the maximum difference of two numbers: the sum of both parts.
type tolerance struct{ relative, absolute float64 }

var (
	exactly = tolerance{}
	// sameUpTo is the tolerance for another order of additions.
	sameUpTo = tolerance{relative: 1e-12}
	// scaleUpTo is the tolerance for scaled units: the sparsity of atoms has a constant in its denominator, and a number
	// that is 0 without rounding may differ from 0 with it.
	scaleUpTo = tolerance{relative: 1e-5, absolute: 1e-7}
)

// valuesOf evaluates a metric on a model; a panic is an error. If the images lack what the metric needs ([*data.Error]), there
// are no values.
func valuesOf(m metrics.Metric, of *measured) (v metrics.Values, err error) {
	defer recovered(&err)
	r, err := metrics.Evaluate(context.Background(), of, of.sample, metrics.Selection{{Metric: m}})
	var lacking *data.Error
	if errors.As(err, &lacking) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return r.Values, nil
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panics: %v", r)
	}
}

// compareValues returns an error if numbers differ by more than a tolerance or belong to different measures.
func compareValues(what string, got, want metrics.Values, up tolerance) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		most := up.absolute + up.relative*math.Max(math.Abs(g.Number), math.Abs(w.Number))
		if g.Name != w.Name || g.Missing != w.Missing || !(math.Abs(g.Number-w.Number) <= most) {
			return fmt.Errorf("%s: %s is %v %s, want %v %s", what, w.Name, g.Number, g.Missing, w.Number, w.Missing)
		}
	}
	return nil
}

func described(fresh func() metrics.Metric) error {
	d := fresh().Describe()
	if len(d.Measures) == 0 || d.Reads == 0 {
		return errors.New("its About or Reads is empty; say what it measures and what it reads")
	}
	seen := map[string]bool{}
	for _, m := range d.Measures {
		switch {
		case m.Name == "" || strings.ContainsAny(m.Name, " .*?[],\""):
			return fmt.Errorf("the name %q cannot be selected", m.Name)
		case seen[m.Name]:
			return fmt.Errorf("two measures are called %q", m.Name)
		case m.Doc == "":
			return fmt.Errorf("%s: Doc is empty", m.Name)
		case !slices.Contains([]metrics.Better{metrics.Lower, metrics.Higher, metrics.Neither}, m.Better):
			return fmt.Errorf("%s: better is %q, want %q, %q or %q", m.Name, m.Better, metrics.Lower, metrics.Higher, metrics.Neither)
		}
		seen[m.Name] = true
	}
	return nil
}

func finiteValues(fresh func() metrics.Metric) error {
	d, some := fresh().Describe(), false
	for _, of := range measuredModels() {
		values, err := valuesOf(fresh(), of)
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		for _, v := range values {
			one := d.Measures[slices.IndexFunc(d.Measures, func(m metrics.Measure) bool { return strings.HasSuffix(v.Name, m.Name) })]
			switch {
			case v.Missing == "" && one.Count && v.Number != math.Trunc(v.Number):
				return fmt.Errorf("%s: %s counts %v", of.name, v.Name, v.Number)
			case v.Missing != "" && !d.Partial && of.gives(d.Reads):
				return fmt.Errorf("%s: %s is not applicable (%s), but the metric is not declared Partial", of.name, v.Name, v.Missing)
			}
			some = some || v.Missing == ""
		}
	}
	if !some {
		return errors.New("no model gives a number")
	}
	return nil
}

// gives reports whether a model has the inputs that a metric reads.
func (m *measured) gives(r metrics.Reads) bool {
	return !(r.Has(metrics.ReadsOutputs) && m.encodes || r.Has(metrics.ReadsObjective) && !m.MeasuresObjective(true) || r.Has(metrics.ReadsAtoms) && m.opaque || r.Has(metrics.ReadsWeights) && m.encodes ||
		r.Has(metrics.ReadsLabels) && m.sample.Labels == nil || r.Has(metrics.ReadsLogits) && len(m.heads) == 0 ||
		r.Has(metrics.ReadsPictures) && len(m.shape) < 2 || r.Has(metrics.ReadsParts) && m.sample.Parts == nil)
}

func repeats(fresh func() metrics.Metric) error {
	used := fresh()
	for _, of := range measuredModels() {
		want, err := valuesOf(fresh(), of)
		if err != nil {
			return err
		}
		for _, m := range []metrics.Metric{used, used, fresh()} {
			got, err := valuesOf(m, of)
			if err != nil {
				return err
			}
			if err := compareValues(of.name+": again", got, want, exactly); err != nil {
				return err
			}
		}
	}
	return nil
}

func orderless(fresh func() metrics.Metric) error {
	if fresh().Describe().Ordered {
		return nil
	}
	for _, of := range measuredModels() {
		n, pixels := len(of.sample.Images)/volume.Of(of.shape), volume.Of(of.shape)
		shuffled := *of
		shuffled.sample.Images, shuffled.sample.Labels = nil, nil
		for _, i := range source().Perm(n) {
			shuffled.sample.Images = append(shuffled.sample.Images, of.sample.Images[i*pixels:(i+1)*pixels]...)
			if of.sample.Labels != nil {
				shuffled.sample.Labels = append(shuffled.sample.Labels, of.sample.Labels[i])
			}
		}
		if err := alike(fresh, of, &shuffled, "in another order", sameUpTo); err != nil {
			return err
		}
	}
	return nil
}

func scaleless(fresh func() metrics.Metric) error {
	if !fresh().Describe().ScaleFree {
		return nil
	}
	for _, of := range measuredModels() {
		if err := alike(fresh, of, of.scaled(), "with scaled units", scaleUpTo); err != nil {
			return err
		}
	}
	return nil
}

// alike returns an error if two models give different numbers.
func alike(fresh func() metrics.Metric, one, other *measured, what string, up tolerance) error {
	want, err := valuesOf(fresh(), one)
	if err != nil {
		return err
	}
	got, err := valuesOf(fresh(), other)
	if err != nil {
		return err
	}
	return compareValues(one.name+": "+what, got, want, up)
}

// given contains the inputs of a metric: its subject, and all images in one batch.
type given struct {
	subject metrics.Subject
	batch   metrics.Batch
	n       int

	objectives []float64 // of the images; their mean is the objective of a batch
}

// givenBy computes the values of the model that reads lists.
func givenBy(of *measured, reads metrics.Reads) (g given, err error) {
	g.n = len(of.sample.Images) / volume.Of(of.shape)
	g.subject = metrics.Subject{Coder: of, Shape: of.shape, Units: of.units, Images: g.n, Seed: of.sample.Seed}
	codes, err := of.Encode(of.sample.Images)
	if err != nil {
		return g, err
	}
	if reads.Has(metrics.ReadsAtoms) {
		g.subject.Atoms = of.Atoms()
	}
	if reads.Has(metrics.ReadsParts) {
		g.subject.Parts = of.sample.Parts
	}
	if reads.Has(metrics.ReadsWeights) {
		g.subject.Weight = slices.Clone(of.LastWeight())
	}
	if reads.Has(metrics.ReadsImages) {
		g.batch.Images = slices.Clone(of.sample.Images)
	}
	if reads.Has(metrics.ReadsCodes) {
		g.batch.Codes = codes
	}
	if reads.Has(metrics.ReadsLabels) {
		g.batch.Labels = slices.Clone(of.sample.Labels)
	}
	if reads.Has(metrics.ReadsOutputs) {
		if g.batch.Outputs, err = of.Decode(codes); err != nil {
			return g, err
		}
	}
	if reads.Has(metrics.ReadsLogits) {
		g.subject.Head = of.ClassHeads()[0]
		g.batch.Logits, err = of.Value(g.subject.Head, of.sample.Images)
	}
	if reads.Has(metrics.ReadsObjective) {
		pixels := volume.Of(of.shape)
		for i := range g.n {
			one, _ := of.Objective(of.sample.Images[i*pixels:(i+1)*pixels], nil) // has no errors
			g.objectives = append(g.objectives, one)
		}
	}
	return g, err
}

// cut returns the images [from, to) of the batch.
func (g given) cut(from, to int) metrics.Batch {
	rows := func(v []float32) []float32 { width := len(v) / g.n; return v[from*width : to*width : to*width] }
	b := metrics.Batch{Images: rows(g.batch.Images), Codes: rows(g.batch.Codes), Outputs: rows(g.batch.Outputs), Logits: rows(g.batch.Logits)}
	if g.batch.Labels != nil {
		b.Labels = g.batch.Labels[from:to:to]
	}
	if g.objectives != nil {
		for _, one := range g.objectives[from:to] {
			b.Objective += one / float64(to-from)
		}
	}
	return b
}

// inBatches evaluates a metric in batches of that size; a panic becomes an error.
func inBatches(m metrics.Metric, g given, size int) (values metrics.Values, err error) {
	defer recovered(&err)
	meter, err := m.Start(&g.subject)
	if err != nil {
		return nil, err
	}
	if c, ok := meter.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	for from := 0; from < g.n; from += size {
		b := g.cut(from, min(from+size, g.n))
		if err := meter.Add(&b); err != nil {
			return nil, err
		}
	}
	found, err := meter.Values(context.Background())
	var lacking *data.Error
	if errors.As(err, &lacking) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	measures := m.Describe().Measures
	if len(found) != len(measures) {
		return nil, fmt.Errorf("%d values, want %d", len(found), len(measures))
	}
	for i := range found {
		found[i].Name = measures[i].Name
	}
	return found, nil
}

// eachGiven calls f with every model that has the metric's inputs, and with these inputs.
func eachGiven(fresh func() metrics.Metric, f func(of *measured, g given) error) error {
	reads := fresh().Describe().Reads
	for _, of := range measuredModels() {
		if !of.gives(reads) {
			continue
		}
		g, err := givenBy(of, reads)
		if err == nil {
			err = f(of, g)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
	}
	return nil
}

func cutAnyhow(fresh func() metrics.Metric) error {
	return eachGiven(fresh, func(_ *measured, g given) error {
		want, err := inBatches(fresh(), g, g.n)
		if err != nil {
			return err
		}
		for _, size := range []int{1, 7, 100} {
			got, err := inBatches(fresh(), g, size)
			if err != nil {
				return err
			}
			if err := compareValues(fmt.Sprintf("in batches of %d", size), got, want, sameUpTo); err != nil {
				return err
			}
		}
		return nil
	})
}

// readsDeclared compares a metric that gets only its declared inputs with one that gets all inputs.
func readsDeclared(fresh func() metrics.Metric) error {
	return eachGiven(fresh, func(of *measured, g given) error {
		got, err := inBatches(fresh(), g, g.n)
		if err != nil {
			return err
		}
		all, err := givenBy(of, everything(of))
		if err != nil {
			return err
		}
		want, err := inBatches(fresh(), all, g.n)
		if err != nil {
			return err
		}
		return compareValues("with the declared inputs only", got, want, exactly)
	})
}

// everything contains all values of a model.
func everything(of *measured) (all metrics.Reads) {
	for one := metrics.ReadsImages; one <= metrics.ReadsObjective; one <<= 1 {
		if of.gives(one) {
			all |= one
		}
	}
	return all
}

func changesNothing(fresh func() metrics.Metric) error {
	return eachGiven(fresh, func(of *measured, g given) error {
		before, err := givenBy(of, fresh().Describe().Reads)
		if err != nil {
			return err
		}
		if _, err := inBatches(fresh(), g, g.n); err != nil {
			return err
		}
		for _, v := range []struct {
			what        string
			now, before []float32
		}{
			{"images", g.batch.Images, before.batch.Images}, {"codes", g.batch.Codes, before.batch.Codes},
			{"outputs", g.batch.Outputs, before.batch.Outputs}, {"logits", g.batch.Logits, before.batch.Logits},
			{"the weight", g.subject.Weight, before.subject.Weight},
		} {
			if err := differ("changed "+v.what, v.now, v.before); err != nil {
				return err
			}
		}
		if !slices.Equal(g.batch.Labels, before.batch.Labels) {
			return errors.New("changed labels")
		}
		if a, b := g.subject.Atoms, before.subject.Atoms; a != nil {
			return errors.Join(differ("changed atoms", a.Values, b.Values), differ("changed the bias", a.Bias, b.Bias))
		}
		return nil
	})
}

// measured is a model for the laws of metrics, in plain loops: h = f(x V + c) times a factor for each unit, y = leaky(h W +
// b) with the atoms W divided by these factors, and heads x U.
type measured struct {
	name    string
	shape   []int
	units   int
	encoder []float32 // pixels x units
	offset  []float32 // units
	factors []float32 // of the units; nil: 1 each
	atoms   *metrics.Atoms
	heads   map[string][]float32 // pixels x classes
	sigmoid bool                 // f is the sigmoid, else relu
	opaque  bool                 // the model does not return its atoms
	encodes bool                 // there is no decoder
	sample  metrics.Sample
}

// classesOfHeads is the number of classes of the samples.
const classesOfHeads = 3

// newMeasured returns a model of images of that shape, and n images with labels, some of them unknown.
func newMeasured(name string, shape []int, units, n int, edit func(*measured)) *measured {
	r, pixels := source(), volume.Of(shape)
	m := &measured{name: name, shape: shape, units: units, encoder: normal(r, pixels*units, 1), offset: normal(r, units, 1)}
	m.atoms = &metrics.Atoms{Shape: shape, Count: units, Values: normal(r, units*pixels, 1), Bias: normal(r, pixels, 1)}
	m.heads = map[string][]float32{"class": normal(r, pixels*classesOfHeads, 1)}
	m.sample = metrics.Sample{Images: make([]float32, n*pixels), Labels: make([]int, n), Seed: 3}
	for i := range m.sample.Images {
		m.sample.Images[i] = r.Float32()
	}
	for i := range m.sample.Labels {
		m.sample.Labels[i] = i % classesOfHeads
		if i%11 == 5 {
			m.sample.Labels[i] = -1
		}
	}
	if edit != nil {
		edit(m)
	}
	return m
}

// measuredModels are models of every kind.
func measuredModels() []*measured {
	return []*measured{
		newMeasured("a dense model", []int{6, 5}, 7, 260, nil),
		newMeasured("codes in [0,1]", []int{6, 5}, 7, 260, func(m *measured) { m.sigmoid = true }),
		newMeasured("images with channels", []int{4, 3, 2}, 5, 260, nil),
		newMeasured("vectors", []int{12}, 5, 260, nil),
		newMeasured("atoms without a bias", []int{5, 4}, 4, 260, func(m *measured) { m.atoms.Bias = nil }),
		newMeasured("no atoms", []int{5, 4}, 4, 260, func(m *measured) { m.opaque = true }),
		newMeasured("no decoder", []int{5, 4}, 4, 260, func(m *measured) { m.encodes, m.opaque = true, true }),
		newMeasured("no labels", []int{5, 4}, 4, 260, func(m *measured) { m.sample.Labels = nil }),
		newMeasured("unknown labels", []int{5, 4}, 4, 20, func(m *measured) {
			for i := range m.sample.Labels {
				m.sample.Labels[i] = -1
			}
		}),
		newMeasured("no heads", []int{5, 4}, 4, 260, func(m *measured) { m.heads = nil }),
		newMeasured("two heads", []int{5, 4}, 4, 260, func(m *measured) { m.heads["other"] = m.encoder[:20*3] }),
		newMeasured("one image", []int{5, 4}, 4, 1, nil),
		newMeasured("sums of disjoint parts", []int{6, 5}, 7, 260, sumOfParts),
		newMeasured("black images and dead units", []int{5, 4}, 4, 260, func(m *measured) {
			clear(m.sample.Images)
			for j := range m.offset {
				m.offset[j] = -1
			}
		}),
	}
}

// sumOfParts makes the images sums of disjoint non-negative atoms with decreasing weights, and makes the encoder compute these
// weights.
func sumOfParts(m *measured) {
	r, pixels := source(), volume.Of(m.shape)
	m.atoms.Bias = nil
	m.sample.Parts = [][]float32{make([]float32, pixels), make([]float32, pixels)}
	for p := range pixels {
		m.sample.Parts[p%2][p] = 1
	}
	clear(m.atoms.Values)
	clear(m.encoder)
	clear(m.offset)
	clear(m.sample.Images)
	for p := range pixels {
		j := p % m.units
		m.atoms.Values[j*pixels+p] = 1
		m.encoder[p*m.units+j] = 1 / float32((pixels-j+m.units-1)/m.units) // the mean of the atom's pixels
	}
	for i := range len(m.sample.Images) / pixels {
		image := m.sample.Images[i*pixels : (i+1)*pixels]
		weights := make([]float64, m.units)
		for j := range weights {
			if r.IntN(2) == 0 {
				weights[j] = math.Pow(0.3, float64(j)) * r.Float64()
			}
		}
		for p := range image {
			image[p] = float32(weights[p%m.units]) + 0.02*r.Float32()
		}
	}
}

// Shape implements [metrics.Coder].
func (m *measured) Shape() []int { return slices.Clone(m.shape) }

// Units implements [metrics.Coder].
func (m *measured) Units() int { return m.units }

// Encode implements [metrics.Coder].
func (m *measured) Encode(images []float32) ([]float32, error) {
	h := product(images, m.encoder, volume.Of(m.shape), m.units)
	for i, v := range h {
		if v += m.offset[i%m.units]; m.sigmoid {
			v = float32(1 / (1 + math.Exp(-float64(v))))
		}
		if h[i] = max(v, 0); m.factors != nil {
			h[i] *= m.factors[i%m.units]
		}
	}
	return h, nil
}

// Decode implements [metrics.Coder].
func (m *measured) Decode(codes []float32) ([]float32, error) {
	if m.encodes {
		return nil, errors.New("the model has no decoder")
	}
	pixels := volume.Of(m.shape)
	y := product(codes, m.atoms.Values, m.units, pixels)
	for i := range y {
		if m.atoms.Bias != nil {
			y[i] += m.atoms.Bias[i%pixels]
		}
		if y[i] < 0 {
			y[i] *= 0.1
		}
	}
	return y, nil
}

// Atoms implements [metrics.Coder].
func (m *measured) Atoms() *metrics.Atoms {
	if m.opaque {
		return nil
	}
	return &metrics.Atoms{Shape: m.shape, Count: m.units, Values: slices.Clone(m.atoms.Values), Bias: slices.Clone(m.atoms.Bias)}
}

// WithAtoms implements [metrics.Coder].
func (m *measured) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	other := *m
	other.atoms = a
	return &other, nil
}

// LastWeight implements [metrics.Weighted].
func (m *measured) LastWeight() []float32 {
	if m.encodes {
		return nil
	}
	return m.atoms.Values
}

// Values implements [metrics.ValueCoder].
func (m *measured) Values() []string {
	names := append([]string{"code"}, m.ClassHeads()...)
	if !m.encodes {
		names = append(names, metrics.OutputName)
	}
	return names
}

// ClassHeads implements [metrics.ValueCoder].
func (m *measured) ClassHeads() []string {
	var names []string
	for _, name := range []string{"class", "other"} {
		if m.heads[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// Value implements [metrics.ValueCoder].
func (m *measured) Value(name string, images []float32) ([]float32, error) {
	pixels := volume.Of(m.shape)
	return product(images, m.heads[name], pixels, len(m.heads[name])/pixels), nil
}

// MeasuresObjective implements [metrics.ObjectiveCoder].
func (m *measured) MeasuresObjective(bool) bool { return !m.encodes }

// Objective implements [metrics.ObjectiveCoder]: the mean square of the images' values.
func (m *measured) Objective(images []float32, _ []int) (sum float64, _ error) {
	for _, v := range images {
		sum += float64(v) * float64(v) / float64(len(images))
	}
	return sum, nil
}

// scaled returns the same model with the code of every unit multiplied by a factor from 0.01 to 100, and its atom divided by
// it: outputs differ by rounding only.
func (m *measured) scaled() *measured {
	other := *m
	atoms := *m.atoms
	atoms.Values = slices.Clone(atoms.Values)
	other.atoms, other.factors = &atoms, make([]float32, m.units)
	pixels := volume.Of(m.shape)
	for j := range other.factors {
		other.factors[j] = float32(math.Pow(10, 2-4*float64(j*5%7)/6)) // 100, 0.046, 2.15 ...
		for p := range pixels {
			atoms.Values[j*pixels+p] /= other.factors[j]
		}
	}
	return &other
}

// product is the matrix product of rows (n x inner) with w (inner x outer).
func product(rows, w []float32, inner, outer int) []float32 {
	out := make([]float32, len(rows)/inner*outer)
	for i := range out {
		for k := range inner {
			out[i] += rows[i/outer*inner+k] * w[k*outer+i%outer]
		}
	}
	return out
}
