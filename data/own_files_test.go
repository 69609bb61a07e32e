package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownFiles is what testdata/own_files.py says its files hold.
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
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// withoutPictures leaves out the lists of bytes, which encoding/json would read as texts.
func withoutPictures(t *testing.T, text []byte) []byte {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"picture", "gif", "stretch", "crop", "pad"} {
		delete(all, name)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func toPixels(rows [][][]int) (out [][][]byte) {
	for _, row := range rows {
		var line [][]byte
		for _, p := range row {
			line = append(line, []byte{byte(p[0]), byte(p[1]), byte(p[2])})
		}
		out = append(out, line)
	}
	return out
}

// holds wants samples to have these values.
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
	if got := hex.EncodeToString(h.Sum(nil)); got != own(t).AllHalves {
		t.Errorf("the float16 numbers differ from NumPy's")
	}
}

func TestVectorsAreReadFromEveryFormat(t *testing.T) {
	o := own(t)
	three := columns(o.Samples, 0, 3)
	at := func(name string) Tables { return Tables{Images: filepath.Join("testdata", name)} }
	birds := at("birds.csv")
	birds.Labels = "species"
	labelled := at("arrays.npz")
	labelled.Labels = "y"
	for name, c := range map[string]struct {
		source  Source
		want    [][]float32
		classes []string
		labels  []int
	}{
		"npy":         {&NPY{Arrays{Images: "testdata/half.npy"}}, o.Half, nil, nil},
		"npz":         {&NPZ{labelled, Named{Tensor: "x"}}, o.Samples, []string{"owl", "wren", "çà et là"}, []int{1, 0, 1, 2, 0, 0}},
		"npz numbers": {&NPZ{at("codes.npz"), Named{}}, o.Samples, []string{"k", "l", "m"}, []int{2, 0, 2, 1, -1, 0}},
		"bfloat16":    {&Safetensors{at("tensors.safetensors"), Named{Tensor: "acts"}}, o.Brain, nil, nil},
		"float16":     {&Safetensors{at("tensors.safetensors"), Named{Tensor: "half"}}, o.Half, nil, nil},
		"csv":         {&CSV{Tables: birds, Names: "id"}, three, []string{"owl", "wren", "çà et là"}, []int{1, 0, 1, 2, 0, 0}},
		"csv columns": {&CSV{Tables: at("birds.csv"), Columns: []string{"w*", "mass"}}, picked(o.Samples, 0, 2), nil, nil},
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
		if !slices.Equal(set.Classes, c.classes) || !slices.Equal(set.Train.Labels(), c.labels) {
			t.Errorf("%s: classes %q, labels %v, want %q, %v", name, set.Classes, set.Train.Labels(), c.classes, c.labels)
		}
		if err := set.Doubt(); err != nil || len(set.Files) != 1 || len(set.Files[0].SHA256) != 64 {
			t.Errorf("%s: %v, files %v", name, err, set.Files)
		}
	}
}

// picked are two columns.
func picked(rows [][]float32, a, b int) (out [][]float32) {
	for _, row := range rows {
		out = append(out, []float32{row[a], row[b]})
	}
	return out
}

func TestTestSamplesHaveTheClassesOfTheTrainingSamples(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", []byte("a,b,label\n1,2,owl\n3,4,wren\n5,6,\n"))
	test := write(t, dir, "test.csv", []byte("a,b,label\n7,8,wren\n"))
	source := &CSV{Tables: Tables{Images: train, TestImages: test}}
	for _, need := range []Need{Both, {Test: true}} {
		set, err := source.Load(background, nil, need)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(set.Test.Labels(), []int{1}) || (set.Train != nil) != need.Train || !set.HasTest {
			t.Errorf("%+v: labels %v of %q", need, set.Test.Labels(), set.Classes)
		}
	}
	write(t, dir, "test.csv", []byte("a,b,label\n7,8,tit\n"))
	if _, err := source.Load(background, nil, Both); err == nil || !strings.Contains(err.Error(), `"tit", which no training sample has`) {
		t.Errorf("a class of no training sample: %v", err)
	}
	both := &NPZ{Tables{Images: "testdata/arrays.npz"}, Named{Tensor: "x", TestTensor: "x", TestLabels: "y"}}
	both.Labels = "y"
	if set, err := both.Load(background, nil, Both); err != nil || set.Test.Len() != 6 || !both.HasTest() {
		t.Errorf("test samples in the same file: %v", err)
	}
}

