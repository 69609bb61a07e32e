package data

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
		path := filepath.Join(t.TempDir(), "x.parquet")
		fatal.If(t, os.WriteFile(path, want.File, 0o600))
		source := &Files{Kind: "csv", File: path, Labels: "species"}
		set, err := Load(t.Context(), source, Dirs{}, Both)
		if err != nil {
			t.Fatalf("%s: %v", codec, err)
		}
		expect.Slice(t, set.Train.ValueNames(), []string{"d", "f", "small", "big", "u", "flag", "price"}, codec)
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
		path := filepath.Join(t.TempDir(), "bad.parquet")
		fatal.If(t, os.WriteFile(path, b, 0o600))
		var bad *Error
		if _, err := Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"d", "f"}}}, Dirs{}, Both); err != nil && !errors.As(err, &bad) {
			t.Errorf("byte %d: got %v, want an *Error", i, err)
		}
	}
}
