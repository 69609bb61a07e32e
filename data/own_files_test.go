package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// ownFiles contains the expected contents of the files that testdata/own_files.py writes.
type ownFiles struct {
	Samples, Brain, Half, Standardise, Minmax [][]float32
	Classes                                   []string
	AllHalves                                 string `json:"all_halves"`
	Picture, Gif, Stretch, Crop, Pad          [][][]byte
}

func own(t *testing.T) (o ownFiles) {
	t.Helper()
	text, err := os.ReadFile("testdata/own_files.json")
	if err == nil {
		var numbers struct{ Picture, Gif, Stretch, Crop, Pad [][][]int }
		err = errors.Join(json.Unmarshal(text, &numbers), json.Unmarshal(withoutPictures(t, text), &o))
		o.Picture, o.Gif, o.Stretch, o.Crop, o.Pad = toPixels(numbers.Picture), toPixels(numbers.Gif), toPixels(numbers.Stretch),
			toPixels(numbers.Crop), toPixels(numbers.Pad)
	}
	fatal.If(t, err)
	return o
}

// withoutPictures removes the lists of bytes, which encoding/json would read as texts.
func withoutPictures(t *testing.T, text []byte) []byte {
	var all map[string]any
	fatal.If(t, json.Unmarshal(text, &all))
	for _, name := range []string{"picture", "gif", "stretch", "crop", "pad"} {
		delete(all, name)
	}
	text, err := json.Marshal(all)
	fatal.If(t, err)
	return text
}

func toPixels(rows [][][]int) (out [][][]byte) {
	for _, row := range rows {
		line := lists.Map(row, func(p []int) []byte { return []byte{byte(p[0]), byte(p[1]), byte(p[2])} })
		out = append(out, line)
	}
	return out
}

// holds checks that samples have the expected values, up to a difference of most.
func holds(t *testing.T, what string, m *Images, want [][]float32, most float64) {
	t.Helper()
	got := m.Float32()
	if flat := slices.Concat(want...); len(got) != len(flat) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(flat))
	} else {
		for i, w := range flat {
			if math.Abs(float64(got[i]-w)) > most {
				t.Errorf("%s: value %d is %g, want %g", what, i, got[i], w)
				return
			}
		}
	}
}

func columns(rows [][]float32, from, to int) (out [][]float32) {
	for _, row := range rows {
		out = append(out, row[from:to])
	}
	return out
}

func TestEveryFloat16IsThatOfNumPy(t *testing.T) {
	h := sha256.New()
	for i := range 1 << 16 {
		if v := fromHalf(uint16(i)); v-v == 0 {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		} else if math.IsNaN(float64(v)) != (i&0x3ff != 0) {
			t.Errorf("%#x is %v", i, v)
		}
	}
	expect.Equal(t, hex.EncodeToString(h.Sum(nil)), own(t).AllHalves, "the float16 numbers differ from NumPy's")
}

func TestVectorsAreReadFromEveryFormat(t *testing.T) {
	o := own(t)
	three := columns(o.Samples, 0, 3)
	at := func(name string) string { return filepath.Join("testdata", name) }
	for name, c := range map[string]struct {
		source  Source
		want    [][]float32
		classes []string
		labels  []int
	}{
		"npy":         {&Files{Kind: "npy", Images: "testdata/half.npy"}, o.Half, nil, nil},
		"npz":         {&Files{Kind: "npz", File: at("arrays.npz"), Labels: "y", Tensor: "x"}, o.Samples, []string{"owl", "wren", "çà et là"}, []int{1, 0, 1, 2, 0, 0}},
		"npz numbers": {&Files{Kind: "npz", File: at("codes.npz")}, o.Samples, []string{"k", "l", "m"}, []int{2, 0, 2, 1, -1, 0}},
		"bfloat16":    {&Files{Kind: "safetensors", File: at("tensors.safetensors"), Tensor: "acts"}, o.Brain, nil, nil},
		"float16":     {&Files{Kind: "safetensors", File: at("tensors.safetensors"), Tensor: "half"}, o.Half, nil, nil},
		"csv":         {&Files{Kind: "csv", File: at("birds.csv"), Labels: "species", Names: "id"}, three, []string{"owl", "wren", "çà et là"}, []int{1, 0, 1, 2, 0, 0}},
		"csv columns": {&Files{Kind: "csv", File: at("birds.csv"), Columns: ColumnNames{ImagesColumn: {"w*", "mass"}}}, picked(o.Samples, 0, 2), nil, nil},
	} {
		set, err := c.source.Load(background, nil, Both)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shape, ok := c.source.Shape(nil)
		if !ok || !slices.Equal(shape, set.Shape) || !slices.Equal(shape, []int{len(c.want[0])}) {
			t.Errorf("%s: shape %v without reading values, %v with them", name, shape, set.Shape)
		}
		holds(t, name, set.Train, c.want, 0)
		expect.Slice(t, set.Classes, c.classes, name, "classes")
		expect.Slice(t, set.Train.Labels(), c.labels, name, "classes")
		if err := set.Doubt(); err != nil || len(set.Files) != 1 || len(set.Files[0].SHA256) != 64 {
			t.Errorf("%s: %v, files %v", name, err, set.Files)
		}
	}
}

