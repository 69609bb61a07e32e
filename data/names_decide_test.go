package data

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Pairs have the columns of the training by their names, wherever they stand in a file.
func TestColumnsOfRatingsAreMatchedByName(t *testing.T) {
	like := &Files{Kind: "triples", File: write(t, t.TempDir(), "ratings.csv", "userId,movieId,rating\nu1,m1,3\nu2,m2,4\n"), Empty: refuseEmpty}
	for text, want := range map[string]string{
		"userId,movieId\nu1,m2\n":                "[u1] [m2] []",
		"movieId,userId\nm2,u1\n":                "[u1] [m2] []",
		"id,userId,movieId\n7,u1,m2\n":           "[u1] [m2] []",
		"rating,movieId,userId\n2,m2,u1\n":       "[u1] [m2] [2]",
		"movieId,stamp,userId,rating\nm2,9,u1,2": "[u1] [m2] [2]",
	} {
		p, err := ReadPairs(t.Context(), write(t, t.TempDir(), "pairs.csv", text), like)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := fmt.Sprint(p.Rows, p.Columns, p.Values); got != want || p.Notes != nil {
			t.Errorf("%q: got %s and the notes %q, want %s", text, got, p.Notes, want)
		}
	}
	p, err := ReadPairs(t.Context(), write(t, t.TempDir(), "pairs.csv", "user,film\nu1,m2\n"), like)
	if err != nil || fmt.Sprint(p.Rows, p.Columns) != "[u1] [m2]" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], `has no column "userId" and "movieId"`) {
		t.Errorf("other names: got %+v, %v; want the places and a note", p, err)
	}
	// Columns that the training had not are left out, with a warning.
	further, err := ReadRows(t.Context(), write(t, t.TempDir(), "more.csv", "movieId,userId,rating\nm7,u9,1\nm2,u9,5\nm8,u3,2\n"), []int{2}, InOrder(like, []string{"m1", "m2"}))
	fatal.If(t, err)
	columns, values := further.Entries(1)
	if !slices.Equal(further.RowNames(), []string{"u3", "u9"}) || !slices.Equal(columns, []int32{1}) || !slices.Equal(values, []float32{5}) ||
		len(further.Notes) != 1 || !strings.Contains(further.Notes[0], `left out: "m7", "m8"`) {
		t.Errorf("further rows: got %v: %v %v, %q", further.RowNames(), columns, values, further.Notes)
	}
	_, err = ReadRows(t.Context(), write(t, t.TempDir(), "more.csv", "movieId,userId,rating\nm7,u9,1\n"), []int{2}, InOrder(like, []string{"m1", "m2"}))
	expect.Error(t, err, `has no column of the training ("m1", "m2"), only "m7"`, "no column of the training")
}

func TestAnIndexColumnIsNoRow(t *testing.T) {
	source := &Files{Kind: "triples", File: write(t, t.TempDir(), "ratings.csv", ",userId,movieId,rating\n0,u1,m1,3\n1,u2,m2,4\n"), Empty: refuseEmpty}
	expect.Error(t, expect.Err(source.Load(t.Context(), Dirs{}, Both)), `row = "userId", column = "movieId", value = "rating"`, "a column without a name")
	source.File = write(t, t.TempDir(), "ratings.csv", "id,userId,movieId,rating\n0,u1,m1,3\n1,u2,m2,4\n")
	set, err := source.Load(t.Context(), Dirs{}, Both)
	if err == nil && (len(set.Notes) != 1 || !strings.Contains(set.Notes[0], `row = "userId"`)) {
		t.Errorf("a column id: got the notes %q, want the line to write", set.Notes)
	}
}

// loadedText loads a table with the label column y.
func loadedText(t *testing.T, text string) (*Set, error) {
	t.Helper()
	return Load(t.Context(), &Files{Kind: "csv", File: write(t, t.TempDir(), "table.csv", text), Labels: "y"}, Dirs{}, Both)
}

func TestLabelsAreReadByOneRule(t *testing.T) {
	for _, c := range []struct {
		labels  []string
		classes int
		numbers []int
		note    string
	}{
		{[]string{"0", "1", "2", "1"}, 3, []int{0, 1, 2, 1}, ""},
		{[]string{"-1", "0", "1", "-1"}, 2, []int{-1, 0, 1, -1}, "2 of 4 labels are -1 and count as unknown"},
		{[]string{"-1", "1", "1", "-1"}, 2, []int{0, 1, 1, 0}, ""},
		{[]string{"1", "2", "3", "3"}, 4, []int{1, 2, 3, 3}, "numbers of 4 classes, from 0 to 3, but 1 of them have no sample: 0"},
		{[]string{"1001", "1003", "999", "1003"}, 3, []int{1, 2, 0, 2}, ""},
		{[]string{"cat", "nan", "NA", "dog"}, 2, []int{0, -1, -1, 1}, "2 of 4 samples have no class"},
		{[]string{"cat", "?", "", "None"}, 2, []int{1, -1, -1, 0}, "2 of 4 samples have no class"},
		{[]string{"True", "False", "True", "True"}, 2, []int{1, 0, 1, 1}, ""},
	} {
		text := "a,y\n"
		for i, label := range c.labels {
			text += fmt.Sprintf("%d.5,%s\n", i*i, label)
		}
		set, err := loadedText(t, text)
		if err != nil {
			t.Errorf("%q: %v", c.labels, err)
			continue
		}
		if n, _ := set.ClassCount(); n != c.classes || !slices.Equal(set.Train.Labels(), c.numbers) {
			t.Errorf("%q: got %d classes, labels %v; want %d, %v", c.labels, n, set.Train.Labels(), c.classes, c.numbers)
		}
		if notes := strings.Join(set.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%q: got the notes %q, want %q", c.labels, notes, c.note)
		}
	}
}

