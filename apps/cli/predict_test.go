package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// flowers writes a file of 60 flowers of two species, and declares a classifier without a decoder for them.
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
			fatal.If(t, err)
			sum += p
		}
		if row[0] != fmt.Sprint(i) || row[1] != class || row[2] != row[3+i] || sum < 0.999999 || sum > 1.000001 {
			t.Errorf("got %q", row)
		}
	}
	b.must(0, "predict", "runs/flowers", "--in", "flowers.csv", "-o", "out.csv")
	expect.Equal(t, b.must(0, "predict", "runs/flowers", "--in", "flowers.csv", "-o", "-").stdout, b.read("out.csv"), "standard output")
	if lines := strings.Split(b.read("out.csv"), "\n"); len(lines) != 62 || !strings.HasPrefix(lines[2], `flower 1,"versi, color",`) {
		t.Errorf("got %q", lines[:3])
	}
}

// A head that is compared with a column of numbers has its errors in the table of the training, in eval, and its predictions have the names of
// the targets.
func TestARegressionHeadIsMeasuredAndPredicts(t *testing.T) {
	b := newBench(t)
	rows := "x,z,price,area\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,%d,%d,%d\n", i%7, i%5, 3*(i%7)-i%5, 2*(i%5))
	}
	b.write("houses.csv", rows)
	b.write("models.toml", `
[model.houses]
dataset   = { name = "csv", file = "houses.csv", columns = { target = ["price", "area"] } }
encoder   = [{ kind = "dense", units = 4 }]
decoder   = []
head      = { value = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "huber", on = "value", against = "target" }]
optimizer = { learning_rate = 0.1 }
train     = { epochs = 60, batch = 16 }
`)
	out := b.must(0, "train", "houses").stdout
	at := func(text string) int { return strings.Index(out, text) }
	if !(0 < at("\nrmse") && at("\nrmse") < at("\nmae") && at("\nmae") < at("\nr2")) || at("\nhoyer") >= 0 && at("\nhoyer") < at("\nr2") {
		t.Errorf("the errors of the head are not first:\n%s", out)
	}
	b.contains("train", out, "price", "area")
	b.contains("metrics.jsonl", b.read("runs/houses/metrics.jsonl"), `"val_rmse":`, `"val_r2":`)
	var measured struct {
		R2      float64
		Targets struct{ Rows []struct{ Target string } }
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", "runs/houses", "--json").stdout), &measured))
	if measured.R2 < 0.9 || len(measured.Targets.Rows) != 2 || measured.Targets.Rows[0].Target != "price" {
		t.Errorf("got %+v", measured)
	}
	b.write("new.csv", "z,x\n0,1\n4,6\n")
	lines := strings.Split(b.must(0, "predict", "runs/houses", "--in", "new.csv").stdout, "\n")
	if len(lines) != 4 || lines[0] != "name,price,area" || !strings.HasPrefix(lines[2], "1,") {
		t.Errorf("got %q", lines)
	}
	b.contains("probabilities", b.must(exitUsage, "predict", "runs/houses", "--in", "new.csv", "--probabilities").stderr, "--probabilities: the head value predicts numbers")
}

func TestWhatAClassifierCannotDoIsAnErrorOfUsage(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.flowers()
	b.must(0, "train", "flowers", "--epochs", "1")
	for _, c := range []struct{ args, says string }{
		{"attack runs/flowers --on nose", `--on: got "nose", want a head that a loss of runs/flowers compares with labels: one of "class"`},
		{"attack runs/small --on class", "--on: "},
		{"attack runs/flowers --on class --from runs/small", "--from: "},
		{"attack runs/small --objective margin", "--objective: only attacks on heads have it; add --on HEAD"},
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

// Two heads learn two columns of classes. Every table and page measures each head against its own column, and names the
// classes of this column.
func TestHeadsPredictTheClassesOfTheirColumns(t *testing.T) {
	b := newBench(t)
	rows := "nr,long,wide,species,site\n"
	for i := range 60 {
		rows += fmt.Sprintf("flower %d,%d,%d,%s,%s\n", i, 10*(i%2), 7*(i%3), []string{"setosa", "versicolor"}[i%2], []string{"north", "south", "west"}[i%3])
	}
	b.write("flowers.csv", rows)
	b.write("models.toml", `
[model.flowers]
dataset   = { name = "csv", file = "flowers.csv", labels = "species", names = "nr", scale = "standardise", columns = { place = "site" }, validation = 0.2 }
encoder   = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] }, site = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }, { kind = "cross_entropy", on = "site", against = "place" }]
optimizer = { learning_rate = 0.1 }
train     = { epochs = 30, batch = 16 }
hook.early_stopping.patience = 20
[model.regression]
dataset = { name = "csv", file = "flowers.csv", names = "nr", columns = { target = ["long"], unread = ["species", "site"] }, validation = 0.2 }
encoder = [{ kind = "dense", units = 8 }]
decoder = []
head    = { y = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "mse", on = "y", against = "target" }]
train   = { epochs = 2, batch = 16 }
`)
	expect.Contains(t, b.must(0, "check").stdout, "names nr, columns place (3 classes: north, south, west)\n", "check prints")
	b.must(0, "train", "flowers")
	for _, want := range []string{"class.accuracy  1 ", "site.accuracy   1 "} {
		expect.Contains(t, b.must(0, "eval", "runs/flowers").stdout, want, "eval prints")
	}
	if got := b.must(0, "predict", "runs/flowers", "--in", "flowers.csv", "--head", "site").stdout; !strings.HasPrefix(got, "name,class,probability\nflower 0,north,") {
		t.Errorf("predict prints %q", got[:80])
	}
	b.must(0, "report", "runs/flowers", "-o", "report.html")
	if page := b.read("report.html"); !strings.Contains(page, "south") || !strings.Contains(page, "versicolor") {
		t.Error("the page does not name the classes of both heads")
	}
	b.must(0, "train", "regression")
	expect.Contains(t, b.must(0, "eval", "runs/regression").stdout, "\nloss ", "eval of a model without images and classes does not show its loss")
	if got := b.must(0, "eval", "runs/flowers").stdout; strings.Contains(got, "\nloss ") {
		t.Errorf("eval of a classifier shows its loss without being asked:\n%s", got)
	}
}
