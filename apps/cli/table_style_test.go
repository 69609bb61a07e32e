package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A table with decimal commas and names of columns that are no keys of TOML: messages have the user's names, and numbers of new files with decimal
// points, or the reverse, are said to be these.
func TestMessagesHaveTheColumnsOfTheUser(t *testing.T) {
	for _, c := range []struct{ file, sign, other, was, is string }{{"komma.csv", ",", ".", "comma", "point"}, {"punkt.csv", ".", ",", "point", "comma"}} {
		t.Run(c.file, func(t *testing.T) {
			b := newBench(t)
			rows := "Wohnfläche;Straße (Lage);Kaufpreis\n"
			for i := range 60 {
				rows += fmt.Sprintf("%d%s%d;%s;%d\n", 20+i%31, c.sign, i%10, []string{"Nord", "Süd", ""}[i%3], 900+10*(i%31))
			}
			b.write(c.file, rows)
			name := strings.TrimSuffix(c.file, ".csv")
			b.shipped()
			b.must(0, "init", c.file, "--target", "Kaufpreis")
			b.must(0, "train", name+"-numbers", "--epochs", "1")
			b.write("neu.csv", fmt.Sprintf("Wohnfläche;Straße (Lage)\n35%s5;West\n", c.sign))
			b.contains("an unknown text", b.must(0, "predict", "runs/"+name+"-numbers", "--in", "neu.csv").stderr, `neu.csv: column "Straße (Lage)": line 2 has "West", which no training sample has (Nord, Süd)`)
			b.write("neu.csv", fmt.Sprintf("Wohnfläche;Straße (Lage)\n35%s5;West\n", c.other))
			b.contains("another sign", b.must(4, "predict", "runs/"+name+"-numbers", "--in", "neu.csv").stderr,
				fmt.Sprintf(`column "Wohnfläche": got "35%s5", want a finite number; numbers of this file have a %s before their fraction, those of the training a %s: write them as in the training`, c.other, c.is, c.was))
		})
	}
}

// complete and predict write what they read: separators, decimal signs, and whole numbers as these. A column of the training that a file lacks counts as
// missing; under another name it is an error.
func TestTablesAreWrittenAsTheyWereRead(t *testing.T) {
	b := newBench(t)
	rows := "a;b;rooms;kind\n"
	for i := range 40 {
		rows += fmt.Sprintf("%d,5;%d,25;%d;%c\n", i%7, i%5, 1+i%6, 'x'+i%2)
	}
	b.write("t.csv", rows)
	b.write("models.toml", `
[model.m]
dataset = { name = "csv", file = "t.csv", labels = "kind", decimal = ",", missing = "nan", scale = "standardise", hide = 0.1 }
encoder = [{ kind = "dense", units = 3 }]
head.class = { layers = [{ kind = "dense" }] }
loss    = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train   = { epochs = 2 }
`)
	b.must(0, "train", "m")
	b.write("new.csv", "rooms;a;b\n;1,5;2,25\n3;;\n2;3,5;4,25\n")
	predicted := strings.Split(b.must(0, "predict", "runs/m", "--in", "new.csv").stdout, "\n")
	if len(predicted) != 5 || predicted[0] != "name;class;probability" || !regexp.MustCompile(`^0;[xy];0,\d+$`).MatchString(predicted[1]) {
		t.Errorf("got %q", predicted)
	}
	b.contains("complete", b.must(0, "complete", "runs/m", "--in", "new.csv", "--out", "full.csv").stdout, "3 entries completed")
	if got := b.read("full.csv"); !regexp.MustCompile(`^rooms;a;b\n-?\d;1,5;2,25\n3;-?\d+,\d+;-?\d+,\d+\n2;3,5;4,25\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	b.write("less.csv", "a;b;kind\n1,5;2,25;x\n;3,25;y\n")
	r := b.must(0, "complete", "runs/m", "--in", "less.csv", "--out", "full.csv")
	b.contains("a column less", r.stdout+r.stderr, `less.csv: lacks columns of the training, whose values count as missing: "rooms"`, "1 entry completed")
	if got := b.read("full.csv"); !regexp.MustCompile(`^a;b;kind\n1,5;2,25;x\n-?\d+,\d+;3,25;y\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	b.write("less.csv", "a;Zimmer;b;kind\n1,5;3;2,25;x\n;2;3,25;y\n")
	b.contains("another name", b.must(4, "complete", "runs/m", "--in", "less.csv", "--out", "full.csv").stderr, `missing: "rooms"; unknown to the training: "Zimmer"`)
}

// complete and eval say which columns the model fills worse than by their means, and eval compares a regression and a classifier with constants.
func TestNumbersAreComparedWithConstants(t *testing.T) {
	b := newBench(t)
	rows, holed := "a,b,noise,y,kind\n", "a,b,noise\n"
	for i := range 300 {
		a, noise := i%17, i*i*7919%1009
		rows += fmt.Sprintf("%d,%d,%d,%d,%s\n", a, 2*a, noise, 10+a, []string{"x", "y", "x"}[i%3])
		cells := []string{fmt.Sprint(a), fmt.Sprint(2 * a), fmt.Sprint(noise)}
		cells[i%3] = ""
		holed += strings.Join(cells, ",") + "\n"
	}
	b.write("t.csv", rows)
	b.write("holed.csv", holed)
	b.write("models.toml", `
[model.fills]
dataset = { name = "csv", file = "t.csv", columns = ["a", "b", "noise"], missing = "nan", scale = "standardise", hide = 0.2 }
encoder = [{ kind = "dense", units = 16, activation = "relu" }]
decoder = [{ kind = "dense" }]
optimizer = { learning_rate = 0.01 }
train   = { epochs = 150, batch = 32 }

[model.predicts]
dataset = { name = "csv", file = "t.csv", labels = "kind", columns = { images = ["a", "b", "noise"], target = "y" }, scale = "standardise" }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
decoder = []
head.y  = { layers = [{ kind = "dense" }] }
head.kind = { layers = [{ kind = "dense" }] }
loss    = [{ kind = "mse", on = "y", against = "target" }, { kind = "cross_entropy", on = "kind" }]
train   = { epochs = 1 }
`)
	b.must(0, "train", "predicts", "--quiet")
	got := b.must(0, "eval", "runs/predicts", "--in", "t.csv")
	b.contains("constants", got.stdout+got.stderr, "always predicting the mean has 4.879", "always predicting the most frequent class has 0.6667")
	b.must(0, "train", "fills", "--quiet")
	said := b.must(0, "complete", "runs/fills", "--in", "holed.csv", "--out", "full.csv").stderr
	b.contains("complete", said, `full.csv: by a test with known values that were hidden, the mean of a column fills it better than the model: "noise"`)
	if r := b.must(0, "eval", "runs/fills"); !strings.Contains(r.stdout+r.stderr, `hidden values are predicted worse than by the mean: "noise"`) {
		t.Errorf("got %s%s", r.stdout, r.stderr)
	}
}
