package data

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// gathered returns the values of a column for all samples.
func gathered(t *testing.T, m *Images, name string) []float32 {
	t.Helper()
	c, ok := m.Column(name)
	if !ok {
		t.Fatalf("no column %q", name)
	}
	all := make([]float32, m.Len()*c.Size())
	m.Gather(all, name, lists.Range(0, m.Len()))
	return all
}

const holed = "a,b,t,u,sex,label\n1,10,0.5,1,f,x\n,20,,2,m,y\n3,NA,1.5,?,,x\n5,30,2.5,4,f,y\n"

// Missing cells are 0 after any scaling. The statistics of the scaling are those of the observed entries, and the masks mark
// the missing cells.
func TestMissingEntriesAreZeroWithAMask(t *testing.T) {
	s := &Files{Kind: "csv", File: write(t, t.TempDir(), "x.csv", holed), Missing: Missing{"nan"}, Scale: Scale{&Standardise{Centre: true}},
		Columns: ColumnNames{"target": {"t"}, "two": {"t", "u"}, "group": {"sex"}}}
	set, err := Load(t.Context(), s, nil, Both.WithColumns([]string{"group", "target", "two"}))
	fatal.If(t, err)
	splits, err := set.Split(Selection{Fit: "train"}, 1)
	fatal.If(t, err)
	sd := math.Sqrt(8. / 3) // of 1, 3, 5; the deviation of 10, 20, 30 is ten times that of 1, 2, 3
	a, b := func(v float64) float32 { return float32((v - 3) / sd) }, func(v float64) float32 { return float32((v - 20) / math.Sqrt(200./3)) }
	want := []float32{a(1), b(10), 0, b(20), a(3), 0, a(5), b(30)}
	for i, v := range gathered(t, splits.Fit, ImagesColumn) {
		expect.Near(t, v, want[i], 1e-6, "value", i)
	}
	for name, want := range map[string]string{
		"observed": "[1 1 0 1 1 0 1 1]", "target": "[0.5 0 1.5 2.5]", "target.observed": "[1 0 1 1]",
		"two": "[0.5 1 0 2 1.5 0 2.5 4]", "two.observed": "[1 1 0 1 1 0 1 1]", "group": "[0 1 -1 0]",
	} {
		expect.Equal(t, fmt.Sprint(gathered(t, splits.Fit, name)), want, name)
		if got := fmt.Sprint(splits.Fit.Subset([]int{3, 1}).All()[name]); name == "target" && got != "[2.5 0]" {
			t.Errorf("%s of a subset: got %s", name, got)
		}
	}
	if raw := splits.Fit.Raw(); raw[0] != 1 || raw[2] == raw[2] || raw[4] != 3 {
		t.Errorf("raw: got %v", raw)
	}
	if low, high := set.Train.Range(); low != 1 || high != 30 {
		t.Errorf("range: got %g to %g, want 1 to 30: missing entries are no zeros", low, high)
	}
}

// NaN in arrays are missing entries if the data set declares them. Infinite values never are. Without the key, the error for
// NaN names the key.
func TestNaNOfArraysIsMissingOrAnError(t *testing.T) {
	nan := float32(math.NaN())
	write := func(name string, values ...float32) string {
		path := write(t, t.TempDir(), name, "")
		fatal.If(t, WriteImages(path, []int{2}, values))
		return path
	}
	path := write("x.npy", 1, nan, 3, 4)
	load := func(path string, missing ...string) (*Set, error) {
		return Load(t.Context(), &Files{Kind: "npy", Images: path, Missing: missing}, nil, Both)
	}
	expect.Error(t, expect.Err(load(path)), `sample 0, value 1: got NaN, want a finite number; write missing = "nan"`)
	if _, err := load(write("inf.npy", 1, float32(math.Inf(1)), 3, 4), "nan"); err == nil || strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v, want an error of an infinite value", err)
	}
	set, err := load(path, "nan")
	fatal.If(t, err)
	expect.Equal(t, fmt.Sprint(set.Train.Float32(), gathered(t, set.Train, "observed")), "[1 0 3 4] [1 0 1 1]")
	if !HasMissing(&Files{Kind: "npz", Missing: Missing{"nan"}}) || HasMissing(&Files{Kind: "csv"}) {
		t.Error("HasMissing")
	}
	expect.Error(t, new(Missing).FromTOML("zero"), `got "zero", want "nan"`)
	expect.Error(t, (&Files{Kind: "csv", File: "x", Columns: ColumnNames{"observed": {"o"}}}).Check(), "give another one")
}

