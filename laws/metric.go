package laws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"tessera/attack"
	"tessera/data"
	"tessera/internal/boltzmann"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/metrics"
)

var _ metrics.ValueCoder = (*measured)(nil)

// Metric contains the laws of metrics, tested on models of every kind.
var Metric = MetricOf()

// MetricOf returns the laws of [Metric] for metrics that read values with the given names by [metrics.Batch.Value]. Every model
// has these values, of three numbers each.
func MetricOf(values ...string) Kit[metrics.Metric] {
	models := func() []*measured { return measuredModels(values) }
	return inTrials(func(fresh func() metrics.Metric, try func(t metricTrial)) error {
		return eachMeasured(models(), fresh, try)
	}, metricLaws).and(once([]law[func() metrics.Metric]{
		{"describes itself", described},
		{"gives a number of some model", func(fresh func() metrics.Metric) error { return givesSome(models(), fresh) }},
	}))
}

var metricLaws = []law[metricTrial]{
	{"gives finite numbers or the reason why there are none", metricTrial.finiteValues},
	{"gives the same numbers again", metricTrial.repeatable},
	{"does not change its inputs", metricTrial.changesNothing},
	{"reads only the inputs that it declares", metricTrial.readsDeclared},
	{"does not depend on how images are cut into batches", metricTrial.cutAnyhow},
	{"does not depend on the order of the images unless it says so", metricTrial.orderless},
	{"does not depend on the scale of units if it says so", metricTrial.scaleless},
}

// metricTrial is a metric with one model.
type metricTrial struct {
	fresh func() metrics.Metric
	metrics.Description
	used metrics.Metric // the same metric in all trials
	*measured

	whole, inOneBatch func() (metrics.Values, error) // the values of a new metric, computed once for all laws
}

func (t metricTrial) String() string { return t.name }

func eachMeasured(models []*measured, fresh func() metrics.Metric, try func(t metricTrial)) error {
	t := metricTrial{fresh: fresh, Description: fresh().Describe(), used: fresh()}
	for _, t.measured = range models {
		on := t.measured
		t.whole = sync.OnceValues(func() (metrics.Values, error) { return evaluated(fresh(), on) })
		t.inOneBatch = sync.OnceValues(func() (metrics.Values, error) {
			in, err := on.inputs(t.Reads)
			if err != nil {
				return nil, err
			}
			return in.measure(fresh(), on.images())
		})
		try(t)
	}
	return nil
}

// tolerance is the maximum difference of two numbers: the sum of a relative and an absolute part.
type tolerance struct{ relative, absolute float64 }

var (
	exactly = tolerance{}
	// sameUpTo is the tolerance for a different order of additions.
	sameUpTo = tolerance{relative: 1e-12}
	// scaleUpTo is the tolerance for scaled units. The sparsity of atoms has a constant in its denominator, and a number that
	// is exactly 0 may differ from 0 after rounding.
	scaleUpTo = tolerance{relative: 1e-5, absolute: 1e-7}
)

// compareValues returns an error if numbers differ by more than a tolerance or have different names.
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
		return errors.New("its Measures or Reads are empty; declare what it measures and what it reads")
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

// evaluated evaluates a metric on a model. It returns no values if the images lack an input of the metric ([*data.Error]).
func evaluated(m metrics.Metric, on *measured) (metrics.Values, error) {
	r, err := metrics.Evaluate(context.Background(), on, on.sample, metrics.Selection{{Metric: m}})
	if err != nil {
		return nil, unlessLacking(err)
	}
	return r.Values, nil
}

// unlessLacking returns nil for the error that the images lack an input of a metric, and other errors unchanged.
func unlessLacking(err error) error {
	if _, ok := errors.AsType[*data.Error](err); ok {
		return nil
	}
	return err
}

func givesSome(models []*measured, fresh func() metrics.Metric) error {
	for _, of := range models {
		values, err := evaluated(fresh(), of)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(values, func(v metrics.Value) bool { return v.Missing == "" }) {
			return nil
		}
	}
	return errors.New("no model gives a number")
}