func TestScalingHasTheStatisticsOfTheFittedSamplesOnly(t *testing.T) {
	o := own(t)
	for _, c := range []struct {
		scale Scale
		want  [][]float32
	}{{Scale{Method: scaleStandardise}, o.Standardise}, {Scale{Method: scaleMinmax}, o.Minmax}} {
		images, err := NewFloats([]int{5}, slices.Concat(o.Samples...), nil)
		if err != nil {
			t.Fatal(err)
		}
		splits, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Scale: c.scale}).Split(Selection{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c.scale.Method, splits.Fit, c.want, 2e-6)
		back := splits.Fit.Float32()
		splits.Scaling.Undo(back)
		again, err := NewFloats([]int{5}, back, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c.scale.Method+" undone", again, o.Samples, 5e-6)
		first, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Test: images, HasTest: true, Scale: c.scale}).Split(Selection{Limit: 4}, 1)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := c.scale.Fit(images.Slice(0, 4))
		if err != nil || !slices.Equal(first.Scaling.Shift, alone.Shift) || !slices.Equal(first.Scaling.Factor, alone.Factor) ||
			slices.Equal(first.Scaling.Shift, splits.Scaling.Shift) {
			t.Errorf("%s: the statistics are not those of the four fitted samples", c.scale.Method)
		}
		if low, high := first.Test.Range(); c.scale.Method == scaleMinmax && (low != 0 || high != 1) {
			t.Errorf("minmax of other samples than the fitted ones reaches from %g to %g", low, high)
		}
		if x := first.Test.Float32()[0]; x != first.Fit.Float32()[0] {
			t.Errorf("%s: the test samples are scaled to %g, the fitted ones to %g", c.scale.Method, x, first.Fit.Float32()[0])
		}
	}
}

