package laws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"tessera/data"
	"tessera/internal/volume"
	"tessera/metrics"
)

// given contains the inputs of a metric: its subject, and all images in one batch.
type given struct {
	subject metrics.Subject
	batch   metrics.Batch
	n       int
}

// givenBy computes those values of the model that are in reads.
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
	return g, err
}

// cut returns the images [from, to) of the batch.
func (g given) cut(from, to int) metrics.Batch {
	rows := func(v []float32) []float32 { width := len(v) / g.n; return v[from*width : to*width : to*width] }
	b := metrics.Batch{Images: rows(g.batch.Images), Codes: rows(g.batch.Codes), Outputs: rows(g.batch.Outputs), Logits: rows(g.batch.Logits)}
	if g.batch.Labels != nil {
		b.Labels = g.batch.Labels[from:to:to]
	}
	return b
}

// inBatches measures with batches of that size; a panic becomes an error.
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

// eachGiven calls f with the models that have the values that the metric reads, and with these values.
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
			if err := apart(fmt.Sprintf("in batches of %d", size), got, want, sameUpTo); err != nil {
				return err
			}
		}
		return nil
	})
}

// readsWhatItSays gives a metric only the declared inputs.
func readsWhatItSays(fresh func() metrics.Metric) error {
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
		return apart("with nothing but what it says that it reads", got, want, exactly)
	})
}

// everything contains all values of a model.
func everything(of *measured) (all metrics.Reads) {
	for one := metrics.ReadsImages; one <= metrics.ReadsParts; one <<= 1 {
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