func (t metricTrial) finiteValues() error {
	values, err := t.whole()
	for _, v := range values {
		one := t.Measures[slices.IndexFunc(t.Measures, func(m metrics.Measure) bool { return strings.HasSuffix(v.Name, m.Name) })]
		switch {
		case v.Missing == "" && one.Count && v.Number != math.Trunc(v.Number):
			return fmt.Errorf("%s counts %v", v.Name, v.Number)
		case v.Missing != "" && t.Reads.Has(metrics.ReadsImages) && !t.Masked && t.sample.Columns[data.ObservedColumn] != nil: // entries are missing
		case v.Missing != "" && !t.Partial && t.gives(t.Reads):
			return fmt.Errorf("%s is not applicable (%s), but the metric is not declared Partial", v.Name, v.Missing)
		}
	}
	return err
}

func (t metricTrial) repeatable() error {
	return errors.Join(t.same("again", t.used, t.measured, exactly), t.same("again", t.used, t.measured, exactly))
}

func (t metricTrial) orderless() error {
	if t.Ordered {
		return nil
	}
	pixels := volume.Of(t.shape)
	shuffled := *t.measured
	shuffled.sample.Images, shuffled.sample.Labels, shuffled.sample.Columns = nil, nil, nil
	for name := range t.sample.Columns {
		if shuffled.sample.Columns == nil {
			shuffled.sample.Columns = map[string][]float32{}
		}
		shuffled.sample.Columns[name] = nil
	}
	for _, i := range source().Perm(t.images()) {
		shuffled.sample.Images = append(shuffled.sample.Images, t.sample.Images[i*pixels:(i+1)*pixels]...)
		for name, rows := range t.sample.Columns {
			size := len(rows) / t.images()
			shuffled.sample.Columns[name] = append(shuffled.sample.Columns[name], rows[i*size:(i+1)*size]...)
		}
		if t.sample.Labels != nil {
			shuffled.sample.Labels = append(shuffled.sample.Labels, t.sample.Labels[i])
		}
	}
	return t.same("in another order", t.fresh(), &shuffled, sameUpTo)
}

func (t metricTrial) scaleless() error {
	if !t.ScaleFree {
		return nil
	}
	return t.same("with scaled units", t.fresh(), t.scaled(), scaleUpTo)
}

// same compares the numbers of a metric and a model with those of a new metric and the trial's model.
func (t metricTrial) same(what string, m metrics.Metric, of *measured, up tolerance) error {
	want, err := t.whole()
	if err != nil {
		return err
	}
	got, err := evaluated(m, of)
	if err != nil {
		return err
	}
	return compareValues(what, got, want, up)
}

// inputs are the inputs of a metric: its subject, and all images in one batch.
type inputs struct {
	reads   metrics.Reads
	heads   []metrics.Head
	subject metrics.Subject
	batch   metrics.Batch

	objectives []float64 // objective of each image; their mean is the objective of a batch
}