func TestScalesOfImagesAreOfChannels(t *testing.T) {
	values := []float32{1, 10, 2, 20, 3, 30, 4, 40} // two images of 1x2 with two channels
	images, err := NewFloats([]int{1, 2, 2}, values, nil)
	if err != nil {
		t.Fatal(err)
	}
	scaling, err := Scale{Method: scaleMinmax}.Fit(images)
	if err != nil || !slices.Equal(scaling.Shift, []float32{1, 10, 1, 10}) || !slices.Equal(scaling.Factor, []float32{1 / 3., 1 / 30., 1 / 3., 1 / 30.}) {
		t.Errorf("minmax: %+v, %v", scaling, err)
	}
	bytes, err := NewBytes([]int{1, 2}, []byte{0, 255, 51, 102}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := (Scale{Method: scaleBytes}).Fit(bytes); s != nil || err != nil {
		t.Errorf("bytes are scaled twice: %+v, %v", s, err)
	}
	half, err := Scale{Factor: 0.5}.Fit(bytes)
	if err != nil {
		t.Fatal(err)
	}
	scaled := bytes.Scaled(half)
	if low, high := scaled.Range(); low != 0 || high != 0.5 || scaled.Bytes(0) != nil || bytes.Bytes(0) == nil {
		t.Errorf("half of bytes: from %g to %g, bytes %v", low, high, scaled.Bytes(0))
	}
	constant, err := NewFloats([]int{2}, []float32{7, 1, 7, 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{scaleMinmax, scaleStandardise} {
		if s, err := (Scale{Method: method}).Fit(constant); err != nil || s.Factor[0] != 1 || s.Shift[0] != 7 {
			t.Errorf("%s of a constant: %+v, %v", method, s, err)
		}
	}
	for _, wrong := range []any{"twice", 0.0, int64(0), math.Inf(1), math.NaN(), 1e-300, true} {
		if err := new(Scale).FromTOML(wrong); err == nil {
			t.Errorf("scale = %v is taken", wrong)
		}
	}
	for _, s := range []Scale{{}, {Method: scaleMinmax}, {Factor: 0.25}} {
		var back Scale
		if err := back.FromTOML(s.TOML()); err != nil || back != s {
			t.Errorf("%+v becomes %v, %+v, %v", s, s.TOML(), back, err)
		}
	}
}

func TestDoubtfulArraysSayWhatToWrite(t *testing.T) {
	dir := t.TempDir()
	floats := write(t, dir, "floats.npy", npyBytes("<f4", "False", "(1, 2, 2)", binary.LittleEndian, []float32{0, 17, 255, 3.5}))
	planes := make([]byte, 2*3*8*9)
	for i := range planes {
		planes[i] = byte(i % 251)
	}
	first := write(t, dir, "first.npy", npyBytes("|u1", "False", "(2, 3, 8, 9)", binary.LittleEndian, planes))
	load := func(path string, layout Layout) (*Set, error) {
		set, err := (&NPY{Arrays{Images: path, Layout: layout}}).Load(background, nil, Both)
		if err != nil {
			t.Fatal(err)
		}
		return set, set.Doubt()
	}
	var bad *Error
	if _, err := load(floats, Layout{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), `write scale = "bytes"`) {
		t.Errorf("floats up to 255: %v", err)
	}
	set, err := load(floats, Layout{Scale: Scale{Method: scaleBytes}})
	if splits, split := set.Split(Selection{}, 1); err != nil || split != nil || splits.Fit.Float32()[2] != 1 {
		t.Errorf(`floats up to 255 with scale = "bytes": %v, %v`, err, split)
	}
	if _, err := load(floats, Layout{Scale: Scale{Factor: 1}}); err != nil {
		t.Errorf("floats up to 255 with scale = 1: %v", err)
	}
	if _, err := load(first, Layout{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), `write axes = "nchw"`) {
		t.Errorf("channels first: %v", err)
	}
	if set, err := load(first, Layout{Axes: channelsLast}); err != nil || !slices.Equal(set.Shape, []int{3, 8, 9}) {
		t.Errorf("axes = nhwc: shape %v, %v", set.Shape, err)
	}
	set, err = load(first, Layout{Axes: channelsFirst})
	if err != nil || !slices.Equal(set.Shape, []int{8, 9, 3}) {
		t.Fatalf("axes = nchw: shape %v, %v", set.Shape, err)
	}
	for i := range planes { // image, row, column, channel
		n, y, x, c := i/216, i/27%8, i/3%9, i%3
		if got, want := set.Train.Bytes(n)[i%216], planes[((n*3+c)*8+y)*9+x]; got != want {
			t.Fatalf("image %d, row %d, column %d, channel %d: got %d, want %d", n, y, x, c, got, want)
		}
	}
}

func TestTablesThatCannotBeReadSayWhy(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, dir, name, []byte(text)) }
	npz, err := os.ReadFile("testdata/codes.npz")
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(npz)
	damaged[200] ^= 1
	for want, source := range map[string]Source{
		"the first line holds numbers":                 &CSV{Tables: Tables{Images: file("numbers.csv", "0.5,1\n2,3\n")}},
		`line 3, column "b": got "x", want a number`:   &CSV{Tables: Tables{Images: file("text.csv", "a,b\n1,2\n3,x\n")}},
		"line 3 has more or fewer cells":               &CSV{Tables: Tables{Images: file("ragged.csv", "a,b\n1,2\n3\n")}},
		`has no column "kind", want "a", "b"`:          &CSV{Tables: Tables{Images: file("columns.csv", "a,b\n1,2\n"), Labels: "kind"}},
		"has no line after the first":                  &CSV{Tables: Tables{Images: file("head.csv", "a,b\n")}},
		"is empty":                                     &CSV{Tables: Tables{Images: file("empty.csv", "")}},
		"holds the value NaN":                          &CSV{Tables: Tables{Images: file("nan.csv", "a,b\n1,NaN\n")}},
		"name that of the samples with the key tensor": &NPZ{Tables{Images: "testdata/arrays.npz"}, Named{}},
		`has no array "z"`:                             &NPZ{Tables{Images: "testdata/arrays.npz"}, Named{Tensor: "z"}},
		"checksum":                                     &NPZ{Tables{Images: write(t, dir, "damaged.npz", damaged)}, Named{}},
		"not a valid zip":                              &NPZ{Tables{Images: write(t, dir, "cut.npz", npz[:len(npz)/2])}, Named{}},
		"places it at bytes":                           &Safetensors{Tables{Images: write(t, dir, "cut.safetensors", safetensorsOf(`{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 4))}, Named{}},
		"needs 16 bytes, the header places 8":          &Safetensors{Tables{Images: write(t, dir, "short.safetensors", safetensorsOf(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,8]}}`, 8))}, Named{}},
		"not possible":                                 &Safetensors{Tables{Images: write(t, dir, "huge.safetensors", safetensorsOf(fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,8]}}`, math.MaxInt, math.MaxInt), 8))}, Named{}},
		`write name = "npz"`:                           &NPY{Arrays{Images: "testdata/codes.npz"}},
		`write name = "csv"`:                           &NPY{Arrays{Images: "testdata/birds.csv"}},
		`write name = "safetensors"`:                   &NPY{Arrays{Images: "testdata/tensors.safetensors"}},
	} {
		_, err := source.Load(background, nil, Both)
		var bad *Error
		if !errors.As(err, &bad) || bad.Path == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want an *Error with %q", err, want)
		}
	}
}

// safetensorsOf is a file with this header and that many bytes of values.
func safetensorsOf(header string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, values)...)
}
