package laws_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/laws"
	"tessera/metrics"
)

// largest is a correct metric, the largest value of any code. The incorrect metrics consist of it and one fault.
type largest struct {
	describe func(d *metrics.Description)
	add      func(m *largestMeter, b *metrics.Batch)
	value    func(m *largestMeter) float64
}

func (l largest) Describe() metrics.Description {
	d := metrics.Description{
		Measures: []metrics.Measure{{Name: "largest", Doc: "largest value of any code", Better: metrics.Neither}}, Reads: metrics.ReadsCodes}
	if l.describe != nil {
		l.describe(&d)
	}
	return d
}

func (l largest) Start(*metrics.Subject) (metrics.Meter, error) { return &largestMeter{of: l}, nil }

type largestMeter struct {
	of   largest
	most float64
	sum  float64
	n    int
}

func (m *largestMeter) Add(b *metrics.Batch) error {
	m.n++
	for _, v := range b.Codes {
		m.most = max(m.most, float64(v))
	}
	if m.of.add != nil {
		m.of.add(m, b)
	}
	return nil
}

func (m *largestMeter) Values(context.Context) ([]metrics.Value, error) {
	v := m.most
	if m.of.value != nil {
		v = m.of.value(m)
	}
	return []metrics.Value{metrics.Number(v)}, nil
}

// sum returns a metric whose value is the sum of of(batch) over all batches.
func sum(of func(b *metrics.Batch) float64) largest {
	return largest{add: func(m *largestMeter, b *metrics.Batch) { m.sum += of(b) }, value: func(m *largestMeter) float64 { return m.sum }}
}

func TestWrongMetricsBreakTheirLaw(t *testing.T) {
	metric := func(m metrics.Metric) func() metrics.Metric { return func() metrics.Metric { return m } }
	images := func(d *metrics.Description) { d.Reads |= metrics.ReadsImages }
	calls := 0.0
	first := largest{describe: images, add: func(m *largestMeter, b *metrics.Batch) {
		if m.n == 1 {
			m.sum = float64(b.Images[0])
		}
	}, value: func(m *largestMeter) float64 { return m.sum }}
	means := sum(func(b *metrics.Batch) float64 { return float64(slices.Max(b.Codes)) })
	means.value = func(m *largestMeter) float64 { return m.sum / float64(m.n) }
	unscaled := largest{describe: func(d *metrics.Description) { d.ScaleFree = true }}
	claimed := func(name string) func() metrics.Metric {
		e, ok := metrics.Registry.Lookup(name)
		if !ok {
			t.Fatalf("no metric %s", name)
		}
		return metric(scaleFree{e.New()})
	}
	faulty := map[string][]func() metrics.Metric{
		"describes itself": {
			metric(largest{describe: func(d *metrics.Description) { d.Measures[0].Name = "the largest" }}),
			metric(largest{describe: func(d *metrics.Description) { d.Measures[0].Doc = "" }}),
			metric(largest{describe: func(d *metrics.Description) { d.Measures[0].Better = "more" }}),
			metric(largest{describe: func(d *metrics.Description) { d.Reads = 0 }}),
		},
		"gives finite numbers or the reason why there are none": {
			metric(largest{value: func(m *largestMeter) float64 { return math.Log(m.most) }}), // of a model of dead units
			metric(largest{describe: func(d *metrics.Description) { d.Measures[0].Count = true }}),
			metric(sum(func(b *metrics.Batch) float64 { panic("not today") })),
			metric(partial{}),
		},
		"gives a number of some model": {metric(partial{})},
		"gives the same numbers again": {func() metrics.Metric {
			return largest{value: func(m *largestMeter) float64 { calls++; return calls }}
		}},
		"does not change its inputs": {metric(largest{add: func(_ *largestMeter, b *metrics.Batch) { slices.Sort(b.Codes) }})},
		"reads only the inputs that it declares": {
			metric(sum(func(b *metrics.Batch) float64 { return float64(len(b.Images)) })),
			metric(sum(func(b *metrics.Batch) float64 { return float64(b.Outputs[0]) })),
		},
		"does not depend on how images are cut into batches":           {metric(means)},
		"does not depend on the order of the images unless it says so": {metric(first)},
		"does not depend on the scale of units if it says so":          {metric(unscaled), claimed("hoyer"), claimed("dead_units"), claimed("used_units")},
	}
	for _, law := range laws.Metric.Names() {
		if len(faulty[law]) == 0 {
			t.Errorf("no metric breaks %q", law)
		}
		for i, wrong := range faulty[law] {
			if laws.Metric.Test(wrong)[law] == nil {
				t.Errorf("metric %d that is to break %q obeys it", i, law)
			}
		}
	}
}

// scaleFree is a metric that incorrectly declares that it does not depend on the scale of units.
type scaleFree struct{ metrics.Metric }

func (m scaleFree) Describe() metrics.Description {
	d := m.Metric.Describe()
	d.ScaleFree = true
	return d
}

// partial is a metric that is never applicable, but does not declare this.
type partial struct{ largest }

func (partial) Start(*metrics.Subject) (metrics.Meter, error) {
	return metrics.Fixed(metrics.NotApplicable("never")), nil
}

func TestTheRightMetricBreaksNoLaw(t *testing.T) {
	ordered := largest{describe: func(d *metrics.Description) { d.Ordered = true }}
	for _, m := range []metrics.Metric{largest{}, ordered} {
		if got := laws.Broken(laws.Metric, func() metrics.Metric { return m }); len(got) > 0 {
			t.Errorf("the right metric breaks %q", got)
		}
	}
}

// ofNext is the mean of a value that a model must have by name.
type ofNext struct{ largest }

func (o ofNext) Describe() metrics.Description {
	d := o.largest.Describe()
	d.Reads = metrics.ReadsImages
	return d
}

func (ofNext) Start(*metrics.Subject) (metrics.Meter, error) { return &nextMeter{}, nil }

type nextMeter struct {
	sum float64
	n   int
}

func (m *nextMeter) Add(b *metrics.Batch) error {
	next, err := b.Value("next")
	for _, v := range next {
		m.sum += float64(v)
	}
	m.n += len(next)
	return err
}

func (m *nextMeter) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{metrics.Number(m.sum / float64(m.n))}, nil
}

func TestTheLawsTakeMetricsOfNamedValues(t *testing.T) {
	laws.Check(t, laws.MetricOf("next"), func() metrics.Metric { return ofNext{} })
	err := laws.Metric.Test(func() metrics.Metric { return ofNext{} })["gives the same numbers again"]
	expect.Error(t, err, `no value "next"`, "models without the value")
}
