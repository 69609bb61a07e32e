package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/panics"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// Sample contains the images on which a coder is evaluated, with labels and other data.
type Sample struct {
	Images []float32 // n x pixels, row-major
	Labels []int     // one class per image, negative if unknown; nil if all are unknown
	Seed   uint64    // seed of metrics with random draws

	// Columns are the columns other than images by name, row-major with one row per image: targets, masks, groups, labels.
	Columns map[string][]float32

	// Names maps columns of classes, including labels, to their class names. Columns without class names are absent.
	Names map[string][]string

	// Parts are the true parts of the images, one image each; nil if unknown.
	Parts [][]float32

	// Downstream calls do with the logits of classes that follow from samples before scaling, if Images are values inside of a network that
	// tells classes; otherwise nil.
	Downstream func(samples []float32, do func(i int, logits []float32) error) error

	// Known contains settings of the model's losses that metrics compare with: "kl.target" is the target of the first KL
	// term.
	Known map[string]float64

	Scaling  *data.Scaling // scaling of Images; nil for none
	Unscaled *data.Images  // the same images before scaling; nil if they are not known, and Images may have been clipped
	Range    [2]float32    // range of the fitted images before scaling; zeros mean 0 and 1
}

// Evaluate computes the selected metrics of a coder on a sample; an empty selection means [Default]. Every image is encoded
// and decoded once, in batches. Sums are in float64 and in a fixed order: the results are bitwise equal for any number of
// processors. Evaluate fails if the coder fails, if ctx is done, if a value is NaN or infinite, or, with a [*data.Error], if
// a metric that is not optional lacks labels.
func Evaluate(ctx context.Context, coder Coder, s Sample, chosen Selection) (r *Result, err error) {
	defer data.Unread(&err)
	if ctx == nil {
		return nil, errors.New("metrics: no context: give context.Background()")
	}
	if coder == nil {
		return nil, errors.New("metrics: no coder to evaluate")
	}
	if chosen == nil {
		chosen = Default()
	}
	n, err := imageCount(coder, s.Images)
	if err != nil {
		return nil, err
	}
	if s.Labels != nil && len(s.Labels) != n {
		return nil, fmt.Errorf("metrics: got %d labels, want one for each of %d samples", len(s.Labels), n)
	}
	for name, rows := range s.Columns {
		if len(rows) == 0 || len(rows)%n != 0 {
			return nil, fmt.Errorf("metrics: got %d values of the column %q, want as many of each of %d samples", len(rows), name, n)
		}
	}
	subject := Subject{Coder: coder, Shape: coder.Shape(), Units: coder.Units(), Images: n, Seed: s.Seed, Known: s.Known, Names: s.Names, Parts: s.Parts, Downstream: s.Downstream,
		Atoms: coder.Atoms(), Weight: LastWeight(coder), Holed: s.Columns[data.ObservedColumn] != nil, Scaling: s.Scaling, Unscaled: s.Unscaled, Range: s.Range}
	if subject.Atoms != nil {
		if err := subject.Atoms.check(); err != nil {
			return nil, err
		}
	}
	heads := append(classHeads(coder, &s), targetHeads(coder, &s)...)
	e := evaluation{coder: coder, sample: s, heads: heads, pixels: len(s.Images) / n}
	if e.meters, err = Start(subject, e.has(subject), heads, chosen); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.meters.Close()) }()
	if err := e.measure(ctx, n); err != nil {
		return nil, err
	}
	values, err := e.meters.Values(ctx)
	if err != nil {
		return nil, err
	}
	if err := finite(values); err != nil {
		return nil, err
	}
	return &Result{Images: n, Vectors: len(coder.Shape()) == 1, Values: values, Tables: e.meters.tables(), given: e.meters.given()}, nil
}

// evaluation is the state of one call of Evaluate.
type evaluation struct {
	coder  Coder
	sample Sample
	pixels int
	heads  []Head // heads with one logit per class
	meters *Meters
}

// has returns the inputs that the model and the sample provide.
func (e *evaluation) has(s Subject) Reads {
	has := ReadsImages | ReadsCodes
	for part, there := range map[Reads]bool{
		ReadsOutputs: hasOutput(e.coder, e.sample.Columns), ReadsAtoms: s.Atoms != nil && decodes(e.coder), ReadsWeights: s.Weight != nil, ReadsEncoder: isNormed(e.coder),
		ReadsLabels: e.sample.Labels != nil, ReadsLogits: slices.ContainsFunc(e.heads, ofClasses), ReadsTargets: slices.ContainsFunc(e.heads, ofNumbers), ReadsPictures: len(s.Shape) > 1, ReadsParts: len(e.sample.Parts) > 0, ReadsDownstream: e.sample.Downstream != nil,
		ReadsObjective: measuresObjective(e.coder, e.sample), ReadsTokens: languageOf(e.coder) != nil, ReadsPair: pairOf(e.coder) != nil,
	} {
		if there {
			has |= part
		}
	}
	return has
}