func TestALabelColumnOccursOnce(t *testing.T) {
	expect.Error(t, expect.Err(loadedText(t, "a,b,y,y\n1,2,0,0\n3,5,1,1\n")), `column "y" occurs twice`)
}

func TestColumnsOfValuesWithOneNameAreAWarning(t *testing.T) {
	set, err := loadedText(t, "a,b,b,y\n1,2,7,0\n3,5,9,1\n")
	if err != nil || len(set.Notes) != 1 || !strings.Contains(set.Notes[0], `several columns of values have the name "b"`) {
		t.Errorf("got %v, %v; want a note", set, err)
	}
}

func TestAnIdentifierIsNoFeature(t *testing.T) {
	text := "customerId,a,y\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d.5,%d\n", (i*7919)%9973, i*i, i%2)
	}
	set, err := loadedText(t, text)
	fatal.If(t, err)
	if !slices.ContainsFunc(set.Notes, func(note string) bool { return strings.Contains(note, `names = "customerId"`) }) {
		t.Errorf("got the notes %q, want the line to write", set.Notes)
	}
}

func TestASetIsDescribed(t *testing.T) {
	source := &Files{Kind: "csv", File: write(t, t.TempDir(), "table.csv", "a,b,y,w\n1,2.5,cat,7\n3,,dog,8\n5,0.5,,9\n"), Labels: "y", Missing: Missing{missingNaN}, Columns: ColumnNames{"weight": {"w"}}}
	set, err := Load(t.Context(), source, Dirs{}, Need{Train: true, Test: true, Columns: []string{"weight"}})
	fatal.If(t, err)
	want := []Described{
		{Name: "", Type: "numbers", Range: "0.5 to 5", Missing: 1},
		{Name: "a", Type: "whole numbers", Range: "1 to 5", First: "1 3 5"},
		{Name: "b", Type: "numbers", Range: "0.5 to 2.5", Missing: 1, First: "2.5 0.5"},
		{Name: "weight", Type: "whole numbers", Range: "7 to 9", First: "7 8 9"},
	}
	if got, others := set.Describe(); others != 0 || !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	expect.Equal(t, set.DescribeClasses(), "2 classes (cat: 1, dog: 1), 1 without a class")
}

func TestEqualSamplesAreAWarning(t *testing.T) {
	set, err := Load(t.Context(), &Files{Kind: "csv", File: write(t, t.TempDir(), "table.csv", "a,b\n0,0\n0,0\n0,0\n")}, Dirs{}, Both)
	if err != nil || !slices.ContainsFunc(set.Notes, func(note string) bool { return strings.Contains(note, "all 3 samples are equal: every value is 0") }) {
		t.Errorf("got %v, %v; want a note", set, err)
	}
}

func TestTestSamplesOfTheTrainingAreAWarning(t *testing.T) {
	train := "a,b\n1,2\n3,4\n5,6\n7,8\n"
	for test, want := range map[string]string{
		train:                       "4 of 4 test samples",
		"a,b\n5,6\n2,1\n7,8\n0,0\n": "2 of 4 test samples",
		"a,b\n5,6\n2,1\n7,9\n0,0\n": "", // one may be by chance
		"b,a\n1,2\n3,4\n":           "",
	} {
		set, err := Load(t.Context(), &Files{Kind: "csv", File: write(t, t.TempDir(), "train.csv", train), Test: write(t, t.TempDir(), "test.csv", test)}, Dirs{}, Both)
		fatal.If(t, err)
		if got := strings.Join(set.Notes, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("test samples %q: got %q, want %q", test, got, want)
		}
	}
	rows := strings.Repeat("1,0\n0,1\n", 4) // of few values: equal samples are no sign
	set, err := Load(t.Context(), &Files{Kind: "csv", File: write(t, t.TempDir(), "train.csv", "a,b\n"+rows), Test: write(t, t.TempDir(), "test.csv", "a,b\n"+rows)}, Dirs{}, Both)
	if err != nil || set.Notes != nil {
		t.Errorf("rows that repeat themselves: got %q, %v", set.Notes, err)
	}
}

// A file of one array has no name for it: the name of the training's array does not matter.
func TestAFileOfOneArrayIsReadByAnyName(t *testing.T) {
	like := &Files{Kind: "npz", File: "testdata/arrays.npz", Tensor: "x"}
	path := write(t, t.TempDir(), "x.npy", npyBytes("<f4", "False", "(2, 2)", binary.LittleEndian, []float32{1, 2, 3, 4}))
	rows, err := ReadRows(t.Context(), path, []int{2}, like)
	if err != nil || !slices.Equal(rows.Float32(), []float32{1, 2, 3, 4}) {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestASeparatorAtTheEndOfEveryLineIsNoColumn(t *testing.T) {
	for text, problem := range map[string]string{
		"a,b,y,\n1,2,0,\n3,5,1,\n":     "",
		"a,b,y,,\n1,2,0,,\n3,5,1, ,\n": "",
		"a,b,y,\n1,2,0,\n3,5,1,7\n":    `line 3 has the value "7" in column 4, which has no name in the first line`,
		",a,y,\nm,2,0,\nn,5,1,\n":      "",
	} {
		set, err := loadedText(t, text)
		switch {
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
			t.Errorf("%q: got the error %v, want %q", text, err, problem)
		case problem == "" && (err != nil || set.Train.Len() != 2 || (set.Train.SampleNames() != nil) != (text[0] == ',')):
			t.Errorf("%q: got %v", text, err)
		}
	}
}
