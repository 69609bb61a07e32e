package data

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// lines returns n samples of two values: twice the index of the sample, and twice the index plus one.
func lines(t *testing.T, n int) *Images {
	t.Helper()
	values := lists.Of(2*n, func(i int) float32 { return float32(i) })
	m, err := NewFloats([]int{2}, values, nil)
	fatal.If(t, err)
	return m
}

// drawnOf returns a column for the samples with the given indices.
func drawnOf(m *Images, column string, indices ...int) []float32 {
	c, _ := m.Column(column)
	all := make([]float32, len(indices)*c.Size())
	m.Gather(all, column, indices)
	return all
}

func TestDrawnColumnsHaveTheirDistribution(t *testing.T) {
	const n = 20000
	for _, c := range []struct {
		draw           Draw
		mean, variance float64
		low, high      float64
	}{
		{&DrawNormal{Mean: 2, Stddev: 0.5}, 2, 0.25, -2, 6},
		{&DrawUniform{Low: -1, High: 2}, 0.5, 0.75, -1, 2},
		{&DrawWhole{From: -1, Below: 3}, 0.5, 1.25, -1, 2},
		{&DrawBernoulli{Probability: 0.3}, 0.3, 0.21, 0, 1},
		{&DrawConstant{Value: 4}, 4, 0, 4, 4},
	} {
		m, err := lines(t, n).WithDrawn(3, Drawn{"x", c.draw})
		fatal.If(t, err)
		values := make([]float32, n)
		m.DrawInto(values, "x", slices.Sorted(slices.Values(make([]int, n))), rand.New(rand.NewPCG(5, 6)))
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / n
		variance := squares/n - mean*mean
		if math.Abs(mean-c.mean) > 0.03 || math.Abs(variance-c.variance) > 0.03 || float64(slices.Min(values)) < c.low || float64(slices.Max(values)) > c.high {
			t.Errorf("%T: mean %v and variance %v in [%v,%v], want %v and %v in [%v,%v]", c.draw, mean, variance, slices.Min(values), slices.Max(values), c.mean, c.variance, c.low, c.high)
		}
	}
}

// Outside of a training step, a value depends only on the seed, the name of the column and the position of the sample.
func TestADrawnColumnIsThatOfItsPlace(t *testing.T) {
	m, err := lines(t, 20).WithDrawn(3, Drawn{"x", &DrawNormal{Shaped{Shape: []int{2, 3}}, 0, 1}}, Drawn{"y", &DrawNormal{Shaped{Like: "images"}, 0, 1}})
	fatal.If(t, err)
	want := make([]float32, 6)
	r := random.Stream(3, "column.x", 7)
	for i := range want {
		want[i] = float32(r.NormFloat64())
	}
	subset := m.Subset([]int{4, 7, 9})
	expect.Slice(t, drawnOf(subset, "x", 1), want)
	if all := subset.All(); !slices.Equal(all["x"][6:12], want) || len(all["y"]) != 6 || slices.Equal(all["y"], all["x"][:6]) {
		t.Errorf("all columns are %v", all)
	}
	c, ok := m.Column("y")
	expect.Equal(t, fmt.Sprint(c.Shape, c.Type, c.Drawn, ok), "[2]float32true true", "y")
}

func TestANegativeIsEveryOtherSampleEquallyOften(t *testing.T) {
	m, err := lines(t, 5).WithDrawn(3, Drawn{"negative", &DrawOther{Of: "images"}})
	fatal.If(t, err)
	counts, r, row := map[float32]int{}, rand.New(rand.NewPCG(1, 1)), make([]float32, 2)
	for range 4000 {
		m.DrawInto(row, "negative", []int{2}, r)
		if row[1] != row[0]+1 {
			t.Fatalf("%v are no values of a sample", row)
		}
		counts[row[0]/2]++
	}
	for sample, n := range counts {
		if sample == 2 || n < 900 || n > 1100 {
			t.Errorf("sample %v is drawn %d times for sample 2, want about 1000, and 0 for itself", sample, n)
		}
	}
	several, err := lines(t, 5).WithDrawn(3, Drawn{"negative", &DrawOther{Of: "images", Count: 4000}})
	fatal.If(t, err)
	row, counts = make([]float32, 8000), map[float32]int{}
	several.DrawInto(row, "negative", []int{2}, r)
	for i := 0; i < len(row); i += 2 {
		counts[row[i]/2]++
	}
	if c, _ := several.Column("negative"); !slices.Equal(c.Shape, []int{4000, 2}) || counts[2] > 0 || counts[0] < 900 || counts[4] < 900 {
		t.Errorf("4000 at once: got the shape %v and the samples %v", c.Shape, counts)
	}
	alone, err := lines(t, 1).WithDrawn(3, Drawn{"negative", &DrawOther{Of: "images"}})
	if err != nil || !slices.Equal(drawnOf(alone, "negative", 0), []float32{0, 1}) {
		t.Errorf("a sample alone has the negative %v", drawnOf(alone, "negative", 0))
	}
}

