package cli

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// column returns the numbers of a column of a csv text.
func (b *bench) column(text, name string) (values []float64) {
	b.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	fatal.If(b, err)
	for k, title := range rows[0] {
		for _, row := range rows[1:] {
			if v, err := strconv.ParseFloat(row[k], 64); title == name && err == nil {
				values = append(values, v)
			}
		}
	}
	return values
}

// An empty cell of a new row, in a column that is complete in the training, counts as the mean of the training in every command, whatever the
// scaling: as if the cell had the mean. A column with empty cells in the training has them in new rows without a warning.
func TestAMissingValueThatTheTrainingNeverLackedCountsAsItsMean(t *testing.T) {
	for _, c := range []struct {
		scale  string
		offset int
	}{{`scale = "minmax", `, 100}, {`scale = "standardise", `, 0}, {"", 3}, {`scale = "minmax", `, 100_000_000}} {
		t.Run(fmt.Sprint(c.scale, c.offset), func(t *testing.T) {
			b := newBench(t)
			rows, sum := "a,b,y\n", 0
			for i := range 32 {
				a := c.offset + i*i%13
				sum += a
				rows += fmt.Sprintf("%d,%s,%d\n", a, []string{"", strconv.Itoa(i % 7)}[min(1, i%4)], i%5)
			}
			b.write("t.csv", rows)
			b.write("models.toml", `
[model.m]
dataset = { name = "csv", file = "t.csv", missing = "nan", validation = 0, `+c.scale+`columns = { images = ["a", "b"], target = "y" } }
encoder = [{ kind = "dense", units = 3, activation = "tanh", from = ["images", "observed"] }]
head.y  = { layers = [{ kind = "dense" }] }
loss    = [{ kind = "mse" }, { kind = "mse", on = "y", against = "target" }]
train   = { epochs = 2 }
`)
			b.must(0, "train", "m")
			mean := strconv.FormatFloat(float64(sum)/32, 'f', -1, 64)
			table := fmt.Sprintf("a,b,y\n%d.25,,1\nA,2,2\n%d,3,0\nA,,4\n", c.offset+1, c.offset+2)
			b.write("holes.csv", strings.ReplaceAll(table, "A", ""))
			b.write("means.csv", strings.ReplaceAll(table, "A", mean))
			for _, args := range [][]string{{"predict", "runs/m"}, {"encode", "runs/m", "--out", "o.csv"}, {"encode", "runs/m", "--value", "output", "--out", "o.csv"}, {"eval", "runs/m", "--json", "--metrics", "r2"}} {
				var got [2]string
				for i, file := range []string{"holes.csv", "means.csv"} {
					r := b.must(0, append(args, "--in", file)...)
					if got[i] = strings.ReplaceAll(r.stdout, file, ""); args[len(args)-1] == "o.csv" {
						got[i] = b.read("o.csv")
					}
					if says := `column "a" counts as `; strings.Contains(r.stderr, says) != (i == 0) || strings.Contains(r.stderr, `"b"`) || i == 0 && !strings.Contains(r.stderr, "in 2 samples (first: line 3)") {
						t.Errorf("%v of %s: got the warning %q", args, file, r.stderr)
					}
				}
				expect.Equal(t, got[0], got[1])
			}
			filled := b.must(0, "complete", "runs/m", "--empty-rows", "--in", "holes.csv", "--out", "full.csv")
			b.contains("complete", filled.stderr, `column "a" counts as `)
			b.must(0, "encode", "runs/m", "--value", "output", "--in", "means.csv", "--out", "o.csv")
			got, want := b.column(b.read("full.csv"), "a"), b.column(b.read("o.csv"), "a")
			if len(got) != 4 || len(want) != 4 || math.Abs(got[1]-want[1]) > 1e-6*math.Abs(want[1]) {
				t.Errorf("complete: got %v, want its second value of %v", got, want)
			}
		})
	}
}

// Values that minmax clips are named with their column, their number and the range of the training.
func TestClippedValuesOfATableAreNamed(t *testing.T) {
	b := newBench(t)
	rows := "a,b\n"
	for i := range 20 {
		rows += fmt.Sprintf("%d,%d\n", 40+i, i%7)
	}
	b.write("t.csv", rows)
	b.write("models.toml", "[model.m]\nkind = \"pca\"\ncomponents = 1\ndataset = { name = \"csv\", file = \"t.csv\", validation = 0, scale = \"minmax\" }\n")
	b.must(0, "train", "m")
	b.write("new.csv", "b,a\n1,45\n2,900\n-3,20\n6,59\n")
	for _, args := range [][]string{{"encode", "--out", "o.csv"}, {"eval"}} {
		got := b.must(0, append(args, "runs/m", "--in", "new.csv")...).stderr
		b.contains(args[0], got, `new.csv: values outside of the range of the training count as its end: column "a" has 2 values outside of 40 to 59 (farthest: 900, line 3); column "b" has 1 value outside of 0 to 6 (farthest: -3, line 4)`)
	}
	b.write("new.csv", "b,a\n1,45\n0,40\n6,59\n")
	if got := b.must(0, "encode", "--out", "o.csv", "runs/m", "--in", "new.csv").stderr; strings.Contains(got, "warning") {
		t.Errorf("got %q", got)
	}
}