// measure passes every batch to the meters, unless none of them reads batches.
func (e *evaluation) measure(ctx context.Context, n int) error {
	if e.meters.Reads()&(ReadsImages|ReadsCodes|ReadsOutputs|ReadsLabels|ReadsLogits|ReadsTargets) == 0 {
		return nil
	}
	for from, to := range batches(n, e.pixels) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.batch(from, to); err != nil {
			return err
		}
	}
	return nil
}

// batch computes the inputs that the meters read for a range of images, and passes them to the meters.
func (e *evaluation) batch(from, to int) (err error) {
	b, reads := Batch{Images: e.sample.Images[from*e.pixels : to*e.pixels]}, e.meters.Reads()
	if e.sample.Labels != nil {
		b.Labels = e.sample.Labels[from:to]
	}
	n := len(e.sample.Images) / e.pixels
	for name, rows := range e.sample.Columns {
		if b.Columns == nil {
			b.Columns = map[string][]float32{}
		}
		size := len(rows) / n
		b.Columns[name] = rows[from*size : to*size]
	}
	b.coder = e.coder
	if reads&(ReadsCodes|ReadsOutputs) != 0 {
		if b.Codes, err = b.codes(); err != nil {
			return err
		}
	}
	if reads.Has(ReadsOutputs) {
		if b.Outputs, err = b.outputs(); err != nil {
			return err
		}
	}
	if reads.Has(ReadsObjective) {
		if b.Objective, err = e.coder.(ObjectiveCoder).Objective(&b); err != nil {
			return fmt.Errorf("metrics: loss: %w", err)
		}
	}
	var heads []Head
	if reads&(ReadsLogits|ReadsTargets) != 0 {
		for _, h := range e.heads {
			one := Head{Name: h.Name, Target: h.Target}
			if h.Labels != nil {
				one.Labels = h.Labels[from:to]
			}
			if one.Logits, err = headValue(&b, h.Name, to-from); err != nil {
				return err
			}
			heads = append(heads, one)
		}
	}
	return e.meters.Add(b, heads)
}

// codes encodes the images of the batch, together with other columns if the code depends on them.
func (b *Batch) codes() ([]float32, error) {
	if readsColumns(b.coder, CodeName, nil) {
		return headValue(b, CodeName, len(b.Images)/volume.Of(b.coder.Shape()))
	}
	return encode(b.coder, b.given())
}

func (b *Batch) outputs() ([]float32, error) {
	if !decodes(b.coder) && readsColumns(b.coder, OutputName, nil) {
		values, err := b.Value(OutputName)
		return checked(OutputName, values, len(b.Images), err)
	}
	return outputs(b.coder, b.given(), b.Codes)
}

// NotFinite is the error for a metric that is NaN or infinite, for example after a diverged training.
type NotFinite struct {
	Metric string
	Number float64
}

func (e *NotFinite) Error() string {
	return fmt.Sprintf("metrics: %s is %g: the coder's codes, samples or atoms are not finite; train the model again with other settings or samples", e.Metric, e.Number)
}

// finite returns an error for the first number that is NaN or infinite: JSON cannot represent such numbers, and they cannot
// be compared.
func finite(values Values) error {
	for _, v := range values {
		if v.Missing == "" && (math.IsNaN(v.Number) || math.IsInf(v.Number, 0)) {
			return &NotFinite{Metric: v.Name, Number: v.Number}
		}
	}
	return nil
}

// Meters computes several metrics of one model together. They share the codes and the reconstructions of each batch.
type Meters struct {
	coder   Coder // of the values that metrics read by name
	reads   Reads // union over all meters
	running []running
}

// Head is a head with one logit per class, and the classes of the samples; or, with a Target, a value that is compared with a column of
// numbers.
type Head struct {
	Name    string
	Labels  []int     // the class of each sample, negative if unknown; nil if all are unknown
	Classes []string  // names of the classes; nil if unknown
	Target  *Target   // nil for a head of classes
	Logits  []float32 // one row per sample; not read by [Start]
}

func ofClasses(h Head) bool { return h.Target == nil }
func ofNumbers(h Head) bool { return h.Target != nil }

// running is a selected metric during an evaluation.
type running struct {
	choice  Choice
	meter   Meter  // meter of the metric; nil if the metric is not applicable
	missing string // why the metric is not applicable
	prefix  string // prefix of the names of its values
	head    Head   // the head whose logits it reads; its name is "" if it reads none
}

