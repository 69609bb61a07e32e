package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tessera/data"
	"tessera/kernel"
	"tessera/parallel/team"
)

// Meters measures several metrics of one model together: what a batch of images gives is shared by all of them.
type Meters struct {
	reads   Reads // of all meters
	running []running
}

// running is a choice that is being measured.
type running struct {
	choice  Choice
	meter   Meter  // nil where the metric is not applicable
	missing string // why
	prefix  string // of the names of its values
	head    string // whose logits it reads, "" where it reads none
}

// Start begins to measure what is chosen of a model. What the batches and the subject are going to have is has; a metric
// that reads more than that is not applicable, which is a [*data.Error] where it lacks labels and is not optional.
// Metrics that read logits are started for each of the heads.
func Start(s Subject, has Reads, heads []string, chosen Selection) (*Meters, error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := chosen.Check(); err != nil {
		return nil, err
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
		m.running = append(m.running, running{choice: c, missing: lacks.why()})
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

// why says why a metric that reads this is not applicable where it is not there.
func (r Reads) why() string {
	switch {
	case r.Has(ReadsOutputs):
		return "the model has no decoder"
	case r.Has(ReadsAtoms):
		return "the decoder's last layer has no atoms"
	case r.Has(ReadsWeights):
		return "the decoder has no weight"
	case r.Has(ReadsPictures):
		return "the images have no rows and columns"
	case r.Has(ReadsParts):
		return "the true parts of the images are not known"
	case r.Has(ReadsLogits):
		return "the model has no head that is compared with labels"
	case r.Has(ReadsLabels):
		return "the images have no labels"
	}
	return notKnown
}

// Reads is what the metrics read of the batches and the subject; of the rest nothing need be computed.
func (m *Meters) Reads() Reads { return m.reads }

// Add takes the next images; logits holds what each head gives, by its name.
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

// Values returns what is chosen, in the order of the selection. Numbers may be NaN or infinite.
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

// given are the settings that somebody gave, each before the first value of its metric.
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

// Close frees what the meters hold.
func (m *Meters) Close() error {
	var all []error
	for _, run := range m.running {
		if c, ok := run.meter.(io.Closer); ok {
			all = append(all, c.Close())
		}
	}
	return errors.Join(all...)
}
