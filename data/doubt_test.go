package data

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// A column of line numbers, or of classes as numbers, is easily read as a column of values by mistake.
func TestDoubtfulColumnsOfValuesAreNoted(t *testing.T) {
	const rows = "id,mass,age,target,kind\n1,0.5,3,0,a\n2,0.7,5,1,b\n3,0.1,4,2,a\n4,0.9,9,0,b\n5,0.6,7,1,a\n"
	for name, c := range map[string]struct {
		source Files
		text   string
		want   []string
	}{
		"number and class":    {Files{Kind: "csv", Labels: "kind"}, rows, []string{`column "id" counts up by one`, `column "target" has 3 different whole numbers`, `write labels = "target"`}},
		"number of samples":   {Files{Kind: "csv", Labels: "kind", Names: "id"}, rows, []string{`column "target"`}},
		"both are named":      {Files{Kind: "csv", Labels: "target", Names: "id", Columns: ColumnNames{"images": {"mass", "age"}}}, rows, nil},
		"they are meant":      {Files{Kind: "csv", Labels: "kind", Columns: ColumnNames{"images": {"id", "mass", "target"}}}, rows, nil},
		"no name":             {Files{Kind: "csv", Names: "a"}, "a,,b\n1,5,2\n2,4,2.5\n3,2,2.1\n4,6,1\n5,1,4\n", []string{`column "" has no name`}},
		"name of an index":    {Files{Kind: "csv"}, "Index,b\n9,2\n7,3\n7,1\n1,3\n2,8\n", []string{`column "Index" looks like`}},
		"no line of names":    {Files{Kind: "csv", Labels: "b"}, "0.5,3,b\n0.7,5,a\n0.1,4,b\n0.9,2,a\n0.6,7,b\n0.2,1,a\n", []string{`names of the columns of values are numbers like their values ("0.5", "3"): if the first line is a sample`}},
		"numbers as names":    {Files{Kind: "csv", Labels: "b"}, "400,410,b\n0.7,0.5,a\n0.1,0.4,b\n0.9,0.2,a\n0.6,0.7,b\n0.2,0.1,a\n", nil},
		"counted":             {Files{Kind: "csv", Labels: "b"}, "0,1,b\n0.7,5.5,a\n0,0.4,b\n0.9,2.3,a\n0.6,0.7,b\n0.2,1,a\n", nil},
		"few rows":            {Files{Kind: "csv"}, "id,b\n1,2\n2,3\n", nil},
		"deviations":          {Files{Kind: "csv"}, "a,b,c\n1,2000,0\n2,3400,0\n0,1000,0\n1,500,0\n3,900,0\n", []string{`column "b" is 1.04e+03, that of "a" is 1.02`, `1 column with the same value in all rows, from which nothing can be learned: "c"`}},
		"scaled":              {Files{Kind: "csv", Scale: Scale{&Standardise{Centre: true}}}, "a,b,c\n1,2000,0\n2,3400,1\n0,1000,0\n1,500,0\n3,900,0\n", nil},
		"equal as float32":    {Files{Kind: "csv", Scale: Scale{&Standardise{Centre: true}}}, "a,b\n1,1000000000.5\n2,1000000001.5\n0,1000000002.5\n1,1000000000\n3,1000000003\n", nil},
		"constant, but meant": {Files{Kind: "csv", Columns: ColumnNames{"images": {"a", "c"}}}, "a,b,c\n1,2000,0\n2,3400,0\n0,1000,0\n1,500,0\n3,900,0\n", nil},
	} {
		c.source.Images = write(t, t.TempDir(), "x.csv", c.text)
		set, err := Load(context.Background(), &c.source, nil, Both)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		notes := strings.Join(set.Notes, "\n")
		if c.want == nil && notes != "" {
			t.Errorf("%s: got the notes %q, want none", name, notes)
		}
		for _, want := range c.want {
			expect.Contains(t, notes, want, name)
		}
	}
}

