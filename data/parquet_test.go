package data

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// DuckDB reads the same sums from the Parquet files that it writes.
func TestParquetFilesOfDuckDBHaveTheirValues(t *testing.T) {
	text, err := os.ReadFile("testdata/parquet.json")
	fatal.If(t, err)
	var files map[string]struct {
		File []byte
		Sums []float64
	}
	fatal.If(t, json.Unmarshal(text, &files))
	for codec, want := range files {
		path := write(t, t.TempDir(), "x.parquet", want.File)
		read := []string{"d", "f", "small", "big", "u", "flag", "price"} // and not its column of lists
		source := &Files{Kind: "csv", File: path, Labels: "species", Columns: ColumnNames{ImagesColumn: read}}
		set, err := Load(t.Context(), source, Dirs{}, Both)
		fatal.If(t, err, codec)
		expect.Slice(t, set.Train.ValueNames(), read, codec)
		sums := make([]float64, 8)
		for i, v := range set.Train.Float32() {
			sums[i%7] += float64(v)
		}
		for _, label := range set.Train.Labels() {
			if label >= 0 {
				sums[7]++
			}
		}
		for i, sum := range sums {
			expect.Near(t, sum, want.Sums[i], 1e-6*want.Sums[i], codec, "column", i)
		}
		source.Decimal = "," // of texts, which the numbers of this file are not
		if again, err := Load(t.Context(), source, Dirs{}, Both); err != nil || !slices.Equal(again.Train.Float32(), set.Train.Float32()) {
			t.Errorf("%s, with a decimal comma: %v", codec, err)
		}
		names, file, err := source.ValueNames(t.Context())
		if err != nil || len(names) != 7 || file != set.Files[0] {
			t.Errorf("%s: got the names %q of %v, %v", codec, names, file, err)
		}
	}
	// A damaged file is an error, never a panic.
	good := files["uncompressed"].File
	for i := range 60 {
		b := slices.Clone(good)
		b[(i*i*31+len(b)-i)%len(b)] ^= 0x55
		b = b[:len(b)-i%2*i]
		path := write(t, t.TempDir(), "bad.parquet", b)
		var bad *Error
		if _, err := Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"d", "f"}}}, Dirs{}, Both); err != nil && !errors.As(err, &bad) {
			t.Errorf("byte %d: got %v, want an *Error", i, err)
		}
	}
}

// Dates of a Parquet file are the numbers of the same dates in a .csv, whatever the type in which they are stored.
func TestDatesOfParquetAreThoseOfCSV(t *testing.T) {
	moments := []time.Time{
		time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2023, 7, 2, 12, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 250e6, time.UTC),
		time.Date(2025, 11, 30, 6, 30, 15, 125e6, time.UTC), time.Date(1900, 3, 1, 1, 2, 3, 0, time.UTC),
	}
	const day = 86400
	columns := []struct {
		name   string
		node   parquet.Node
		layout string
		value  func(time.Time) parquet.Value
	}{
		{"date", parquet.Date(), time.DateOnly, func(m time.Time) parquet.Value {
			return parquet.Int32Value(int32((m.Unix() - ((m.Unix()%day)+day)%day) / day))
		}},
		{"micro", parquet.Timestamp(parquet.Microsecond), "2006-01-02 15:04:05.999999999", func(m time.Time) parquet.Value { return parquet.Int64Value(m.UnixMicro()) }},
		{"milli", parquet.Optional(parquet.TimestampAdjusted(parquet.Millisecond, false)), "2006-01-02T15:04:05.999Z07:00", func(m time.Time) parquet.Value { return parquet.Int64Value(m.UnixMilli()) }},
		{"nano", parquet.Timestamp(parquet.Nanosecond), "2006-01-02 15:04:05.999999999-07:00", func(m time.Time) parquet.Value { return parquet.Int64Value(m.UnixNano()) }},
		{"old", parquet.Leaf(parquet.Int96Type), "2006-01-02 15:04:05.999999999-07", func(m time.Time) parquet.Value {
			days := (m.Unix() - ((m.Unix()%day)+day)%day) / day
			nanos := uint64(m.UnixNano() - days*day*1e9)
			return parquet.ValueOf(deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(days + 2440588)})
		}},
		{"time", parquet.Time(parquet.Microsecond), "15:04:05.999999", func(m time.Time) parquet.Value {
			return parquet.Int64Value(m.UnixMicro() - m.Truncate(24*time.Hour).UnixMicro())
		}},
	}
	group, csv, ends := parquet.Group{}, "", []string{",", ",", ",", ",", ",", "\n"}
	for i, c := range columns {
		group[c.name] = c.node
		csv += c.name + ends[i]
	}
	folder := t.TempDir()
	file, err := os.Create(filepath.Join(folder, "x.parquet"))
	fatal.If(t, err)
	writer := parquet.NewWriter(file, parquet.NewSchema("x", group))
	zone := time.FixedZone("", 2*3600) // of another clock in the .csv, but the same moments
	for _, m := range moments {
		row := parquet.Row{}
		for i, c := range columns {
			level := 0
			if c.name == "milli" {
				level = 1
			}
			row = append(row, c.value(m).Level(0, level, i))
			in := m
			if c.name == "nano" || c.name == "old" {
				in = m.In(zone)
			}
			csv += in.Format(c.layout) + ends[i]
		}
		_, err := writer.WriteRows([]parquet.Row{row})
		fatal.If(t, err)
	}
	fatal.If(t, errors.Join(writer.Close(), file.Close(), os.WriteFile(filepath.Join(folder, "x.csv"), []byte(csv), 0o600)))
	values := func(name string) []float32 {
		set, err := Load(t.Context(), &Files{Kind: "csv", File: filepath.Join(folder, name), Columns: ColumnNames{ImagesColumn: {"date", "micro", "milli", "nano", "old"}}}, Dirs{}, Both)
		fatal.If(t, err, name)
		return set.Train.Float32()
	}
	got := values("x.parquet")
	expect.Slice(t, got, values("x.csv"), "values")
	expect.Slice(t, got[5:10], []float32{2023 + 182/365.0, 2023.5, 2023.5, 2023.5, 2023.5}, "2 July 2023")
	for _, name := range []string{"x.parquet", "x.csv"} {
		s, err := SketchTable(t.Context(), filepath.Join(folder, name))
		fatal.If(t, err)
		for _, c := range s.Columns {
			if !c.Dates || c.Numeric != (c.Name != "time") {
				t.Errorf("%s: got %+v, want dates, which are numbers unless they are times of day", name, c)
			}
		}
	}
}

