package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/posthoc"
)

// grouped returns a batch of n samples with logits of two classes, labels and groups. The last samples lack a group or a
// label.
func grouped(n int) Batch {
	r := rand.New(rand.NewPCG(6, 6))
	b := Batch{Columns: map[string][]float32{"sex": nil}}
	for i := range n {
		g, y := r.IntN(3), r.IntN(2)
		if i == n-1 {
			g = -1
		}
		if i == n-2 {
			y = -1
		}
		b.Logits = append(b.Logits, float32(r.NormFloat64()), float32(r.NormFloat64()+float64(y+g)-1))
		b.Labels = append(b.Labels, y)
		b.Columns["sex"] = append(b.Columns["sex"], float32(g))
	}
	return b
}

func measuredFairness(t *testing.T, m *Fairness, s Subject, b Batch) (Values, *Table) {
	t.Helper()
	meter, err := m.Start(&s)
	fatal.If(t, err)
	fatal.If(t, meter.Add(&b))
	values, err := meter.Values(context.Background())
	fatal.If(t, err)
	for i := range values {
		values[i].Name = m.Describe().Measures[i].Name
	}
	tables := meter.(Tabled).Tables()
	if len(tables) == 0 {
		return values, &Table{}
	}
	return values, tables[0]
}

// Every number equals the result of plain loops over the samples, directly from its definition.
func TestFairnessEqualsPlainLoops(t *testing.T) {
	b := grouped(500)
	values, table := measuredFairness(t, &Fairness{Group: "sex", Positive: "1", Resamples: 200, Seed: 1, Least: 30}, Subject{Names: map[string][]string{"sex": {"f", "m"}}}, b)
	share := func(group int, of, given func(y, d int) bool) float64 {
		hits, all := 0.0, 0.0
		for i, y := range b.Labels {
			d := 0
			if b.Logits[2*i+1] > b.Logits[2*i] {
				d = 1
			}
			if int(b.Columns["sex"][i]) != group || y < 0 || !given(y, d) {
				continue
			}
			all++
			if of(y, d) {
				hits++
			}
		}
		return hits / all
	}
	any := func(y, d int) bool { return true }
	label := func(want int) func(y, d int) bool { return func(y, _ int) bool { return y == want } }
	decision := func(want int) func(y, d int) bool { return func(_, d int) bool { return d == want } }
	rates := map[string]func(group int) float64{
		"selection_rate":      func(g int) float64 { return share(g, decision(1), any) },
		"false_positive_rate": func(g int) float64 { return share(g, decision(1), label(0)) },
		"false_negative_rate": func(g int) float64 { return share(g, decision(0), label(1)) },
		"precision":           func(g int) float64 { return share(g, label(1), decision(1)) },
		"false_omission_rate": func(g int) float64 { return share(g, label(1), decision(0)) },
		"group_accuracy":      func(g int) float64 { return share(g, func(y, d int) bool { return y == d }, any) },
		"group_calibration": func(group int) float64 {
			var n, y, p [15]float64
			all := 0.0
			for i, class := range b.Labels {
				if int(b.Columns["sex"][i]) != group || class < 0 {
					continue
				}
				score := 1 / (1 + math.Exp(float64(b.Logits[2*i])-float64(b.Logits[2*i+1])))
				bin := min(int(math.Ceil(score*15))-1, 14)
				n[bin], y[bin], p[bin] = n[bin]+1, y[bin]+float64(class), p[bin]+score
				all++
			}
			sum := 0.0
			for k := range n {
				if n[k] > 0 {
					sum += n[k] / all * math.Abs(y[k]/n[k]-p[k]/n[k])
				}
			}
			return sum
		},
	}
	for name, of := range rates {
		var all []float64
		for g, group := range []string{"f", "m", "2"} {
			got, _ := table.Number(name+" "+group, "value")
			low, _ := table.Number(name+" "+group, "low")
			high, _ := table.Number(name+" "+group, "high")
			close6(t, name+" of "+group, got, of(g))
			if name != "group_calibration" && !(low < got && got < high && high-low < 0.5) { // the bootstrap of an error has a bias
				t.Errorf("%s of %s: %v, interval %v to %v", name, group, got, low, high)
			}
			all = append(all, of(g))
		}
		gap, _ := values.Number(name + "_gap")
		ratio, _ := values.Number(name + "_ratio")
		close6(t, name+"_gap", gap, slices.Max(all)-slices.Min(all))
		close6(t, name+"_ratio", ratio, slices.Min(all)/slices.Max(all))
	}
	notes := strings.Join(table.Notes, "\n")
	for _, want := range []string{"1 samples are of an unknown group", "1 samples are of an unknown class"} {
		expect.Contains(t, notes, want, "notes")
	}
}

// The bootstrap interval of a rate is close to that of the normal approximation.
func TestTheBootstrapOfARateIsAboutNormal(t *testing.T) {
	b := grouped(3000)
	_, table := measuredFairness(t, &Fairness{Group: "sex", Positive: "1", Resamples: 1000, Seed: 1, Least: 30}, Subject{}, b)
	n, _ := table.Number("count 1", "value")
	p, _ := table.Number("selection_rate 1", "value")
	low, _ := table.Number("selection_rate 1", "low")
	high, _ := table.Number("selection_rate 1", "high")
	want := 2 * 1.96 * math.Sqrt(p*(1-p)/n)
	expect.Near(t, high-low, want, 0.15*want, "width of", low, "to", high)
}