// Start starts the meters of the selected metrics for one model. has lists the inputs that the batches and the subject will
// provide. A metric that reads other inputs is not applicable; if it lacks labels and is not optional, Start returns a
// [*data.Error]. A metric that reads logits is started once for each head; if it also reads labels, only for heads with known
// classes.
func Start(s Subject, has Reads, heads []Head, chosen Selection) (*Meters, error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := chosen.Check(); err != nil {
		return nil, err
	}
	if has.Has(ReadsAtoms) && s.Atoms.otherWeights(s.Units) == "" {
		has |= ReadsSums
	}
	m := &Meters{coder: s.Coder}
	for _, c := range chosen {
		if err := m.start(s, has, heads, c); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

func (m *Meters) start(s Subject, has Reads, heads []Head, c Choice) error {
	d := c.Metric.Describe()
	ofHeads := d.Reads&(ReadsLogits|ReadsTargets) != 0
	other := ofNumbers
	if d.Reads.Has(ReadsTargets) {
		other = ofClasses
	}
	heads = slices.DeleteFunc(slices.Clone(heads), other)
	if d.Reads.Has(ReadsLogits | ReadsLabels) {
		heads = slices.DeleteFunc(heads, func(h Head) bool { return h.Labels == nil })
		if has &^= ReadsLabels; len(heads) > 0 {
			has |= ReadsLabels
		}
	}
	if c.Unless&has != 0 {
		m.running = append(m.running, running{choice: c, missing: "the model has other metrics in its place"})
		return nil
	}
	if lacks := d.Reads &^ has; lacks != 0 {
		if lacks.Has(ReadsLabels) && !lacks.Has(ReadsLogits) && !c.Optional { // without logits the labels are not the cause
			return &data.Error{Problem: fmt.Sprintf("its samples have no labels, but %s needs them", d.Measures[0].Name)}
		}
		m.running = append(m.running, running{choice: c, missing: lacks.missing(&s)})
		return nil
	}
	if s.Holed && d.Reads.Has(ReadsImages) && !d.Masked {
		m.running = append(m.running, running{choice: c, missing: "entries of the samples are missing or hidden"})
		return nil
	}
	of := []Head{{}}
	if ofHeads {
		of = heads
	}
	for _, head := range of {
		run := running{choice: c, head: head}
		if len(of) > 1 {
			run.prefix = head.Name + "."
		}
		subject := s
		subject.Head, subject.Classes, subject.Target = head.Name, head.Classes, head.Target
		var err error
		if err = c.guarded(func() error { run.meter, err = c.Metric.Start(&subject); return err }); err != nil {
			return err
		}
		if run.meter == nil {
			return fmt.Errorf("metrics: %s: Start returned neither a meter nor an error", c.first())
		}
		m.running = append(m.running, run)
	}
	m.reads |= d.Reads
	return nil
}

// guarded calls a method of the metric and turns a panic into an error that names the metric.
func (c Choice) guarded(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("metrics: %s: panicked: %w", c.first(), panics.Of(cause))
		}
	}()
	return do()
}

// Reads returns the inputs that the metrics read from batches and subject. Callers need not compute other inputs.
func (m *Meters) Reads() Reads { return m.reads }

// Add adds the next images. A metric that reads logits gets the logits of its head and, as labels, the classes that this head
// predicts.
func (m *Meters) Add(b Batch, heads []Head) error {
	for _, run := range m.running {
		if run.meter == nil {
			continue
		}
		one := b
		if one.coder == nil {
			one.coder = m.coder
		}
		if run.head.Name != "" {
			i := slices.IndexFunc(heads, func(h Head) bool { return h.Name == run.head.Name && ofNumbers(h) == ofNumbers(run.head) })
			if i < 0 {
				return fmt.Errorf("metrics: %s: no logits of the head %q", run.choice.first(), run.head.Name)
			}
			one.Logits, one.Labels = heads[i].Logits, heads[i].Labels
		}
		if err := run.choice.guarded(func() error { return run.meter.Add(&one) }); err != nil {
			return err
		}
	}
	return nil
}