// picked returns two columns of rows.
func picked(rows [][]float32, a, b int) (out [][]float32) {
	for _, row := range rows {
		out = append(out, []float32{row[a], row[b]})
	}
	return out
}

func TestTestSamplesHaveTheClassesOfTheTrainingSamples(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", "a,b,label\n1,2,owl\n3,4,wren\n5,6,\n")
	test := write(t, dir, "test.csv", "a,b,label\n7,8,wren\n")
	source := &Files{Kind: "csv", Images: train, TestImages: test}
	for _, need := range []Need{Both, {Test: true}} {
		set, err := source.Load(background, nil, need)
		fatal.If(t, err)
		if !slices.Equal(set.Test.Labels(), []int{1}) || (set.Train != nil) != need.Train || !set.HasTest {
			t.Errorf("%+v: labels %v of %q", need, set.Test.Labels(), set.Classes)
		}
	}
	write(t, dir, "test.csv", "a,b,label\n7,8,tit\n")
	expect.Error(t, expect.Err(source.Load(background, nil, Both)), `"tit", which no training sample has`, "a class of no training sample")
	both := &Files{Kind: "npz", Images: "testdata/arrays.npz", Tensor: "x", TestTensor: "x", TestLabels: "y"}
	both.Labels = "y"
	if set, err := both.Load(background, nil, Both); err != nil || set.Test.Len() != 6 || !both.HasTest() {
		t.Errorf("test samples in the same file: %v", err)
	}
}

