package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/kernel"
	"tessera/parallel/team"
)

// Sample contains the images on which a coder is evaluated, with their labels and other known values.
type Sample struct {
	Images []float32 // n x pixels, row-major
	Labels []int     // one class per image, negative where it is unknown; nil where none is known
	Seed   uint64    // of metrics that draw numbers

	// Columns are further columns by name, row-major, with a row for each image: targets, masks, groups.
	Columns map[string][]float32

	// Parts are the true parts of the images, one image each; nil where they are not known.
	Parts [][]float32

	// Known holds settings of the model's losses that metrics compare with: "kl.target" is the target of its first KL term.
	Known map[string]float64
}

// Evaluate computes the selected metrics of a coder on a sample; an empty selection means [Default]. Every image is encoded and decoded
// once, in batches. Sums are in float64 and in a fixed order: the number of processors changes no bit. Evaluate fails if the coder
// fails, if ctx is done, if a value is NaN or infinite, and, with a [*data.Error], if a metric that is not optional lacks labels.
func Evaluate(ctx context.Context, coder Coder, s Sample, chosen Selection) (r *Result, err error) {
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
		return nil, fmt.Errorf("metrics: got %d labels, want one for each of %d images", len(s.Labels), n)
	}
	for name, rows := range s.Columns {
		if len(rows) == 0 || len(rows)%n != 0 {
			return nil, fmt.Errorf("metrics: got %d values of the column %q, want as many of each of %d images", len(rows), name, n)
		}
	}
	subject := Subject{Coder: coder, Shape: coder.Shape(), Units: coder.Units(), Images: n, Seed: s.Seed, Known: s.Known, Parts: s.Parts,
		Atoms: coder.Atoms(), Weight: LastWeight(coder)}
	if subject.Atoms != nil {
		if err := subject.Atoms.check(); err != nil {
			return nil, err
		}
	}
	heads := classHeads(coder)
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
	return &Result{Images: n, Vectors: len(coder.Shape()) == 1, Values: values, given: e.meters.given()}, nil
}

// evaluation is one run of Evaluate.
type evaluation struct {
	coder  Coder
	sample Sample
	pixels int
	heads  []string // with one logit per class
	meters *Meters
}

// has returns the inputs that the model and its sample provide.
func (e *evaluation) has(s Subject) Reads {
	has := ReadsImages | ReadsCodes
	for part, there := range map[Reads]bool{
		ReadsOutputs: hasOutput(e.coder), ReadsAtoms: s.Atoms != nil && decodes(e.coder), ReadsWeights: s.Weight != nil,
		ReadsLabels: e.sample.Labels != nil, ReadsLogits: len(e.heads) > 0, ReadsPictures: len(s.Shape) > 1, ReadsParts: len(e.sample.Parts) > 0,
		ReadsObjective: measuresObjective(e.coder, e.sample),
	} {
		if there {
			has |= part
		}
	}
	return has
}

// measure passes every batch to the meters, unless none of them reads images, codes, outputs, labels or logits.
func (e *evaluation) measure(ctx context.Context, n int) error {
	if e.meters.Reads()&(ReadsImages|ReadsCodes|ReadsOutputs|ReadsLabels|ReadsLogits) == 0 {
		return nil
	}
	for from, to := range batches(n) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.batch(from, to); err != nil {
			return err
		}
	}
	return nil
}

// batch computes the inputs that the meters read for one range of images, and adds them.
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
		if b.Codes, err = encode(e.coder, b.Images); err != nil {
			return err
		}
	}
	if reads.Has(ReadsOutputs) {
		if b.Outputs, err = outputs(e.coder, b.Images, b.Codes); err != nil {
			return err
		}
	}
	if reads.Has(ReadsObjective) {
		if b.Objective, err = e.coder.(ObjectiveCoder).Objective(&b); err != nil {
			return fmt.Errorf("metrics: loss: %w", err)
		}
	}
	logits := map[string][]float32{}
	if reads.Has(ReadsLogits) {
		for _, head := range e.heads {
			if logits[head], err = headValue(e.coder, head, b.Images, to-from); err != nil {
				return err
			}
		}
	}
	return e.meters.Add(b, logits)
}

// NotFinite is the error of a metric that is NaN or infinite, as after a training that diverged.
type NotFinite struct {
	Metric string
	Number float64
}

// Error implements error.
func (e *NotFinite) Error() string {
	return fmt.Sprintf("metrics: %s is %g: the coder's codes, images or atoms are not finite; train the model again with other settings or images", e.Metric, e.Number)
}

// finite returns an error for the first number that is NaN or infinite: JSON has no such numbers, and they cannot be compared.
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
	reads   Reads // of all meters
	running []running
}

// running is a selected metric during the measurement.
type running struct {
	choice  Choice
	meter   Meter  // nil where the metric is not applicable
	missing string // why
	prefix  string // of the names of its values
	head    string // whose logits it reads, "" where it reads none
}