// Hidden entries depend only on the seed and their position, not on the selection of samples. Statistics ignore hidden
// entries.
func TestHiddenEntriesAreThoseOfTheSeed(t *testing.T) {
	values := lists.Of(400*10, func(i int) byte { return byte(1 + i%250) })
	images, err := NewBytes([]int{10}, values, nil)
	fatal.If(t, err)
	set := &Set{Name: "s", Shape: []int{10}, Train: images, Test: images.First(50), HasTest: true}
	split := func(sel Selection, seed uint64) Splits {
		sel.Fit, sel.Hide = "train", 0.2
		splits, err := set.Split(sel, seed)
		fatal.If(t, err)
		return splits
	}
	all := split(Selection{}, 7)
	x, observed, held, complete := gathered(t, all.Fit, "images"), gathered(t, all.Fit, "observed"), gathered(t, all.Fit, "held_out"), gathered(t, all.Fit, "complete")
	hidden := 0
	for i := range x {
		if held[i] != 1-observed[i] || complete[i] != float32(values[i])/255 || x[i] != observed[i]*complete[i] {
			t.Fatalf("value %d: got %v, observed %v, held out %v, complete %v", i, x[i], observed[i], held[i], complete[i])
		}
		hidden += int(held[i])
	}
	if hidden < 700 || hidden > 900 {
		t.Errorf("%d of 4000 entries are hidden, want about 800", hidden)
	}
	expect.Slice(t, gathered(t, split(Selection{}, 7).Fit, "held_out"), held, "equal seeds hide other entries")
	if other := gathered(t, split(Selection{}, 8).Fit, "held_out"); slices.Equal(other, held) {
		t.Error("another seed hides the same entries")
	}
	some := split(Selection{Limit: 100}, 7)
	expect.Slice(t, gathered(t, some.Fit, "held_out"), held[:1000], "a limit hides other entries")
	measured, _, err := set.Measured(Selection{Fit: "train", Hide: 0.2}, 7, TestSplit)
	fatal.If(t, err)
	if got := gathered(t, measured, "held_out"); !slices.Equal(got, gathered(t, all.Test, "held_out")) || slices.Equal(got, held[:500]) {
		t.Error("the test images do not have hidden entries of their own")
	}
	if set.Train.Holed() {
		t.Error("the set has changed")
	}
}

// A packed set contains its columns and its missing entries.
func TestAPackedSetHasItsColumns(t *testing.T) {
	s := &Files{Kind: "csv", File: write(t, t.TempDir(), "x.csv", holed), Missing: Missing{"nan"}, Columns: ColumnNames{"target": {"t"}, "group": {"sex"}}}
	set, err := Load(t.Context(), s, nil, Both.WithColumns([]string{"group", "target"}))
	fatal.If(t, err)
	var b bytes.Buffer
	fatal.If(t, set.Pack(&b))
	again, err := Unpack(b.Bytes())
	fatal.If(t, err)
	if got, want := fmt.Sprint(again.Train.All()), fmt.Sprint(set.Train.All()); got != want || len(again.Columns()) != 2 || again.Columns()[0].Names == nil {
		t.Errorf("got %s of %+v, want %s", got, again.Columns(), want)
	}
	for n := range len(b.Bytes()) {
		if _, err := Unpack(b.Bytes()[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a set", n, b.Len())
		}
	}
}

// A value that is missing in all fitted samples cannot be scaled or learned.
func TestAColumnWithoutAnEntryIsAnError(t *testing.T) {
	s := &Files{Kind: "csv", File: write(t, t.TempDir(), "x.csv", "a,b\n1,\n2,NA\n3,-\n"), Missing: Missing{"nan"}, Scale: Scale{&MinMax{}}}
	set, err := Load(t.Context(), s, nil, Both)
	fatal.If(t, err)
	expect.Error(t, expect.Err(set.Split(Selection{Fit: "train"}, 1)), `column "b" is missing in all fitted samples`)
}

// leave hides as many entries of every sample, drawn by the seed; a sample with no more keeps all.
func TestEntriesOfEverySampleAreLeftOut(t *testing.T) {
	nan := float32(math.NaN())
	dense, err := NewFloats([]int{5}, []float32{1, 2, 3, 4, 5, nan, nan, nan, 6, 7, nan, nan, nan, 8, 9}, nil)
	fatal.If(t, err)
	sparse, err := NewEntries([]int{0, 5, 7, 9}, []int32{0, 1, 2, 3, 4, 3, 4, 3, 4}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 5)
	fatal.If(t, err)
	for name, m := range map[string]*Images{"dense": dense.WithMissing(), "sparse": sparse} {
		leave := func(n int, seed uint64) []float32 {
			return (&Set{Train: m}).hiding(Selection{Leave: n}, seed).Train.All()[HeldOutColumn]
		}
		for n, want := range map[int][]int{1: {1, 1, 1}, 2: {2, 0, 0}, 5: {0, 0, 0}} {
			held := leave(n, 3)
			for i, count := range want {
				sum := 0
				for _, h := range held[5*i : 5*i+5] {
					sum += int(h)
				}
				expect.Equal(t, sum, count, name, "leave =", n, "hides", sum, "entries of sample", i)
			}
			expect.Slice(t, held, leave(n, 3), name, "equal seeds leave out other entries")
		}
		if slices.Equal(leave(2, 1), leave(2, 2)) && slices.Equal(leave(2, 1), leave(2, 4)) {
			t.Errorf("%s: the seed has no influence", name)
		}
		if count, first := m.Fewer(2); name == "sparse" && (count != 2 || first != 1) {
			t.Errorf("%s: %d samples have at most 2 entries, the first is %d", name, count, first)
		}
	}
	expect.AnyError(t, expect.Err((&Set{Name: "x", Shape: []int{5}, Train: sparse}).Split(Selection{Fit: "train", Hide: 0.1, Leave: 1}, 1)), "hide and leave together are no error")
}
