package data

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/safetensors"

	"tessera/internal/vectors"
)

// nines returns 9 + i/16 for a missing entry with index i, and -1 for other entries, which must not be used.
func nines(rows *Rows) ([]float64, error) {
	values := vectors.Wide(rows.Raw())
	for i, v := range values {
		if v == v {
			values[i] = -1 // must not be used
		} else {
			values[i] = 9 + float64(i)/16
		}
	}
	return values, nil
}

func TestCompletedTablesKeepEveryOtherCell(t *testing.T) {
	const text = "\xef\xbb\xbfname;b;a;w\r\n\"x; y\";0.10;;\r\n z ; \"NA\";-3e0;?\r\nlast;NaN;1"
	in := write(t, t.TempDir(), "in.csv", text+";")
	out := filepath.Join(t.TempDir(), "out.csv")
	s := &Files{Kind: "csv", File: in, Columns: ColumnNames{"weight": {"w"}}}
	n, err := Complete(t.Context(), in, out, []int{2}, InOrder(s, []string{"a", "b"}), nines)
	fatal.If(t, err)
	b, err := os.ReadFile(out)
	want := "\xef\xbb\xbfname;b;a;w\r\n\"x; y\";0.10;9;\r\n z ; 9.1875;-3e0;?\r\nlast;9.3125;1;"
	if err != nil || n.Entries != 3 || string(b) != want {
		t.Errorf("%+v entries: got %q, want %q", n, b, want)
	}
}

// A Parquet table is completed as the .csv that DuckDB writes of the same rows; the other empty cells are counted.
func TestCompletedParquetIsTheTableOfDuckDB(t *testing.T) {
	text, err := os.ReadFile("testdata/holes.json")
	fatal.If(t, err)
	var want struct {
		File []byte
		CSV  string
	}
	fatal.If(t, json.Unmarshal(text, &want))
	in, out := filepath.Join(t.TempDir(), "x.parquet"), filepath.Join(t.TempDir(), "x.csv")
	fatal.If(t, os.WriteFile(in, want.File, 0o600))
	done, err := Complete(t.Context(), in, out, []int{2}, InOrder(&Files{Kind: "csv", File: in, Columns: ColumnNames{ImagesColumn: {"a", "b"}}}, []string{"a", "b"}), nines)
	fatal.If(t, err)
	expect.Equal(t, done.Entries, 12+9)
	expect.Slice(t, done.Left, []string{`"note" (20)`, `"day" (15)`})
	b, err := os.ReadFile(out)
	fatal.If(t, err)
	got, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	fatal.If(t, err)
	rows, err := csv.NewReader(strings.NewReader(want.CSV)).ReadAll()
	fatal.If(t, err)
	expect.Equal(t, len(got), len(rows))
	for i, row := range rows {
		for k, cell := range row {
			v, err := strconv.ParseFloat(cell, 64)
			if is, wrong := strconv.ParseFloat(got[i][k], 64); err == nil && wrong == nil && v == is {
				continue
			}
			expect.Equal(t, got[i][k], cell, "row", i, "column", k)
		}
	}
}

// A missing date is completed as a day, and a gzipped table is written as plain text.
func TestCompletedDatesAreDays(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fatal.If(t, expect.Err(z.Write([]byte("day;a\n2024-01-01;1,5\n;2\n2023-07-02;3\n"))))
	fatal.If(t, z.Close())
	in, out := write(t, t.TempDir(), "in.csv.gz", packed.String()), filepath.Join(t.TempDir(), "out.csv")
	s := &Files{Kind: "csv", File: in, Decimal: ","}
	_, err := Complete(t.Context(), in, out, []int{2}, InOrder(s, []string{"day", "a"}), func(*Rows) ([]float64, error) { return []float64{0, 0, 2024.5, 0, 0, 0}, nil })
	fatal.If(t, err)
	b, err := os.ReadFile(out)
	fatal.If(t, err)
	expect.Equal(t, string(b), "day,a\n2024-01-01,\"1,5\"\n2024-07-02,2\n2023-07-02,3\n")
}