func TestColumnsAreDescribed(t *testing.T) {
	for text, want := range map[string]string{
		"id,a,b,species\n1,2,3,x\n":       "2 values (a, b), labels species, names id",
		"a,b,c,d,e,f,g,species\n":         "7 values (a, b, c, ..., g), labels species",
		"species,length [mm]\nx,1\ny,2\n": "1 value (length [mm]), labels species",
	} {
		s := &Files{Kind: "csv", Images: write(t, t.TempDir(), "x.csv", text), Labels: "species"}
		if strings.HasPrefix(text, "id") {
			s.Names = "id"
		}
		if got, err := s.Describe(context.Background()); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestMissingCellsAreCounted(t *testing.T) {
	s := &Files{Kind: "csv", Images: write(t, t.TempDir(), "x.csv", "m1,m2,label\n1,2,a\n1,NA,a\n,3,\n4,nan,b\n")}
	_, err := s.Load(context.Background(), nil, Both)
	const want = `3 of 8 cells of values are empty or NA (first: line 3, column "m2"); write missing = "nan" in the dataset table if it is a missing entry, `
	expect.Error(t, err, want)
}

// For a file that belongs to no data set, the message must not advise to set keys.
func TestRowsOfNoDataSetAreNotAdvisedToUseKeys(t *testing.T) {
	_, err := ReadRows(context.Background(), write(t, t.TempDir(), "x.csv", "a,b,kind\n1,2,x\n"), []int{3}, nil)
	if err == nil || !strings.Contains(err.Error(), `column "kind"`) || strings.Contains(err.Error(), "key") {
		t.Errorf("got %v", err)
	}
}

// returns is a source of another module that returns a given set.
type returns struct{ set *Set }

func (returns) Shape(Dirs) ([]int, bool)                         { return []int{2}, true }
func (r returns) Load(context.Context, Dirs, Need) (*Set, error) { return r.set, nil }

func TestLoadRefusesWhatASourceMustNotReturn(t *testing.T) {
	images := func(values ...float32) *Images {
		m, err := NewFloats([]int{2}, values, nil)
		fatal.If(t, err)
		return m
	}
	nan := float32(math.NaN())
	for want, set := range map[string]*Set{
		"returned no set": nil,
		"images of shape [2] in a set of shape [3]":   {Name: "own", Shape: []int{3}, Train: images(1, 2)},
		"own: sample 1, value 0: got NaN, want":       {Name: "own", Shape: []int{2}, Train: images(1, 2, nan, 4)},
		"own: sample 0, value 1: got -Inf, want":      {Name: "own", Shape: []int{2}, Test: images(1, float32(math.Inf(-1)))},
		"own: sample 2, value 1: got NaN, want a fin": {Name: "own", Shape: []int{2}, Train: images(1, 2, 3, 4, 5, nan).Subset([]int{0, 2})},
	} {
		_, err := Load(context.Background(), returns{set}, nil, Both)
		expect.As[*Error](t, err, want)
	}
	sound := &Set{Name: "own", Shape: []int{2}, Train: images(1, 2, nan, 4).Subset([]int{0})}
	if got, err := Load(context.Background(), returns{sound}, nil, Both); got != sound || err != nil {
		t.Errorf("a sound set: got %v", err)
	}
}

func TestPlacesNameLinesAndColumns(t *testing.T) {
	s := &Files{Kind: "csv", Images: write(t, t.TempDir(), "x.csv", "a,b,note\n1,2,\"two\nlines\"\n3,4,x\n"), Labels: "note"}
	set, err := s.Load(context.Background(), nil, Both)
	fatal.If(t, err)
	expect.Equal(t, set.Train.Subset([]int{1}).Place(0, 1), `line 4, column "b"`)
	colour, err := NewBytes([]int{2, 3, 3}, slices.Repeat([]byte{1}, 36), nil)
	fatal.If(t, err)
	expect.Equal(t, colour.Place(1, 11), "image 1, row 1, column 0, channel 2")
}

func TestFilesOfAnotherKindAreNamedWithTheirReader(t *testing.T) {
	table, folder := write(t, t.TempDir(), "x.csv", "a,b\n1,2\n"), t.TempDir()
	array := filepath.Join(folder, "x.npy")
	fatal.If(t, WriteRows(array, "images", []int{2}, []float32{1, 2}, Rows{}))
	for want, s := range map[string]Source{
		`labels and columns are read from .npy and IDX files; save them as .npy files, or samples, labels and columns in one file, which name = "csv" reads`: &Files{Kind: "npy", Images: array, Labels: table},
		`is a folder; a data set of name = "images" reads folders of images`:                                                                                 &Files{Kind: "csv", Images: folder},
		`is a file, want a folder of images; write name = "csv" in the dataset table`:                                                                        &Files{Kind: "images", Images: table, Channels: 1},
		`is a file, want a folder of images; write name = "npy" in the dataset table`:                                                                        &Files{Kind: "images", Images: array, Channels: 1},
		`is neither an NPY nor an IDX file; write name = "csv" in the dataset table`:                                                                         &Files{Kind: "npy", Images: table},
	} {
		expect.Error(t, expect.Err(s.Load(context.Background(), nil, Both)), want)
	}
}

// bombPNG returns the beginning of a PNG file, which is sufficient to read the size of the image.
func bombPNG(width, height uint32, depth, colour byte) []byte {
	chunk := append([]byte("IHDR"), make([]byte, 8)...)
	binary.BigEndian.PutUint32(chunk[4:], width)
	binary.BigEndian.PutUint32(chunk[8:], height)
	chunk = append(chunk, depth, colour, 0, 0, 0)
	b := append([]byte(pngMagic), 0, 0, 0, 13)
	b = append(b, chunk...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(chunk))
}

// Images are limited by their size in bytes, not by their number of pixels.
func TestDecodedImagesAreBoundedInBytes(t *testing.T) {
	for _, c := range []struct {
		side          uint32
		depth, colour byte
		bytes         int64 // size in bytes; 0 for an image that is rejected
	}{{16384, 8, 0, 1 << 30}, {16385, 8, 0, 0}, {16384, 8, 6, 1 << 30}, {16384, 16, 6, 0}, {11585, 16, 6, 8 * 11585 * 11585}, {11586, 16, 6, 0}} {
		var decoded int64
		err := openImage(write(t, t.TempDir(), "x.png", string(bombPNG(c.side, c.side, c.depth, c.colour))), func(f *imageFile) error {
			decoded = f.decoded()
			return nil
		})
		if c.bytes == 0 {
			expect.Error(t, err, " pixels of ", c)
			continue
		}
		fatal.If(t, err, c)
		expect.Equal(t, decoded, c.bytes, c)
	}
}

// Only one copy of an array of floats is in memory: reading the array and accessing its values allocates no second copy.
func TestAnArrayOfFloatsIsReadWithoutACopy(t *testing.T) {
	leftOutShort(t)
	const n, pixels = 1 << 14, 1 << 9
	path := filepath.Join(t.TempDir(), "x.npy")
	values := lists.Of(n*pixels, func(i int) float32 { return float32(i % 1001) })
	fatal.If(t, WriteRows(path, "images", []int{pixels}, values, Rows{}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows, err := ReadRows(context.Background(), path, []int{pixels}, nil)
	fatal.If(t, err)
	got := rows.Float32()
	runtime.ReadMemStats(&after)
	expect.Slice(t, got, values, "the values changed on the way")
	const size = 4 * n * pixels
	if used := after.TotalAlloc - before.TotalAlloc; used > size*3/2 { // buffers of a few MB are no copy
		t.Errorf("%d bytes were allocated for an array of %d", used, size)
	}
}
