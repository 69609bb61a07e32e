package cli

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// flowers writes a file of 60 flowers of two species and declares a classifier of them without a decoder.
func (b *bench) flowers() {
	b.Helper()
	rows := "nr,long,wide,species\n"
	for i := range 60 {
		rows += fmt.Sprintf("flower %d,%d,%d,%s\n", i, 10*(i%2), i%7, []string{"setosa", `"versi, color"`}[i%2])
	}
	b.write("flowers.csv", rows)
	b.write("models.toml", `
[model.flowers]
dataset   = { name = "csv", images = "flowers.csv", labels = "species", names = "nr", scale = "standardise" }
encoder   = [{ kind = "dense", units = 4 }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }]
optimizer = { learning_rate = 0.1 }
train     = { epochs = 20, batch = 16 }
`)
}

func TestPredictNamesTheClasses(t *testing.T) {
	b := newBench(t)
	b.flowers()
	b.must(0, "train", "flowers")
	b.write("new.csv", "wide,long\n3,0\n3,10\n") // without labels and names, and in another order
	rows, err := csv.NewReader(strings.NewReader(b.must(0, "predict", "runs/flowers", "--in", "new.csv", "--probabilities").stdout)).ReadAll()
	if err != nil || len(rows) != 3 || strings.Join(rows[0], "|") != "name|class|probability|setosa|versi, color" {
		t.Fatalf("got %q, %v", rows, err)
	}
	for i, class := range []string{"setosa", "versi, color"} {
		row := rows[i+1]
		sum := 0.0
		for _, text := range row[3:] {
			p, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += p
		}
		if row[0] != fmt.Sprint(i) || row[1] != class || row[2] != row[3+i] || sum < 0.999999 || sum > 1.000001 {
			t.Errorf("got %q", row)
		}
	}
	b.must(0, "predict", "runs/flowers", "--in", "flowers.csv", "-o", "out.csv")
	if lines := strings.Split(b.read("out.csv"), "\n"); len(lines) != 62 || !strings.HasPrefix(lines[2], `flower 1,"versi, color",`) {
		t.Errorf("got %q", lines[:3])
	}
}

func TestWhatAClassifierCannotDoIsAnErrorOfUsage(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "1")
	b.flowers()
	b.must(0, "train", "flowers", "--epochs", "1")
	for _, c := range []struct{ args, says string }{
		{"attack runs/flowers", "runs/flowers has no decoder"},
		{"figure reconstructions runs/flowers", "flowers has no decoder"},
		{"predict runs/small --in flowers.csv", "there are no classes to predict"},
		{"predict runs/flowers --in flowers.csv --head code", `--head: got "code", want one of class`},
		{"predict runs/flowers --in flowers.csv -o flowers.csv", "is also the input"},
		{"predict runs/flowers --in flowers.csv -o flowers.npy", "a name that ends in .csv"},
		{"attack runs/small --epsilon 1e308 --json", "--epsilon: got 1e+308, want at most"},
		{"completion x", `unknown command "x"`},
	} {
		b.contains(c.args, b.must(exitUsage, strings.Fields(c.args)...).stderr, c.says)
	}
}
