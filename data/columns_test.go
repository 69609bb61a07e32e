package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/numeral"
)

func TestWrittenColumnsAreReadBackAsTheKeysSay(t *testing.T) {
	own := &Files{Kind: "csv", Names: "id"}
	own.Labels = "species"
	chosen := &Files{Kind: "csv", Names: "id", Columns: ColumnNames{ImagesColumn: {"4*"}}}
	chosen.Labels = "species"
	arrays := &Files{Kind: "npz"}
	arrays.Labels = "y"
	numbers, words := []string{"400", "410", "420"}, []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		columns       []string
		named, labels bool
		like          Source
		header        string
	}{
		"numbers":                  {numbers, false, false, own, "0,1,2"},
		"numbers, chosen":          {numbers, false, false, chosen, "0,1,2"},
		"numbers that count":       {[]string{"1", "2", "3"}, false, false, own, "1,2,3"},
		"numbers beside labels":    {numbers, false, true, own, "label,400,410,420"},
		"chosen beside labels":     {numbers, true, true, chosen, "name,label,400,410,420"},
		"words":                    {words, true, true, own, "name,label,a,b,c"},
		"of arrays":                {nil, false, true, arrays, "label,0,1,2"},
		"a value like the labels":  {[]string{"a", "label", "c"}, true, true, own, "name,label,0,1,2"},
		"a value like the names":   {[]string{"name", "b", "c"}, true, false, own, "name,0,1,2"},
		"a value named name":       {[]string{"name", "b", "c"}, false, true, own, "label,name,b,c"},
		"values like names unused": {[]string{"name", "label", "c"}, false, false, own, "name,label,c"},
		"of no data set":           {words, true, true, nil, "name,label,a,b,c"},
	} {
		values := []float32{1, 2, 3, 4, 5, 6}
		about := Rows{Images: &Images{n: 2}, Columns: c.columns}
		if c.named {
			about.Names = []string{"x", "y"}
		}
		if c.labels {
			about.Images.labels, about.Classes = []int{1, 0}, []string{"owl", "wren"}
		}
		path := filepath.Join(t.TempDir(), "x.csv")
		if err := WriteRows(path, "vectors", []int{3}, values, about); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := os.ReadFile(path)
		if first, _, _ := strings.Cut(string(text), "\n"); err != nil || first != c.header {
			t.Errorf("%s: the first line is %q, want %q: %v", name, first, c.header, err)
		}
		got, err := ReadRows(background, path, []int{3}, c.like)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.Float32(), values) || !slices.Equal(got.Names, about.Names) || !slices.Equal(got.labelTexts(), about.labelTexts()) {
			t.Errorf("%s: got %v %q %q", name, got.Float32(), got.Names, got.labelTexts())
		}
	}
}

func TestColumnsOfTheDataSetAreStillFoundByTheirNames(t *testing.T) {
	dir := t.TempDir()
	own := &Files{Kind: "csv", Names: "id", Columns: ColumnNames{ImagesColumn: {"1", "2"}}}
	own.Labels = "species"
	path := write(t, dir, "counted.csv", "species,0,1,2,3\nowl,1,2,3,4\n")
	got, err := ReadRows(background, path, []int{2}, own)
	if err != nil || !slices.Equal(got.Float32(), []float32{2, 3}) || !slices.Equal(got.labelTexts(), []string{"owl"}) {
		t.Errorf("chosen among numbered columns: %+v, %v", got, err)
	}
}

func TestColumnsAreTakenByTheNamesOfTheTraining(t *testing.T) {
	for name, c := range map[string]struct {
		train, test string
		globs       []string
		want        []float32
	}{
		"another order":           {"mass,wing,label", "wing,label,mass\n100,0,1\n", nil, []float32{1, 100}},
		"another order, chosen":   {"mass,wing,label", "wing,label,other,mass\n100,0,7,1\n", []string{"mass", "w*"}, []float32{1, 100}},
		"numbers":                 {"label,0,1", "1,0,label\n100,1,0\n", nil, []float32{1, 100}},
		"other names":             {"mass,wing,label", "span,weight,label\n1,100,0\n", nil, []float32{1, 100}},
		"a name twice, in both":   {"wing,wing,label", "wing,wing,label\n1,100,0\n", nil, []float32{1, 100}},
		"a name twice, before":    {"wing,wing,label", "mass,wing,label\n1,100,0\n", nil, []float32{1, 100}},
		"the order of the file":   {"mass,wing,label", "mass,wing,label\n1,100,0\n", nil, []float32{1, 100}},
		"no names, but the count": {"mass,wing", "0,1\n1,100\n", nil, []float32{1, 100}},
	} {
		dir := t.TempDir()
		zeros := strings.Repeat("0,", strings.Count(c.train, ",")) + "0\n"
		source := &Files{Kind: "csv", Images: write(t, dir, "train.csv", []byte(c.train+"\n"+zeros)), Columns: ColumnNames{ImagesColumn: c.globs}}
		source.TestImages = write(t, dir, "test.csv", []byte(c.test))
		set, err := source.Load(background, nil, Need{Test: true})
		if err != nil || !slices.Equal(set.Test.Float32(), c.want) {
			t.Errorf("%s: test samples %v, %v", name, set, err)
			continue
		}
		columns, _, err := source.ValueNames(background)
		fatal.If(t, err)
		rows, err := ReadRows(background, source.TestImages, []int{2}, InOrder(source, columns))
		if err != nil || !slices.Equal(rows.Float32(), c.want) {
			t.Errorf("%s: rows %v, %v", name, rows, err)
		}
	}
}

