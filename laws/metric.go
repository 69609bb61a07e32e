package laws

import (
	"context"
	"errors"
	"fmt"
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
	{"gives finite numbers or says why there are none", finiteValues},
	{"gives the same numbers again", repeats},
	{"changes nothing that it reads", changesNothing},
	{"reads only what it says", readsWhatItSays},
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

// valuesOf evaluates a metric on a model; a panic is an error. What the images lack, a [*data.Error], gives no values.
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

// apart returns an error where numbers differ by more than a tolerance, or are not those of the same measures.
func apart(what string, got, want metrics.Values, up tolerance) error {
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
			return fmt.Errorf("%s: nothing is said of it", m.Name)
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
				return fmt.Errorf("%s: %s is not applicable (%s), and it is not said to be partial", of.name, v.Name, v.Missing)
			}
			some = some || v.Missing == ""
		}
	}
	if !some {
		return errors.New("no model gives a number")
	}
	return nil
}

// gives reports whether a model has what a metric reads.
func (m *measured) gives(r metrics.Reads) bool {
	return !(r.Has(metrics.ReadsOutputs) && m.encodes || r.Has(metrics.ReadsAtoms) && m.opaque || r.Has(metrics.ReadsWeights) && m.encodes ||
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
			if err := apart(of.name+": again", got, want, exactly); err != nil {
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
	return apart(one.name+": "+what, got, want, up)
}