// inputs computes the inputs of a metric that reads contains.
func (m *measured) inputs(reads metrics.Reads) (in inputs, err error) {
	in.reads = reads
	in.subject = metrics.Subject{Coder: m, Shape: m.shape, Units: m.units, Images: m.images(), Seed: m.sample.Seed,
		Holed: m.sample.Columns[data.ObservedColumn] != nil}
	in.batch.Columns = m.sample.Columns
	codes, err := m.Encode(m.sample.Images)
	if err != nil {
		return in, err
	}
	if reads.Has(metrics.ReadsAtoms) {
		in.subject.Atoms = m.Atoms()
	}
	if reads.Has(metrics.ReadsParts) {
		in.subject.Parts = m.sample.Parts
	}
	if reads.Has(metrics.ReadsDownstream) {
		in.subject.Downstream = m.sample.Downstream
	}
	if reads.Has(metrics.ReadsWeights) {
		in.subject.Weight = slices.Clone(m.LastWeight())
	}
	if reads.Has(metrics.ReadsImages) {
		in.batch.Images = slices.Clone(m.sample.Images)
	}
	if reads.Has(metrics.ReadsCodes) {
		in.batch.Codes = codes
	}
	if reads.Has(metrics.ReadsLabels) {
		in.batch.Labels = slices.Clone(m.sample.Labels)
	}
	if reads.Has(metrics.ReadsOutputs) {
		if in.batch.Outputs, err = m.Decode(codes); err != nil {
			return in, err
		}
	}
	if reads.Has(metrics.ReadsLogits) {
		in.heads = []metrics.Head{{Name: m.ClassHeads()[0], Labels: in.batch.Labels}}
		in.batch.Logits, err = m.Value(in.heads[0].Name, m.sample.Images)
	}
	if reads.Has(metrics.ReadsTargets) {
		in.heads = append(in.heads, metrics.Head{Name: m.Targets()[0].Value, Target: &m.Targets()[0]})
		in.batch.Logits, err = m.Value(m.Targets()[0].Value, m.sample.Images)
	}
	if reads.Has(metrics.ReadsObjective) {
		pixels := volume.Of(m.shape)
		for i := range m.images() {
			one, _ := m.Objective(&metrics.Batch{Images: m.sample.Images[i*pixels : (i+1)*pixels]}) // has no errors
			in.objectives = append(in.objectives, one)
		}
	}
	return in, err
}

// measure evaluates a metric in batches of the given size.
func (in inputs) measure(m metrics.Metric, size int) (values metrics.Values, err error) {
	meters, err := metrics.Start(in.subject, in.reads, in.heads, metrics.Selection{{Metric: m}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, meters.Close()) }()
	for from, n := 0, in.subject.Images; from < n; from += size {
		to := min(from+size, n)
		rows := func(v []float32) []float32 { width := len(v) / n; return v[from*width : to*width : to*width] }
		b := metrics.Batch{Images: rows(in.batch.Images), Codes: rows(in.batch.Codes), Outputs: rows(in.batch.Outputs)}
		for name, column := range in.batch.Columns {
			if b.Columns == nil {
				b.Columns = map[string][]float32{}
			}
			b.Columns[name] = rows(column)
		}
		if in.batch.Labels != nil {
			b.Labels = in.batch.Labels[from:to:to]
		}
		if in.objectives != nil {
			for _, one := range in.objectives[from:to] {
				b.Objective += one / float64(to-from)
			}
		}
		var heads []metrics.Head
		for _, head := range in.heads {
			heads = append(heads, metrics.Head{Name: head.Name, Target: head.Target, Labels: b.Labels, Logits: rows(in.batch.Logits)})
		}
		if err := meters.Add(b, heads); err != nil {
			return nil, err
		}
	}
	values, err = meters.Values(context.Background())
	return values, unlessLacking(err)
}

func (t metricTrial) cutAnyhow() error {
	return t.withInputs(t.Reads, func(in inputs) error {
		want, err := t.inOneBatch()
		for _, size := range []int{1, 7, 100} {
			if err != nil {
				return err
			}
			var got metrics.Values
			if got, err = in.measure(t.fresh(), size); err == nil {
				err = compareValues(fmt.Sprintf("in batches of %d", size), got, want, sameUpTo)
			}
		}
		return err
	})
}

// readsDeclared compares the values of a metric with only its declared inputs with those of a metric with all inputs.
func (t metricTrial) readsDeclared() error {
	var all metrics.Reads
	for one := metrics.ReadsImages; one <= metrics.ReadsPair; one <<= 1 {
		if t.gives(one) {
			all |= one
		}
	}
	return t.withInputs(all, func(in inputs) error {
		want, err := in.measure(t.fresh(), t.images())
		got, failed := t.inOneBatch()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		return compareValues("with the declared inputs only", got, want, exactly)
	})
}