func TestCompletedTablesHaveTheUnitsOfTheFile(t *testing.T) {
	in := write(t, t.TempDir(), "in.csv", "a,b\n255,\n51,102\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	s := &Files{Kind: "csv", File: in, Scale: Scale{&Bytes255{}}}
	_, err := Complete(t.Context(), in, out, []int{2}, InOrder(s, []string{"a", "b"}), func(rows *Rows) ([]float64, error) { return []float64{0, float64(float32(0.4)), 0, 0}, nil })
	fatal.If(t, err)
	if b, err := os.ReadFile(out); err != nil || string(b) != "a,b\n255,102\n51,102\n" {
		t.Errorf("got %q, want 0.4 as 102", b)
	}
}

func TestRowsThatDoNotMeetWhereAreNotCompleted(t *testing.T) {
	in := write(t, t.TempDir(), "in.csv", "a,tissue,b\n1,heart,\nNA, lung,2\n,?,oops\n3,lung,\n?,heart,4\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	s := &Files{Kind: "csv", File: in, Where: Where{"tissue = lung"}}
	n, err := Complete(t.Context(), in, out, []int{2}, InOrder(s, []string{"a", "b"}), nines)
	fatal.If(t, err)
	b, err := os.ReadFile(out)
	want := "a,tissue,b\n1,heart,\n9, lung,2\n,?,oops\n3,lung,9\n?,heart,4\n"
	if err != nil || n.Entries != 2 || string(b) != want {
		t.Errorf("%+v entries: got %q, want %q", n, b, want)
	}
}

// The test covers every type of float, both byte orders, channels first, and every format. Only the missing entries may
// change.
func TestCompletedArraysKeepEveryOtherEntry(t *testing.T) {
	halves := []uint16{0x3c00, 0x7e00, 0x0001, 0xc500, 0x7e01, 0x3555} // 1, NaN, the least, -5, NaN, 1/3
	bytesOf := func(kind string) (b []byte) {
		for _, h := range halves {
			v := fromHalf(h)
			switch kind {
			case "<f2":
				b = binary.LittleEndian.AppendUint16(b, h)
			case ">f4":
				b = binary.BigEndian.AppendUint32(b, math.Float32bits(v))
			case "<f8":
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
			}
		}
		return b
	}
	for _, c := range []struct {
		kind, order string
		at          [2]int // indices, among the samples, of the missing values in the file
	}{
		{"<f2", "False", [2]int{1, 4}}, {">f4", "False", [2]int{1, 4}}, {"<f8", "False", [2]int{1, 4}},
		{"<f2", "True ", [2]int{3, 2}}, // (2,3): places 1 and 4 are (1,0) and (0,2)
	} {
		head := npyHeaderOf(c.kind, []int{2, 3})
		head = bytes.Replace(head, []byte("'fortran_order': False"), []byte("'fortran_order': "+c.order), 1)
		values := bytesOf(c.kind)
		dir := t.TempDir()
		in, out := filepath.Join(dir, "x.npy"), filepath.Join(dir, "y.npy")
		write := func(path string, b []byte) {
			fatal.If(t, os.WriteFile(path, b, 0o600))
		}
		write(in, slices.Concat(head, values))
		fatal.If(t, expect.Err(Complete(t.Context(), in, out, []int{3}, &Files{Kind: "npy"}, nines)))
		b, err := os.ReadFile(out)
		fatal.If(t, err)
		width := len(values) / 6
		want := slices.Clone(values)
		a, err := parseArray(b)
		fatal.If(t, err)
		for k, place := range []int{1, 4} {
			expect.Equal(t, a.floats[c.at[k]], 9+float32(c.at[k])/16, c.kind, "value", c.at[k])
			copy(want[place*width:(place+1)*width], b[len(head)+place*width:])
		}
		if !bytes.Equal(b, slices.Concat(head, want)) {
			t.Errorf("%s: another entry has changed", c.kind)
		}

		var archive bytes.Buffer
		z := zip.NewWriter(&archive)
		for name, content := range map[string][]byte{"x.npy": slices.Concat(head, values), "other.npy": npyHeaderOf("<f4", []int{0}), "note.txt": []byte("n")} {
			w, _ := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
			_, _ = w.Write(content)
		}
		fatal.If(t, z.Close())
		in, out = filepath.Join(dir, "x.npz"), filepath.Join(dir, "y.npz")
		write(in, archive.Bytes())
		fatal.If(t, expect.Err(Complete(t.Context(), in, out, []int{3}, &Files{Kind: "npz", Tensor: "x"}, nines)))
		r, err := zip.OpenReader(out)
		fatal.If(t, err)
		for _, f := range r.File {
			content, err := f.Open()
			fatal.If(t, err)
			var got bytes.Buffer
			_, _ = got.ReadFrom(content)
			if f.Name == "x.npy" && !bytes.Equal(got.Bytes(), b) || f.Name == "note.txt" && got.String() != "n" {
				t.Errorf("%s: %s: got %q", c.kind, f.Name, got.Bytes())
			}
		}
		r.Close()
	}
}

// The tensor contains bfloat16 values with channels first.
func TestCompletedTensorsKeepEveryOtherEntry(t *testing.T) {
	values := make([]byte, 2*2*3*2*2)
	for i := 0; i < len(values); i += 2 {
		binary.LittleEndian.PutUint16(values[i:], toBrain(float32(i)))
	}
	binary.LittleEndian.PutUint16(values[2*13:], 0x7fc0) // sample 1, channel 0, row 0, column 1: value 3 of the sample with the channels last
	var b bytes.Buffer
	text := `{"x":{"dtype":"BF16","shape":[2,3,2,2],"data_offsets":[0,48]}}`
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	b.WriteString(text)
	b.Write(values)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "x.safetensors"), filepath.Join(dir, "y.safetensors")
	fatal.If(t, os.WriteFile(in, b.Bytes(), 0o600))
	if !safetensors.Is(b.Bytes()[:16]) {
		t.Fatal("not a safetensors file")
	}
	fatal.If(t, expect.Err(Complete(t.Context(), in, out, []int{2, 2, 3}, &Files{Kind: "safetensors", Axes: channelsFirst}, nines)))
	got, err := os.ReadFile(out)
	fatal.If(t, err)
	want := b.Bytes()
	binary.LittleEndian.PutUint16(want[len(want)-len(values)+26:], toBrain(9+15./16))
	expect.Equal(t, string(got), string(want))
}

func TestWhatCannotBeCompleted(t *testing.T) {
	_, err := Complete(t.Context(), "x.parquet", "y.parquet", []int{2}, &Files{Kind: "csv"}, nines)
	expect.Error(t, err, "is completed as a file whose name ends in .csv, not as y.parquet")
	_, err = Complete(t.Context(), "x.idx", "y.idx", []int{2}, &Files{Kind: "csv"}, nines)
	expect.Error(t, err, "whose name ends in one of .csv, .tsv, .parquet, .npy, .npz, .safetensors")
	whole := write(t, t.TempDir(), "x.csv", "a,b\n1,2\n")
	for out, want := range map[string]string{"y.csv": "has no missing entries", "y.npy": "as a file of the same kind"} {
		_, err := Complete(t.Context(), whole, filepath.Join(t.TempDir(), out), []int{2}, &Files{Kind: "csv"}, nines)
		expect.Error(t, err, want, out)
	}
}

// toHalf and toBrain are the inverses of fromHalf and fromBrain, and round other values to the nearest.
func TestHalvesAreRoundedToTheNearest(t *testing.T) {
	for h := range 0x7c00 {
		v := fromHalf(uint16(h))
		if got := toHalf(v); got != uint16(h) {
			t.Fatalf("%x: got %x", h, got)
		}
		next := fromHalf(uint16(h) + 1)
		if h+1 < 0x7c00 {
			if low, high := toHalf(v+(next-v)*0.4), toHalf(v+(next-v)*0.6); low != uint16(h) || high != uint16(h)+1 {
				t.Fatalf("%x: between %v and %v: got %x and %x", h, v, next, low, high)
			}
		}
		if b := uint16(h); fromBrain(toBrain(fromBrain(b))) != fromBrain(b) {
			t.Fatalf("bfloat16 %x", b)
		}
	}
	expect.Equal(t, toHalf(1e9), 0x7c00, "large or negative values")
	expect.Equal(t, toHalf(-2), 0xc000, "large or negative values")
}