func TestTablesThatCannotBeReadSayWhy(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, dir, name, text) }
	npz, err := os.ReadFile("testdata/codes.npz")
	fatal.If(t, err)
	damaged := slices.Clone(npz)
	damaged[200] ^= 1
	for want, source := range map[string]Source{
		"the first line holds numbers":                                         &Files{Kind: "csv", Images: file("numbers.csv", "0.5,1\n2,3\n")},
		`line 3, column "b": got "x", want a finite number`:                    &Files{Kind: "csv", Images: file("text.csv", "a,b\n1,2\n3,x\n")},
		"line 3 has 1 cell, want 2":                                            &Files{Kind: "csv", Images: file("ragged.csv", "a,b\n1,2\n3\n")},
		`has no column "kind", want "a", "b"`:                                  &Files{Kind: "csv", Images: file("columns.csv", "a,b\n1,2\n"), Labels: "kind"},
		"has no line after the first":                                          &Files{Kind: "csv", Images: file("head.csv", "a,b\n")},
		fmt.Sprintf("did you mean %q", dir+"/head.csv"):                        &Files{Kind: "csv", Images: dir + "/haed.csv"},
		fmt.Sprintf("did you mean %q", dir):                                    &Files{Kind: "csv", Images: dir[:len(dir)-1] + "q/head.csv"},
		"is empty":                                                             &Files{Kind: "csv", Images: file("empty.csv", "")},
		"1 of 2 cells of values are empty or NA (first: line 2, column \"b\")": &Files{Kind: "csv", Images: file("nan.csv", "a,b\n1,NaN\n")},
		"name that of the samples with the key tensor":                         &Files{Kind: "npz", Images: "testdata/arrays.npz"},
		`has no array "z"`:                                                     &Files{Kind: "npz", Images: "testdata/arrays.npz", Tensor: "z"},
		"checksum":                                                             &Files{Kind: "npz", Images: write(t, dir, "damaged.npz", damaged)},
		"it was cut short or changed":                                          &Files{Kind: "npz", Images: write(t, dir, "cut.npz", npz[:len(npz)/2])},
		"the file is cut off":                                                  &Files{Kind: "safetensors", Images: write(t, dir, "cut.safetensors", safetensorsOf(`{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 4))},
		"want [0,16] for F32":                                                  &Files{Kind: "safetensors", Images: write(t, dir, "short.safetensors", safetensorsOf(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,8]}}`, 8))},
		"invalid shape":                                                        &Files{Kind: "safetensors", Images: write(t, dir, "huge.safetensors", safetensorsOf(fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,8]}}`, math.MaxInt, math.MaxInt), 8))},
		`write name = "npz"`:                                                   &Files{Kind: "npy", Images: "testdata/codes.npz"},
		`write name = "csv"`:                                                   &Files{Kind: "npy", Images: "testdata/birds.csv"},
		`write name = "safetensors"`:                                           &Files{Kind: "npy", Images: "testdata/tensors.safetensors"},
	} {
		_, err := source.Load(background, nil, Both)
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Path == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want an *Error with %q", err, want)
		}
	}
}

// safetensorsOf returns a file with the given header and the given number of bytes of values.
func safetensorsOf(header string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, values)...)
}

// The table has the form that pandas writes with tabs: a column of row numbers without a name, and a missing label.
func TestATypeThatIsNotReadIsNamed(t *testing.T) {
	head := `{"x":{"dtype":"F8_E4M3","shape":[3,2],"data_offsets":[0,6]}}`
	path := write(t, t.TempDir(), "x.safetensors", string(rune(len(head)))+"\x00\x00\x00\x00\x00\x00\x00"+head+"sample")
	expect.Error(t, expect.Err(ReadRows(t.Context(), path, nil, nil)), `type "F8_E4M3" are not read`)
}

func TestEmptyCellsBetweenTabs(t *testing.T) {
	path := write(t, t.TempDir(), "birds.tsv", "\ta\tlabel\tb\nx\t1\towl\t2\ny\t3\t\t4\n")
	rows, err := ReadRows(background, path, []int{2}, nil)
	fatal.If(t, err)
	if got := rows.Float32(); !slices.Equal(got, []float32{1, 2, 3, 4}) || !slices.Equal(rows.Labels(), []int{0, UnknownLabel}) || !slices.Equal(rows.Names, []string{"x", "y"}) {
		t.Errorf("got %v, labels %v, names %q", got, rows.Labels(), rows.Names)
	}
}

// Reading a tensor of one number, or with one axis, returns an error. Determining its shape never panics.
func TestATensorWithoutSamplesHasNoShape(t *testing.T) {
	var zipped bytes.Buffer
	err := writeNPZ(&zipped, []namedArray{
		{"none", func(w io.Writer) error { return WriteNPY(w, []int{}, []float32{7}) }},
		{"one", func(w io.Writer) error { return WriteNPY(w, []int{3}, []float32{1, 2, 3}) }},
	})
	fatal.If(t, err)
	header := `{"none":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"one":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}}`
	plain := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+strings.Repeat("\x00", 16)...)
	dir := t.TempDir()
	for _, tensor := range []string{"none", "one"} {
		for _, s := range []Source{
			&Files{Kind: "npz", Images: write(t, dir, "x.npz", zipped.Bytes()), Tensor: tensor},
			&Files{Kind: "safetensors", Images: write(t, dir, "x.safetensors", plain), Tensor: tensor},
		} {
			if shape, ok := s.Shape(nil); ok {
				t.Errorf("%T %s: got shape %v", s, tensor, shape)
			}
			expect.As[*Error](t, expect.Err(s.Load(background, nil, Both)), "", s, tensor)
		}
	}
}