func (t metricTrial) changesNothing() error {
	return t.withInputs(t.Reads, func(in inputs) error {
		before, err := t.inputs(t.Reads)
		if err == nil {
			_, err = in.measure(t.fresh(), t.images())
		}
		if err != nil {
			return err
		}
		for _, v := range []struct {
			what        string
			now, before []float32
		}{
			{"images", in.batch.Images, before.batch.Images}, {"codes", in.batch.Codes, before.batch.Codes},
			{"outputs", in.batch.Outputs, before.batch.Outputs}, {"logits", in.batch.Logits, before.batch.Logits},
			{"the weight", in.subject.Weight, before.subject.Weight},
		} {
			if err := differ("changed "+v.what, v.now, v.before); err != nil {
				return err
			}
		}
		if !slices.Equal(in.batch.Labels, before.batch.Labels) {
			return errors.New("changed labels")
		}
		if a, b := in.subject.Atoms, before.subject.Atoms; a != nil {
			return errors.Join(differ("changed atoms", a.Values, b.Values), differ("changed the bias", a.Bias, b.Bias))
		}
		return nil
	})
}

// withInputs calls f with inputs of the model. It does nothing if the model lacks inputs that the metric reads.
func (t metricTrial) withInputs(reads metrics.Reads, f func(in inputs) error) error {
	if !t.gives(t.Reads) {
		return nil
	}
	in, err := t.inputs(reads)
	if err != nil {
		return err
	}
	return f(in)
}

// measured is a model for the laws of metrics, in plain loops: h = f(x V + c) times a factor for each unit, y = leaky(h W +
// b) with the atoms W divided by these factors, and heads x U.
type measured struct {
	name    string
	shape   []int
	units   int
	encoder []float32 // pixels x units
	offset  []float32 // units
	factors []float32 // factors of the units; nil means 1
	atoms   *metrics.Atoms
	heads   map[string][]float32 // pixels x classes
	named   map[string][]float32 // further values: pixels x numbers
	sigmoid bool                 // f is the sigmoid; otherwise f is relu
	opaque  bool                 // the model does not return its atoms
	encodes bool                 // the model has no decoder
	sample  metrics.Sample
}

// classesOfHeads is the number of classes of the samples.
const classesOfHeads = 3

// newMeasured returns a model with n images of the given shape, and with labels, some of which are unknown. edit may change
// the model.
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

// manyImages is the number of images of most samples: more than the largest batch of the laws.
const manyImages = 110

