package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Only the arrays that are needed are read.
func TestUnreadColumnsAreNotRead(t *testing.T) {
	reads := map[string]int{}
	part := func(name string, kind string, a array) tablePart {
		return tablePart{name: name, dims: a.dims, kind: kind, read: func(bool) (array, error) { reads[name]++; return a, nil }}
	}
	parts := []tablePart{
		part("x", "f4", array{dims: []int{2, 2}, floats: []float32{1, 2, 3, 4}}),
		part("w", "f4", array{dims: []int{2}, floats: []float32{5, 6}}),
		part("m", "f4", array{dims: []int{2, 2}, floats: []float32{1, 0, 0, 1}}),
		part("g", "i4", array{dims: []int{2}, ints: []int{7, -1}}),
	}
	held := ColumnNames{"weight": {"w"}, "mask": {"m"}, "group": {"g"}}
	got, err := (Opened{parts: parts}).table(t.Context(), reading{Files: Files{Columns: held}, need: []string{"group"}})
	fatal.If(t, err)
	expect.Equal(t, fmt.Sprint(reads), "map[g:1 x:1]", "the arrays read are", reads, "want x and g once")
	if v := got.further; len(v) != 1 || v[0].Type != Whole || !slices.Equal(v[0].whole, []int32{7, -1}) {
		t.Errorf("got %+v", v)
	}
}

func TestColumnsAreCutLikePixels(t *testing.T) {
	var pixels, weights []float32
	var groups []int32
	var codes []byte
	for i := range 20 {
		pixels, weights = append(pixels, float32(i), 0), append(weights, float32(i)/2)
		groups, codes = append(groups, int32(i)), append(codes, byte(i), byte(2*i))
	}
	m, err := FromColumns(FloatColumn("images", []int{2}, pixels), FloatColumn("w", nil, weights), WholeColumn("g", nil, groups), ByteColumn("b", []int{2}, codes))
	fatal.If(t, err)
	set, err := Load(t.Context(), m, nil, Need{Train: true}.WithColumns([]string{"b", "g", "w"}))
	fatal.If(t, err)
	splits, err := set.Split(Selection{Fit: "train", Limit: 15, Validation: Validation{Fraction: 0.4}}, 3)
	fatal.If(t, err)
	for _, images := range []*Images{splits.Fit, splits.Validation, splits.Fit.First(4)} {
		for i := range images.Len() {
			var x, b [2]float32
			var w, g [1]float32
			images.Gather(x[:], "images", []int{i})
			images.Gather(w[:], "w", []int{i})
			images.Gather(g[:], "g", []int{i})
			images.Gather(b[:], "b", []int{i})
			if n := x[0]; w[0] != n/2 || g[0] != n || b != [2]float32{n / 255, 2 * n / 255} || images.Class("g", i) != int(n) {
				t.Errorf("sample %v has w %v, g %v, b %v", n, w, g, b)
			}
		}
	}
	var hot [6]float32
	set.Train.OneHot(hot[:], "g", []int{2, 0})
	expect.Equal(t, hot, [6]float32{0, 0, 1, 1, 0, 0}, "one-hot")
}

func TestColumnsThatCannotBeUsedAreRefused(t *testing.T) {
	images := FloatColumn("images", []int{1}, []float32{1, 2})
	for want, columns := range map[string][]*Values{
		`column "w" has values for 3 samples, want 2`:          {images, FloatColumn("w", nil, []float32{1, 2, 3})},
		`sample 1, column "w": got NaN, want a finite number`:  {images, FloatColumn("w", nil, []float32{1, float32(math.NaN())})},
		`sample 0, column "g": got 16777216`:                   {images, WholeColumn("g", nil, []int32{1 << 24, 0})},
		`want a column "images"`:                               {FloatColumn("w", nil, []float32{1})},
		`want labels of one whole number`:                      {images, FloatColumn("labels", nil, []float32{0, 1})},
		`a further column cannot have the name ""`:             {images, FloatColumn("", nil, []float32{0, 1})},
		`column "w": 3 values are not a whole number of value`: {images, FloatColumn("w", []int{2}, []float32{0, 1, 2})},
	} {
		expect.Error(t, expect.Err(FromColumns(columns...)), want)
	}
}

func TestColumnsOfATableKeepTheirTypesAndClasses(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", "a,b,sex,w,n\n1,2,m,0.5,3\n3,4,f,1,4\n")
	test := write(t, dir, "test.csv", "a,b,sex,w,n\n5,6,m,1,9\n")
	keys := ColumnNames{"group": {"sex"}, "weight": {"w"}, "count": {"n"}, "both": {"w", "n"}}
	s := &Files{Kind: "csv", Images: train, TestImages: test, Columns: keys}
	set, err := Load(t.Context(), s, nil, Both.WithColumns([]string{"both", "count", "group", "weight"}))
	fatal.If(t, err)
	want := "[{both [2] float32 [] [w n]  false [] false false} {count [] whole [] [n]  false [] false false} {group [] whole [f m] []  false [] false false} {weight [] float32 [] [w]  false [] false false}]"
	for _, got := range [][]Column{set.Train.Columns(), set.Test.Columns(), s.DescribeColumns(nil)} {
		text := got[2].Text
		if got[2].Text = ""; fmt.Sprint(got) != want || text != `line 2, column "sex": got "m", want a finite number` {
			t.Errorf("got %v and %q, want %v", got, text, want)
		}
	}
	if set.Train.Pixels() != 2 || set.Test.Class("group", 0) != 1 || fmt.Sprint(set.Test.All()["weight"]) != "[1]" {
		t.Errorf("%d values, group %d, weights %v", set.Train.Pixels(), set.Test.Class("group", 0), set.Test.All()["weight"])
	}
	s.TestImages = write(t, dir, "other.csv", "a,b,sex,w,n\n5,6,x,1,9\n")
	set, err = Load(t.Context(), s, nil, Both.WithColumns([]string{"group"}))
	fatal.If(t, err)
	if class := set.Test.Class("group", 0); class != UnknownLabel || !strings.Contains(strings.Join(set.Notes, "\n"), `has "x", which no training sample has (f, m)`) {
		t.Errorf("group %d, notes %q", class, set.Notes)
	}
	s.TestImages = write(t, dir, "holes.csv", "a,b,sex,w,n\n5,6,,1,9\n7,8,m,1,9\n")
	set, err = Load(t.Context(), s, nil, Both.WithColumns([]string{"group"}))
	fatal.If(t, err)
	expect.Slice(t, set.Test.Classes("group"), []int{UnknownLabel, 1}, "for a missing text")
}