// Values of a fixed number of bytes are those of hyparquet: decimals exactly, floats of 16 bits, and UUIDs, which are texts.
func TestFixedValuesOfParquetAreExact(t *testing.T) {
	text, err := os.ReadFile("testdata/fixed.json")
	fatal.If(t, err)
	var want struct {
		File            []byte
		Wide, Long, Key []string
		Half            []float64
	}
	fatal.If(t, json.Unmarshal(text, &want))
	path := write(t, t.TempDir(), "x.parquet", want.File)
	o, err := openParquet(t.Context(), path, nil)
	fatal.If(t, err)
	defer o.close()
	i := 0
	fatal.If(t, expect.Err(o.csv.eachRow(func(row tableRow) error {
		cells := row.cells
		expect.Slice(t, []string{cells[0], cells[1], cells[3]}, []string{want.Wide[i], want.Long[i], want.Key[i]}, "row", i)
		v, err := strconv.ParseFloat(cells[2], 64)
		fatal.If(t, err)
		expect.Equal(t, float32(v), float32(want.Half[i]), "row", i)
		i++
		return nil
	})))
	expect.Equal(t, i, len(want.Wide))
	set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Names: "key"}, Dirs{}, Both)
	fatal.If(t, err)
	expect.Slice(t, set.Train.Float32()[:3], []float32{0, 0, 0})
	s, err := SketchTable(t.Context(), path)
	fatal.If(t, err)
	expect.Equal(t, s.Columns[3].Numeric || s.Columns[3].Repeats, false, "a UUID is no number and never repeats")
}

// A vector that was saved as a list is not read, which a training must not find out by its results.
func TestListsOfParquetAreNamedUnlessTheyAreLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	type row struct {
		A      float64   `parquet:"a"`
		Vector []float32 `parquet:"vector,list"`
		Pair   struct{ X, Y float64 }
		B      float64 `parquet:"b"`
	}
	fatal.If(t, parquet.WriteFile(path, []row{{A: 1, Vector: []float32{1, 2}, B: 2}, {A: 3, B: 4}, {A: 5, Vector: []float32{3}, B: 6}}))
	load := func(columns ...string) (*Set, error) {
		return Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: columns}}, Dirs{}, Both)
	}
	set, err := load("a", "b")
	fatal.If(t, err)
	expect.Slice(t, set.Train.Float32(), []float32{1, 2, 3, 4, 5, 6})
	for name, columns := range map[string][]string{"vector": nil, "Pair": {"a", "Pair"}} {
		expect.Error(t, expect.Err(load(columns...)), `column "`+name+`": got "[...]", want a finite number; lists and structures are not read: write each value into a column`)
	}
}