// measuredModels returns models of every kind, which have the named values.
func measuredModels(values []string) []*measured {
	all := []*measured{
		newMeasured("a dense model", []int{6, 5}, 7, manyImages, nil),
		newMeasured("codes in [0,1]", []int{6, 5}, 7, manyImages, func(m *measured) { m.sigmoid = true }),
		newMeasured("images with channels", []int{4, 3, 2}, 5, manyImages, nil),
		newMeasured("vectors", []int{12}, 5, manyImages, nil),
		newMeasured("atoms without a bias", []int{5, 4}, 4, manyImages, func(m *measured) { m.atoms.Bias = nil }),
		newMeasured("no atoms", []int{5, 4}, 4, manyImages, func(m *measured) { m.opaque = true }),
		newMeasured("no decoder", []int{5, 4}, 4, manyImages, func(m *measured) { m.encodes, m.opaque = true, true }),
		newMeasured("no labels", []int{5, 4}, 4, manyImages, func(m *measured) { m.sample.Labels = nil }),
		newMeasured("unknown labels", []int{5, 4}, 4, 20, func(m *measured) {
			for i := range m.sample.Labels {
				m.sample.Labels[i] = -1
			}
		}),
		newMeasured("values of a classifier", []int{5}, 4, manyImages, func(m *measured) {
			m.sample.Downstream = func(samples []float32, do func(int, []float32) error) (err error) {
				for i := range len(samples) / 5 {
					of, logits := samples[i*5:][:5], make([]float32, classesOfHeads)
					for class := range logits {
						logits[class] = of[class] - of[4]*float32(class)
					}
					err = cmp.Or(err, do(i, logits))
				}
				return err
			}
			_ = m.sample.Downstream(m.sample.Images, func(i int, logits []float32) error {
				if m.sample.Labels[i] >= 0 { // right for most samples, so that the classifier is better than a constant
					m.sample.Labels[i] = slices.Index(logits, slices.Max(logits))
				}
				return nil
			})
		}),
		newMeasured("no heads", []int{5, 4}, 4, manyImages, func(m *measured) { m.heads = nil }),
		newMeasured("two heads", []int{5, 4}, 4, manyImages, func(m *measured) { m.heads["other"] = m.encoder[:20*3] }),
		newMeasured("groups", []int{5, 4}, 4, manyImages, func(m *measured) {
			groups := make([]float32, manyImages)
			for i := range groups {
				groups[i] = float32(i%4 - 1) // -1 is unknown
			}
			m.sample.Columns = map[string][]float32{"group": groups}
		}),
		newMeasured("a head of numbers", []int{5, 4}, 4, manyImages, func(m *measured) {
			m.sample.Columns = map[string][]float32{targetColumn: normal(rand.New(rand.NewPCG(8, 1)), manyImages*classesOfHeads, 1)}
		}),
		newMeasured("sequences of tokens", []int{8}, 4, manyImages, func(m *measured) {
			for i, v := range m.sample.Images {
				m.sample.Images[i] = float32(int(v * classesOfHeads))
			}
			m.heads[nextToken] = normal(source(), 8*8*classesOfHeads, 1)
		}),
		newMeasured("one image", []int{5, 4}, 4, 1, nil),
		newMeasured("sums of disjoint parts", []int{6, 5}, 7, manyImages, sumOfParts),
		newMeasured("missing and hidden entries", []int{5, 4}, 4, manyImages, func(m *measured) {
			complete := slices.Clone(m.sample.Images)
			observed, held := make([]float32, len(complete)), make([]float32, len(complete))
			for i := range complete {
				switch i % 7 {
				case 2:
					held[i], m.sample.Images[i] = 1, 0
				case 4:
					complete[i], m.sample.Images[i] = 0, 0
				default:
					observed[i] = 1
				}
			}
			m.sample.Columns = map[string][]float32{data.ObservedColumn: observed, data.HeldOutColumn: held, data.CompleteColumn: complete}
		}),
		newMeasured("black images and dead units", []int{5, 4}, 4, manyImages, func(m *measured) {
			clear(m.sample.Images)
			for j := range m.offset {
				m.offset[j] = -1
			}
		}),
	}
	for _, m := range all {
		m.named = map[string][]float32{}
		for i, name := range values {
			m.named[name] = normal(rand.New(rand.NewPCG(7, uint64(i))), volume.Of(m.shape)*classesOfHeads, 1)
		}
	}
	return all
}

// sumOfParts changes a model: its images become sums of disjoint non-negative atoms with decreasing weights, and its encoder
// computes these weights.
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

func (m *measured) images() int { return len(m.sample.Images) / volume.Of(m.shape) }

// gives reports whether the model provides the inputs that a metric reads.
func (m *measured) gives(r metrics.Reads) bool {
	return !(r.Has(metrics.ReadsOutputs) && m.encodes || r.Has(metrics.ReadsObjective) && m.encodes || r.Has(metrics.ReadsTokens) && m.Language() == nil || r.Has(metrics.ReadsPair) && m.Pair() == nil || r.Has(metrics.ReadsAtoms) && m.opaque || r.Has(metrics.ReadsWeights) && m.encodes ||
		r.Has(metrics.ReadsLabels) && m.sample.Labels == nil || r.Has(metrics.ReadsLogits) && len(m.heads) == 0 || r.Has(metrics.ReadsTargets) && len(m.Targets()) == 0 ||
		r.Has(metrics.ReadsPictures) && len(m.shape) < 2 || r.Has(metrics.ReadsParts) && m.sample.Parts == nil || r.Has(metrics.ReadsDownstream) && m.sample.Downstream == nil)
}