func TestFairnessSaysWhatItCannotMeasure(t *testing.T) {
	one := grouped(100)
	one.Columns["sex"] = slices.Repeat([]float32{1}, 100)
	small := grouped(100)
	for i := range small.Columns["sex"] {
		small.Columns["sex"][i] = 0
		if i < 3 {
			small.Columns["sex"][i], small.Labels[i] = 1, 1
		}
	}
	m := &Fairness{Group: "sex", Positive: "1", Resamples: 20, Least: 30}
	values, table := measuredFairness(t, m, Subject{}, one)
	if values[0].Missing != "all samples are of one group, 1" || !slices.Contains(table.Notes, "all samples are of one group, 1: there is nothing to compare") {
		t.Errorf("%+v, %q", values[0], table.Notes)
	}
	values, table = measuredFairness(t, m, Subject{}, small)
	notes := strings.Join(table.Notes, "\n")
	for _, want := range []string{"group 1 has 3 samples: its rates say little", "group 1 has no false_positive_rate"} {
		expect.Contains(t, notes, want, "notes")
	}
	if _, ok := table.Number("selection_rate 1", "low"); ok {
		t.Error("a group of 3 samples has an interval")
	}
	if v, _ := values.Find("false_positive_rate_gap"); v.Missing != "fewer than two groups have a false_positive_rate" {
		t.Errorf("got %+v", v)
	}
	if _, ok := values.Number("selection_rate_gap"); !ok {
		t.Errorf("the small group is not in the gap: %+v", values)
	}
	values, _ = measuredFairness(t, &Fairness{Group: "age", Positive: "1"}, Subject{}, small)
	expect.Equal(t, values[0].Missing, `the samples have no column "age" of one number each`, values[0])
	small.Columns["sex"][0] = 0.7
	values, _ = measuredFairness(t, m, Subject{}, small)
	expect.Contains(t, values[0].Missing, `the column "sex" is not one of groups, it has the number 0.7`, "a fraction is no group")
}

// decider is a coder whose head has thresholds.
type decider struct {
	*headed
	head posthoc.Head
}

func (d decider) PostHoc(string) posthoc.Head { return d.head }

func TestFairnessDecidesByTheThresholdsOfTheModel(t *testing.T) {
	b := grouped(300)
	always := []posthoc.Step{{Threshold: 0, Probability: 1}}
	head := posthoc.Head{Thresholds: &posthoc.Thresholds{Criterion: posthoc.Independence, Column: "sex", Positive: 1,
		Groups: map[string]posthoc.Rule{"0": {Steps: always}, "1": {}}}}
	_, table := measuredFairness(t, &Fairness{Group: "sex", Positive: "1", Resamples: 5, Least: 3}, Subject{Coder: decider{head: head}}, b)
	for group, want := range map[string]float64{"0": 1, "1": 0} {
		if got, _ := table.Number("selection_rate "+group, "value"); got != want {
			t.Errorf("selection rate of group %s: %v, want %v", group, got, want)
		}
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "decided by the thresholds") || !strings.Contains(notes, "of an unknown group and left out") {
		t.Errorf("got %q", notes)
	}
}

// The positive class is given by its name or by its number.
func TestTheClassOfFairnessHasANameOrANumber(t *testing.T) {
	names := []string{"no", "yes"}
	for _, c := range []struct {
		class ClassName
		names []string
		want  int
		error string
	}{
		{"yes", names, 1, ""}, {"0", names, 0, ""}, {"1", nil, 1, ""}, {"7", []string{"7", "8"}, 0, ""},
		{"maybe", names, 0, `positive: got "maybe", want one of the classes: no, yes`}, {"2", nil, 0, "got class 2, the head has 2 classes"},
	} {
		got, err := c.class.Among(c.names, 2)
		expect.Equal(t, got, c.want, c.class)
		if c.error == "" {
			expect.NoError(t, err, c.class)
		} else {
			expect.As[UnknownClass](t, err, c.error)
		}
	}
	var c ClassName
	for value, want := range map[any]any{int64(3): int64(3), "yes": "yes"} {
		expect.NoError(t, c.FromTOML(value))
		expect.Equal(t, c.TOML(), want)
	}
	for _, value := range []any{int64(-1), 1.5, true} {
		expect.AnyError(t, c.FromTOML(value))
	}
}

// A metric that runs another network ends with its context.
func TestRecoveredLossEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	meter := &recoveredLoss{labels: []int{0, 1}, values: []float32{1, 2}, outputs: []float32{1, 2}, of: &Subject{Downstream: func(_ []float32, do func(int, []float32) error) error {
		for i := range 2 {
			calls++
			cancel()
			if err := do(i, []float32{1, 0}); err != nil {
				return err
			}
		}
		return nil
	}}}
	expect.Is(t, expect.Err(meter.Values(ctx)), context.Canceled)
	expect.Equal(t, calls, 1)
}