func TestWithoutNamesColumnsKeepTheOrderOfTheFile(t *testing.T) {
	path := write(t, t.TempDir(), "x.csv", "wing,mass\n100,1\n")
	for _, like := range []Source{nil, InOrder(nil, []string{"mass", "wing"}), InOrder(&Files{Kind: "csv"}, nil), InOrder(&Swimmer{}, []string{"mass", "wing"})} {
		if rows, err := ReadRows(background, path, []int{2}, like); err != nil || !slices.Equal(rows.Float32(), []float32{100, 1}) {
			t.Errorf("%T: %v, %v", like, rows, err)
		}
	}
}

// Columns with other names than those of the training are read in the order of the file, with a warning.
func TestColumnsWithOtherNamesAreWarnedOf(t *testing.T) {
	for header, want := range map[string]string{
		"a,b": "", "b,a": "", "0,1": "", // numbers are what WriteRows writes without names
		"c,d": `has no column "a", which the training had: the columns are read in the order of the file, column 1 of values, "c", as "a"`,
	} {
		path := write(t, t.TempDir(), "x.csv", header+"\n1,2\n")
		rows, err := ReadRows(background, path, []int{2}, InOrder(&Files{Kind: "csv"}, []string{"a", "b"}))
		fatal.If(t, err)
		if got := strings.Join(rows.Notes, "\n"); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: got the warnings %q, want %q", header, got, want)
		}
		set, err := Load(background, &Files{Kind: "csv", File: write(t, t.TempDir(), "train.csv", "a,b\n5,6\n7,9\n"), TestImages: path}, nil, Both)
		fatal.If(t, err)
		if got := strings.Join(set.Notes, "\n"); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: got the warnings %q of the test samples, want %q", header, got, want)
		}
	}
}

// If only some columns have the names of the training, their places are no names for the others, in any table.
func TestSomeNamesOfTheTrainingAreAnError(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", "mass,wing,label\n5,6,0\n7,9,1\n")
	for header, want := range map[string]string{
		"wing,weight,label": `missing: "mass"; unknown to the training: "weight"`,
		"mass,Wing,label":   `missing: "wing"; unknown to the training: "Wing"; did you mean "wing" by "Wing"?`,
		"wing,wing,label":   `missing: "mass"`,
		"mass,label,0":      `missing: "wing"; unknown to the training: "0"`,
	} {
		path := write(t, t.TempDir(), "x.csv", header+"\n1,2,1\n")
		like := InOrder(&Files{Kind: "csv"}, []string{"mass", "wing"})
		_, read := ReadRows(background, path, []int{2}, like)
		_, completed := Complete(background, path, filepath.Join(t.TempDir(), "out.csv"), []int{2}, like, nines)
		_, loaded := Load(background, &Files{Kind: "csv", File: train, TestImages: path}, nil, Both)
		for how, err := range map[string]error{"rows": read, "completed": completed, "test samples": loaded} {
			expect.Error(t, err, want, header, how)
		}
	}
	ratings := &Files{Kind: "triples", File: write(t, t.TempDir(), "ratings.csv", "userId,movieId,rating\nu1,m1,3\n"), Empty: refuseEmpty}
	if _, err := ReadPairs(background, write(t, t.TempDir(), "pairs.csv", "movieId,user\nm1,u1\n"), ratings); err == nil || !strings.Contains(err.Error(), `has no column "userId", which the training had, only "movieId", "user"`) {
		t.Errorf("pairs: got the error %v", err)
	}
}

// A class of no training sample is an error with its line, a text of a further column a warning.
func TestUnknownTextsHaveTheirLine(t *testing.T) {
	like := &Files{Kind: "csv", Labels: "y", Columns: ColumnNames{"ward": {"ward"}}}
	known := []Column{{Name: LabelsColumn, Type: Whole, Names: []string{"a", "b"}}, {Name: "ward", Type: Whole, Names: []string{"east", "west"}}}
	for text, want := range map[string]string{
		"a,west\nb,north": `column "ward": line 3 has "north"`,
		"b,west\nc,west":  `line 3 has the class "c"`,
	} {
		path := write(t, t.TempDir(), "x.csv", "y,ward,v\n"+strings.ReplaceAll(text, "\n", ",1\n")+",2\n")
		rows, err := ReadRows(background, path, []int{1}, Reading(like, known...))
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(rows.Notes, "\n")
		}
		expect.Contains(t, got, want, text)
	}
}

// What is said of values on disk is the size of their file.
func TestTheSizeOfATableOnDiskIsThatOfItsFile(t *testing.T) {
	const n, width = 500, 60
	text := strings.Repeat(strings.Repeat("1.5,", width-1)+"2\n", n)
	path := write(t, t.TempDir(), "x.csv", "v"+strings.Join(lists.Of(width, strconv.Itoa), ",v")+"\n"+text)
	for bytes, scale := range map[int64]Scale{4: nil, 8: {&Standardise{Centre: true}}} {
		set, err := (&Files{Kind: "csv", File: path, Memory: LeastBudget, Scale: scale}).Load(t.Context(), nil, Both)
		if want := numeral.Bytes(bytes*n*width) + " of values in a temporary file"; err != nil || !strings.HasPrefix(strings.Join(set.Kept, "\n"), want) {
			t.Errorf("%d bytes a value: got %v, %v, want %s", bytes, set, err, want)
		}
	}
}