// Values returns the selected values in the order of the selection. They may be NaN or infinite.
func (m *Meters) Values(ctx context.Context) (Values, error) {
	var all Values
	for _, run := range m.running {
		values, err := run.values(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	return all, nil
}

// values returns the selected values with their full names.
func (run running) values(ctx context.Context) (chosen Values, err error) {
	measures, names := run.choice.Metric.Describe().Measures, run.choice.names()
	all := []Value{NotApplicable(run.missing)}
	if run.meter != nil {
		err = run.choice.guarded(func() error { all, err = run.meter.Values(ctx); return err })
		if lacking, ok := errors.AsType[*data.Error](err); ok && run.choice.Optional { // such as a class with too few images
			all = []Value{NotApplicable(lacking.Problem)}
		} else if err != nil {
			return nil, err
		}
	}
	if len(all) == 1 && all[0].Missing != "" {
		all = slices.Repeat(all, len(measures))
	}
	if len(all) != len(measures) {
		return nil, fmt.Errorf("metrics: %s gives %d values, want %d", measures[0].Name, len(all), len(measures))
	}
	for i, m := range measures {
		if len(chosen) < len(names) && names[len(chosen)] == m.Name {
			v := all[i]
			v.Name, v.optional = run.prefix+m.Name, run.choice.Optional
			chosen = append(chosen, v)
		}
	}
	return chosen, nil
}

// tables returns the tables of the metrics. If there are several heads, the names of the tables contain the head.
func (m *Meters) tables() (all []*Table) {
	for _, run := range m.running {
		if t, ok := run.meter.(Tabled); ok {
			for _, one := range t.Tables() {
				one.Name = run.prefix + one.Name
				all = append(all, one)
			}
		}
	}
	return all
}

// given returns the settings that the user has set, each before the first value of its metric.
func (m *Meters) given() []given {
	var all []given
	for _, run := range m.running {
		all = append(all, run.choice.settings(run.prefix)...)
	}
	return all
}

// settings returns the settings that the user has set, each with the name of the first value of the metric. prefix is the
// prefix of the names of values.
func (c Choice) settings(prefix string) (all []given) {
	for _, g := range c.given {
		g.before = prefix + c.names()[0]
		all = append(all, g)
	}
	return all
}

// Close closes the meters that implement io.Closer.
func (m *Meters) Close() error {
	var all []error
	for _, run := range m.running {
		if c, ok := run.meter.(io.Closer); ok {
			all = append(all, c.Close())
		}
	}
	return errors.Join(all...)
}

// batchSize is the number of images that are encoded and decoded at a time. Their buffers fit into the processor's cache, and
// the sizes of common test sets are multiples of it, so that a coder needs programs for one batch size only.
const batchSize = 500

// batches yields consecutive ranges [from, to) that cover n images; smaller ones of long vectors, whose buffers would exceed the samples.
func batches(n, pixels int) iter.Seq2[int, int] {
	const many, few = 1 << 21, 1 << 19
	size := batchSize
	if size*pixels > many {
		size = max(1, few/pixels)
	}
	return func(yield func(int, int) bool) {
		for from := 0; from < n; from += size {
			if !yield(from, min(from+size, n)) {
				return
			}
		}
	}
}

// imageCount returns the number of images in values. It returns an error if there are none, or if the length is not a
// multiple of the image size.
func imageCount(coder Coder, values []float32) (int, error) {
	n, err := rowCount(values, volume.Of(coder.Shape()))
	if err != nil {
		return 0, fmt.Errorf("%w (samples of shape %v)", err, coder.Shape())
	}
	if n == 0 {
		return 0, fmt.Errorf("metrics: there are no samples to measure on")
	}
	return n, nil
}

// encode calls coder.Encode and checks the length of the result.
func encode(coder Coder, images []float32) ([]float32, error) {
	codes, err := coder.Encode(images)
	return checked("encode", codes, len(images)/volume.Of(coder.Shape())*coder.Units(), err)
}

// decode calls coder.Decode and checks the length of the result.
func decode(coder Coder, codes []float32) ([]float32, error) {
	images, err := coder.Decode(codes)
	return checked("decode", images, len(codes)/coder.Units()*volume.Of(coder.Shape()), err)
}

func checked(method string, values []float32, want int, err error) ([]float32, error) {
	if err != nil {
		return nil, fmt.Errorf("metrics: %s: %w", method, err)
	}
	if len(values) != want {
		return nil, fmt.Errorf("metrics: %s returned %d values, want %d", method, len(values), want)
	}
	return values, nil
}

// imageSum is a sum over images in their order, which does not depend on batches or processors.
type imageSum struct {
	each []float64
	sum  float64
	n    int
}

// add adds n more images. Several goroutines call of at the same time, each for at most grain images.
func (s *imageSum) add(n, grain int, of func(i int) float64) {
	if len(s.each) < n {
		s.each = make([]float64, n)
	}
	team.For(n, grain, func(from, to int) {
		for i := from; i < to; i++ {
			s.each[i] = of(i)
		}
	})
	for _, v := range s.each[:n] {
		s.sum += v
	}
	s.n += n
}

// mean returns the sum divided by the number of images and by valuesPerImage; 0 without images.
func (s *imageSum) mean(valuesPerImage int) float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n*valuesPerImage)
}

// mean returns the sum of the values, added in order, divided by n; 0 if n is 0.
func mean(values []float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return lists.Sum(values) / float64(n)
}