// Negatives are scaled like images. DrawnAsRead returns them unscaled, with NaN for missing entries.
func TestNegativesAreScaledAsImages(t *testing.T) {
	m := lines(t, 2).Scaled(&Scaling{Shift: []float32{1, 1}, Factor: []float32{10, 10}})
	columns := []Drawn{{"negative", &DrawOther{Of: "images"}}}
	drawn, err := m.WithDrawn(1, columns...)
	fatal.If(t, err)
	expect.Slice(t, drawnOf(drawn, "negative", 0), drawnOf(m, "images", 1))
	holed, err := NewFloats([]int{1}, []float32{5, float32(math.NaN())}, nil)
	fatal.If(t, err)
	raw, err := holed.WithMissing().DrawnAsRead(1, columns...)
	if err != nil || raw["negative"][0] == raw["negative"][0] || raw["negative"][1] != 5 {
		t.Errorf("got %v, %v, want NaN and 5", raw, err)
	}
}

// Drawn classes are one-hot like those of a file. A value of a drawn column that a term cannot use is detected.
func TestADrawnColumnOfClasses(t *testing.T) {
	m, err := lines(t, 30).WithDrawn(1, Drawn{"turn", &DrawWhole{Below: 3}})
	fatal.If(t, err)
	dst := make([]float32, 90)
	all := lists.Range(0, 30)
	m.OneHot(dst, "turn", all)
	other := make([]float32, 90)
	OneHotOf(other, drawnOf(m, "turn", all...))
	for i, class := range m.Classes("turn") {
		expect.Equal(t, dst[3*i+class], 1, "row", i, dst[3*i:3*i+3], class)
	}
	expect.Slice(t, dst, other)
	if place, v := m.FirstOutside("turn", func(v float32) bool { return v < 2 }); place != `the drawn column "turn"` || v != 2 {
		t.Errorf("got %s: %v", place, v)
	}
}

func TestDrawnColumnsThatCannotBeAreRefused(t *testing.T) {
	for want, d := range map[string]Drawn{
		`no column "z"`:                          {"x", &DrawOther{Of: "z"}},
		"a column of this name":                  {"images", &DrawConstant{}},
		`column "x": like: there is no column "`: {"x", &DrawNormal{Shaped: Shaped{Like: "q"}}},
	} {
		expect.Error(t, expect.Err(lines(t, 2).WithDrawn(1, d)), want)
	}
	for want, d := range map[string]interface{ Check() error }{
		"leave out one":  &Shaped{Shape: []int{2}, Like: "images"},
		"want numbers":   &Shaped{Shape: []int{2, -1}},
		">= low":         &DrawUniform{Low: 1},
		"> from (3)":     &DrawWhole{From: 3, Below: 3},
		"at most":        &DrawWhole{Below: 1 << 30},
		"want > -":       &DrawWhole{From: -1 << 30},
		"want numbers >": &DrawWhole{Shaped: Shaped{Shape: []int{0}}, Below: 3},
	} {
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", d, err, want)
		}
	}
}

// broken is a drawn column that panics.
type broken struct{ cause any }

func (broken) Column(func(string) (Column, bool)) (Column, error) { return Column{}, nil }
func (b broken) Draw([]float32, Drawing, *rand.Rand)              { panic(b.cause) }

func TestOnlyAColumnThatReadsItsSetIsNotDrawnAlone(t *testing.T) {
	r := random.Stream(1, "alone", 0)
	expect.Is(t, (Drawn{Name: "other", Draw: &DrawOther{Of: ImagesColumn}}).DrawAlone(make([]float32, 2), r), ErrAlone, "other")
	for _, cause := range []any{"a bug", errors.New("a bug"), []string{"a bug"}} {
		err := Drawn{Name: "noise", Draw: broken{cause}}.DrawAlone(make([]float32, 2), r)
		if err == nil || errors.Is(err, ErrAlone) || !strings.Contains(err.Error(), `"noise": panicked`) || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("%v: got %v, want an error with the panic", cause, err)
		}
	}
	expect.NoError(t, (Drawn{Name: "noise", Draw: &DrawNormal{Stddev: 1}}).DrawAlone(make([]float32, 2), r))
}
