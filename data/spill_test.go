package data

import (
	"compress/gzip"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// A table that does not fit into the budget has the values, labels, names and columns that it has in memory, also scaled, of one file and of
// several, of rows that where keeps, and leaves no file behind.
func TestATableOnDiskIsThatInMemory(t *testing.T) {
	dir, r := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	names := lists.Of(40, func(k int) string { return fmt.Sprintf("v%d", k) })
	var all []string
	for i := range 3000 {
		cells := []string{fmt.Sprintf("s%d", i), fmt.Sprintf("c%d", i%3), fmt.Sprint(float32(r.NormFloat64()))}
		for k := range names {
			cells = append(cells, fmt.Sprint(map[bool]float64{true: 1e6, false: 0}[k%2 == 0]+r.NormFloat64()))
		}
		if i == 0 { // a number that begins with the bytes of a gzip file
			cells[3] = fmt.Sprint(math.Float32frombits(0x3f808b1f))
		}
		all = append(all, strings.Join(cells, ","))
	}
	header := "name,label,weight," + strings.Join(names, ",")
	whole := header + "\n" + strings.Join(all, "\n") + "\n"
	write(t, dir, "all.csv", whole)
	write(t, dir, "part-1.csv", []byte(header+"\n"+strings.Join(all[:2990], "\n")+"\n"))
	write(t, dir, "part-2.csv", []byte(header+"\n"+strings.Join(all[2990:], "\n")+"\n"))
	packed, err := os.Create(filepath.Join(dir, "all.csv.gz"))
	fatal.If(t, err)
	z := gzip.NewWriter(packed)
	_, _ = z.Write([]byte(whole))
	fatal.If(t, z.Close())
	fatal.If(t, packed.Close())
	for _, file := range []string{"all.csv", "all.csv.gz", "part-*.csv"} {
		for i, scale := range []Scale{nil, scaleNamed("standardise"), scaleNamed("minmax"), scaleNamed("bytes")} {
			if testing.Short() && file != "all.csv" {
				continue
			}
			for _, where := range []Where{nil, {"label != c1"}}[i%2 : i%2+1] {
				t.Run(fmt.Sprint(file, i, len(where)), func(t *testing.T) {
					f := &Files{Kind: "csv", File: filepath.Join(dir, file), Test: filepath.Join(dir, "part-2.csv"), Scale: scale, Where: where, Columns: ColumnNames{"weight": {"weight"}}}
					want, wanted := loaded(t, f), described(t, f)
					f.Memory = 5 * LeastBudget
					got, gotten := loaded(t, f), described(t, f)
					if want.Fit.OnDisk() || !got.Fit.OnDisk() {
						t.Fatalf("on disk: %v and %v", want.Fit.OnDisk(), got.Fit.OnDisk())
					}
					for name, pair := range map[string][2]*Images{"fit": {got.Fit, want.Fit}, "validation": {got.Validation, want.Validation}} {
						g, w := pair[0], pair[1]
						if !slices.Equal(g.Float32(), w.Float32()) || !slices.Equal(g.Labels(), w.Labels()) || g.Checksum() != w.Checksum() {
							t.Errorf("%s: values, labels or checksums differ", name)
						}
						expect.Slice(t, g.RowNames(), w.RowNames(), name, "names or columns differ")
						expect.Slice(t, gathered(t, g, "weight"), gathered(t, w, "weight"), name, "names or columns differ")
					}
					expect.Equal(t, gotten, wanted, "described as")
				})
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".tessera*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %q, %v", left, err)
	}
}

func described(t *testing.T, f *Files) string {
	t.Helper()
	set, err := Load(context.Background(), f, Dirs{}, f.need())
	fatal.If(t, err)
	list, others := set.Describe()
	for i := range list {
		if list[i].Name == "" { // the range of all values is that of float32 numbers, on disk of the numbers in the file
			list[i].Range = ""
		}
	}
	return fmt.Sprint(list, others, set.Files, set.Notes)
}

// Missing entries are kept in memory, and the error of a table that is too large says so.
func TestATableWithMissingEntriesIsInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	write(t, "", path, []byte("a,b\n"+strings.Repeat("1,2\n3,\n", 20000)))
	f := &Files{Kind: "csv", File: path, Missing: Missing{"nan"}, Memory: LeastBudget}
	_, err := Load(context.Background(), f, Dirs{}, f.need())
	expect.Error(t, err, "do not fit into memory")
}