// Start starts the meters of the selected metrics for one model. has lists the inputs that the batches and the subject will provide; a
// metric that reads more is not applicable. If it lacks labels and is not optional, that is a [*data.Error]. Metrics that read logits
// are started for each of the heads.
func Start(s Subject, has Reads, heads []string, chosen Selection) (*Meters, error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := chosen.Check(); err != nil {
		return nil, err
	}
	if has.Has(ReadsAtoms) && s.Atoms.otherWeights(s.Units) == "" {
		has |= ReadsSums
	}
	m := &Meters{}
	for _, c := range chosen {
		if err := m.start(s, has, heads, c); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// start starts the meter of a choice, or those of all heads.
func (m *Meters) start(s Subject, has Reads, heads []string, c Choice) error {
	d := c.Metric.Describe()
	if lacks := d.Reads &^ has; lacks != 0 {
		if lacks.Has(ReadsLabels) && !c.Optional {
			return &data.Error{Problem: fmt.Sprintf("its images have no labels, but %s needs them", d.Measures[0].Name)}
		}
		m.running = append(m.running, running{choice: c, missing: lacks.missing(&s)})
		return nil
	}
	of := []string{""}
	if d.Reads.Has(ReadsLogits) {
		of = heads
	}
	for _, head := range of {
		run := running{choice: c, head: head}
		if len(of) > 1 {
			run.prefix = head + "."
		}
		subject := s
		subject.Head = head
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

// guarded calls a method of the metric. A panic is an error that names the metric.
func (c Choice) guarded(do func() error) (err error) {
	defer func() {
		cause := recover()
		if of, ok := cause.(*team.Panic); ok { // on another thread
			cause = of.Value
		}
		if cause != nil {
			err = fmt.Errorf("metrics: %s: panicked: %v", c.first(), cause)
		}
	}()
	return do()
}

// Reads returns the inputs that the metrics read of the batches and the subject. Others need not be computed.
func (m *Meters) Reads() Reads { return m.reads }

// Add takes the next images. logits are those of each head, by name.
func (m *Meters) Add(b Batch, logits map[string][]float32) error {
	for _, run := range m.running {
		if run.meter == nil {
			continue
		}
		b.Logits = logits[run.head]
		if err := run.choice.guarded(func() error { return run.meter.Add(&b) }); err != nil {
			return err
		}
	}
	return nil
}

// Values returns the selected values in the order of the selection. Numbers may be NaN or infinite.
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

// values are those that are chosen, with their names.
func (run running) values(ctx context.Context) (chosen Values, err error) {
	measures, names := run.choice.Metric.Describe().Measures, run.choice.names()
	all := make([]Value, len(measures))
	for i := range all {
		all[i].Missing = run.missing
	}
	if run.meter != nil {
		if err = run.choice.guarded(func() error { all, err = run.meter.Values(ctx); return err }); err != nil {
			return nil, err
		}
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

// given returns the settings that the user gave, each before the first value of its metric.
func (m *Meters) given() []given {
	var all []given
	for _, run := range m.running {
		for _, g := range run.choice.given {
			g.before = run.prefix + run.choice.names()[0]
			all = append(all, g)
		}
	}
	return all
}

// Close closes the meters that are io.Closers.
func (m *Meters) Close() error {
	var all []error
	for _, run := range m.running {
		if c, ok := run.meter.(io.Closer); ok {
			all = append(all, c.Close())
		}
	}
	return errors.Join(all...)
}

// batchSize images are encoded and decoded at a time: their buffers stay in the processor's cache, and the usual test
// sets are whole numbers of batches, so that a coder prepares for one size only.
const batchSize = 500

// batches yields consecutive ranges [from, to) that cover n images.
func batches(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := 0; from < n; from += batchSize {
			if !yield(from, min(from+batchSize, n)) {
				return
			}
		}
	}
}

// imageCount checks that values are whole images of the coder's shape and returns their number; no images are an error.
func imageCount(coder Coder, values []float32) (int, error) {
	n, err := rowCount(values, volume.Of(coder.Shape()))
	if err != nil {
		return 0, fmt.Errorf("%w (images of shape %v)", err, coder.Shape())
	}
	if n == 0 {
		return 0, fmt.Errorf("metrics: there are no images to measure on")
	}
	return n, nil
}

// encode is coder.Encode with its error and the length of its result checked.
func encode(coder Coder, images []float32) ([]float32, error) {
	codes, err := coder.Encode(images)
	return checked("encode", codes, len(images)/volume.Of(coder.Shape())*coder.Units(), err)
}

// decode is coder.Decode with its error and the length of its result checked.
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

// imageSum is a sum over images, in their order: it does not depend on batches or processors.
type imageSum struct {
	each []float64
	sum  float64
	n    int
}

// add takes n more images; of is called from several goroutines at once, for at most grain images by each.
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

// mean is the mean over images, divided by valuesPerImage; 0 without images.
func (s *imageSum) mean(valuesPerImage int) float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n*valuesPerImage)
}

// mean returns the sum of the values, added in order, over n; 0 when n is 0.
func mean(values []float64, n int) float64 {
	if n == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(n)
}