func (m *measured) Shape() []int { return slices.Clone(m.shape) }
func (m *measured) Units() int   { return m.units }

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

func (m *measured) Atoms() *metrics.Atoms {
	if m.opaque {
		return nil
	}
	return &metrics.Atoms{Shape: m.shape, Count: m.units, Values: slices.Clone(m.atoms.Values), Bias: slices.Clone(m.atoms.Bias)}
}

func (m *measured) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	other := *m
	other.atoms = a
	return &other, nil
}

// WeightNorm is the length of the weights, which are those of the atoms.
func (m *measured) WeightNorm() float64 {
	sum := 0.0
	for _, v := range m.atoms.Values {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

func (m *measured) LastWeight() []float32 {
	if m.encodes {
		return nil
	}
	return m.atoms.Values
}

func (m *measured) Values() []string {
	names := slices.Concat([]string{"code"}, m.ClassHeads(), slices.Sorted(maps.Keys(m.named)))
	if !m.encodes {
		names = append(names, metrics.OutputName)
	}
	return names
}

func (m *measured) ClassHeads() []string {
	return lists.Only([]string{"class", "other"}, func(name string) bool { return m.heads[name] != nil })
}

func (m *measured) Draw(_ context.Context, n int, seed uint64) ([]float32, error) {
	return normal(rand.New(rand.NewPCG(seed, 3)), n*volume.Of(m.shape), 1), nil
}

// targetColumn is the column of numbers that a head is compared with.
const targetColumn = "target"

func (m *measured) Targets() []metrics.Target {
	if m.sample.Columns[targetColumn] == nil {
		return nil
	}
	return []metrics.Target{{Value: "class", Column: targetColumn, Size: classesOfHeads}}
}

// nextToken is the head that predicts tokens.
const nextToken = "next"

func (m *measured) Language() *metrics.Language {
	if m.heads[nextToken] == nil {
		return nil
	}
	return &metrics.Language{Value: nextToken, Shift: 1, Text: true, Bytes: func(token int) int { return token }}
}

func (m *measured) Pair() *metrics.Pair {
	if m.heads["other"] == nil {
		return nil
	}
	return &metrics.Pair{First: "class", Second: "other"}
}

func (m *measured) Value(name string, images []float32) ([]float32, error) {
	pixels, w := volume.Of(m.shape), m.heads[name]
	if w == nil {
		w = m.named[name]
	}
	if w == nil {
		return nil, fmt.Errorf("the model has no value %q", name)
	}
	return product(images, w, pixels, len(w)/pixels), nil
}

// LogLikelihood implements [metrics.Density]: a standard normal distribution.
func (m *measured) LogLikelihood(images []float32) ([]float64, error) {
	pixels := volume.Of(m.shape)
	densities := make([]float64, len(images)/pixels)
	for i, v := range images {
		densities[i/pixels] -= (math.Log(2*math.Pi) + float64(v)*float64(v)) / 2
	}
	return densities, nil
}

func (m *measured) Freedom() int { return 2 }

// Posterior implements [metrics.Latent], with one code: the mean of the image, from which q = N(mean, 1) draws z. The prior is
// N(0, 1), and the likelihood is N(z, 1) in every pixel.
func (m *measured) Posterior(b *metrics.Batch, samples int, _ float64, seed uint64, first int) (*metrics.Posterior, error) {
	p, pixels := &metrics.Posterior{}, volume.Of(m.shape)
	for i := range len(b.Images) / pixels {
		image, mean := b.Images[i*pixels:(i+1)*pixels], 0.0
		for _, v := range image {
			mean += float64(v) / float64(pixels)
		}
		p.Divergence = append(p.Divergence, mean*mean/2)
		r := rand.New(rand.NewPCG(seed, uint64(first+i)))
		for range samples {
			e := r.NormFloat64()
			z, likelihood := mean+e, 0.0
			for _, v := range image {
				d := float64(v) - z
				likelihood -= (math.Log(2*math.Pi) + d*d) / 2
			}
			p.Likelihood, p.Ratio = append(p.Likelihood, likelihood), append(p.Ratio, (e*e-z*z)/2)
		}
	}
	return p, nil
}

// Boltzmann implements [metrics.Boltzmann]: a machine with two hidden units.
func (m *measured) Boltzmann() (*boltzmann.Machine, error) {
	r, pixels := source(), volume.Of(m.shape)
	return &boltzmann.Machine{Weight: normal(r, 2*pixels, 0.5), Bias: normal(r, 2, 0.5), VisibleBias: normal(r, pixels, 0.5)}, nil
}

// DeepBelief implements [metrics.DeepBelief]: that machine below another one with three hidden units.
func (m *measured) DeepBelief() ([]*boltzmann.Machine, error) {
	first, err := m.Boltzmann()
	r := source()
	return []*boltzmann.Machine{first, {Weight: normal(r, 6, 0.5), Bias: normal(r, 3, 0.5), VisibleBias: normal(r, 2, 0.5)}}, err
}

// brightness is the index of a code book.
const brightness = "index"

func (m *measured) CodeBooks() []metrics.CodeBook {
	return []metrics.CodeBook{{Index: brightness, Entries: 2}}
}

// ValueOf implements [metrics.ColumnCoder]: an index tells bright pixels from dark ones, other values do not depend on columns.
func (m *measured) ValueOf(name string, columns map[string][]float32) ([]float32, error) {
	images := columns[data.ImagesColumn]
	if name != brightness {
		return m.Value(name, images)
	}
	indices := make([]float32, len(images))
	for i, v := range images {
		if v > 0.5 {
			indices[i] = 1
		}
	}
	return indices, nil
}

func (*measured) HasViews() bool { return true }

// View implements [metrics.Viewer]: noise is added to the images.
func (*measured) View(_ int, images []float32, r *rand.Rand) ([]float32, error) {
	view := slices.Clone(images)
	for i := range view {
		view[i] += 0.1 * r.Float32()
	}
	return view, nil
}

func (m *measured) Attacked(head string, _ *data.Scaling) (attack.WhiteBox, error) {
	return linearHead{m, head}, nil
}

// linearHead is a head with the logits x U. The gradient of its cross entropy with respect to x is (p - targets) U'.
type linearHead struct {
	*measured
	name string
}

func (h linearHead) Classes() int                               { return len(h.heads[h.name]) / volume.Of(h.shape) }
func (h linearHead) Logits(images []float32) ([]float32, error) { return h.Value(h.name, images) }

func (h linearHead) Gradient(_ attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	logits, err = h.Logits(images)
	p, u, classes, pixels := attack.Softmax(logits, h.Classes()), h.heads[h.name], h.Classes(), volume.Of(h.shape)
	gradient = make([]float32, len(images))
	for i := range gradient {
		for k := range classes {
			at := i/pixels*classes + k
			gradient[i] += (p[at] - targets[at]) * u[i%pixels*classes+k]
		}
	}
	return gradient, logits, err
}

func (m *measured) MeasuresObjective(func(string) bool) bool { return !m.encodes }

// Objective implements [metrics.ObjectiveCoder]: the mean square of the images' values.
func (m *measured) Objective(b *metrics.Batch) (sum float64, _ error) {
	for _, v := range b.Images {
		sum += float64(v) * float64(v) / float64(len(b.Images))
	}
	return sum, nil
}

// scaled returns the model with the code of every unit multiplied by a factor from 0.01 to 100, and its atom divided by this
// factor. The outputs change only by rounding.
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

// product returns the matrix product of rows (n x inner) with w (inner x outer).
func product(rows, w []float32, inner, outer int) []float32 {
	out := make([]float32, len(rows)/inner*outer)
	for i := range out {
		for k := range inner {
			out[i] += rows[i/outer*inner+k] * w[k*outer+i%outer]
		}
	}
	return out
}
