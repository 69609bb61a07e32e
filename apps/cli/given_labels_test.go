package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// encode reads labels like any other column. The class names are those of the training, even if the classes in the file
// differ.
func TestEncodeReadsLabels(t *testing.T) {
	b := newBench(t)
	rows := "a,b,kind\n"
	for i := range 20 {
		rows += fmt.Sprintf("%d,%d,%s\n", i%3, i%5, []string{"mild", "severe"}[i%2])
	}
	b.write("train.csv", rows)
	b.write("models.toml", `
[model.given]
dataset = { name = "csv", file = "train.csv", labels = "kind" }
encoder = [{ kind = "dense", units = 2 }]
decoder = [{ kind = "dense", from = ["previous", "labels"] }]
column.negative = { kind = "other", of = "labels" }
head.y = { from = ["code", "labels"], layers = [{ kind = "dense", units = 2 }] }
head.z = { from = ["code", "negative"], layers = [{ kind = "dense", units = 2 }] }
loss  = [{ kind = "mse" }, { kind = "mse", on = "y", against = "images" }, { kind = "mse", on = "z", against = "images" }]
train = { epochs = 1 }
`)
	b.must(0, "train", "given")
	b.write("both.csv", "a,b,kind\n1,2,mild\n1,2,severe\n")
	b.write("second.csv", "a,b,kind\n1,2,severe\n")
	b.write("none.csv", "a,b\n1,2\n")
	b.write("other.csv", "a,b,kind\n1,2,unheard\n")
	for _, value := range []string{"y", "output"} {
		encode := func(file string) []string {
			b.must(0, "encode", "runs/given", "--in", file, "--value", value, "-o", "out.csv")
			return strings.Split(strings.TrimSpace(b.read("out.csv")), "\n")[1:]
		}
		both, second := encode("both.csv"), encode("second.csv")
		if strings.TrimPrefix(both[0], "mild") == strings.TrimPrefix(both[1], "severe") {
			t.Errorf("%s: equal values %q for different labels", value, both)
		}
		expect.Equal(t, second[0], both[1], value)
		b.contains("no labels", b.must(4, "encode", "runs/given", "--in", "none.csv", "--value", value, "-o", "x.csv").stderr, "none.csv", `"labels"`)
		b.contains("unknown class", b.must(4, "encode", "runs/given", "--in", "other.csv", "--value", value, "-o", "x.csv").stderr, "other.csv", "unheard", "mild")
	}
	b.must(0, "encode", "runs/given", "--in", "second.csv", "--value", "z", "-o", "x.csv")
	b.contains("negatives without labels", b.must(4, "encode", "runs/given", "--in", "none.csv", "--value", "z", "-o", "x.csv").stderr, `"labels"`)
	for _, file := range []string{"none.csv", "other.csv"} { // the code needs no labels
		b.must(0, "encode", "runs/given", "--in", file, "-o", "x.csv")
	}
	b.contains("eval", b.must(0, "eval", "runs/given", "--metrics", "mse").stdout, "mse")
	b.must(0, "report", "runs/given")
}

// Samples measured by --in have the labels and columns of a file that the training declares as its test samples, in any order of its columns
// and in several files.
func TestGivenSamplesAreMeasuredWithTheirLabels(t *testing.T) {
	b := newBench(t)
	rows := func(from, to int, line string) string {
		for i := from; i < to; i++ {
			line += strings.NewReplacer("A", fmt.Sprint(i%3), "B", fmt.Sprint(i*i%7), "K", []string{"severe", "mild", "none"}[i%3], "D", fmt.Sprint(i%5)).Replace("\nA,B,K,D")
		}
		return line
	}
	head := "a,b,kind,dose"
	b.write("train.csv", rows(0, 60, head))
	b.write("test.csv", rows(60, 90, head))
	b.write("first.csv", rows(60, 80, head))
	b.write("second.csv", rows(80, 90, head))
	turned := ""
	for _, line := range strings.Split(rows(60, 90, head), "\n") {
		c := strings.Split(line, ",")
		turned += strings.Join([]string{c[3], c[1], c[2], c[0]}, ",") + "\n"
	}
	b.write("turned.csv", turned)
	b.write("bare.csv", "b,a\n1,2\n2,1\n")
	b.write("models.toml", `
[model.given]
dataset = { name = "csv", file = "train.csv", test = "test.csv", labels = "kind", columns = { target = "dose" } }
encoder = [{ kind = "dense", units = 2 }]
head.class = { layers = [{ kind = "dense" }] }
head.y = { layers = [{ kind = "dense", units = 1 }] }
loss  = [{ kind = "mse" }, { kind = "cross_entropy", on = "class", against = "labels" }, { kind = "mse", on = "y", against = "target" }]
train = { epochs = 3 }
`)
	b.must(0, "train", "given")
	value := func(args ...string) string {
		var of map[string]any
		text := b.must(0, append([]string{"eval", "runs/given", "--json", "--metrics", "accuracy,r2,mse"}, args...)...).stdout
		fatal.If(t, json.Unmarshal([]byte(text), &of))
		return fmt.Sprint(of["accuracy"], of["r2"], of["mse"], of["images"])
	}
	want := value("--split", "test")
	for _, args := range [][]string{{"--in", "test.csv"}, {"--in", "turned.csv"}, {"--in", "first.csv", "--in", "second.csv"}} {
		expect.Equal(t, value(args...), want, args)
	}
	b.contains("no labels", b.must(exitData, "eval", "runs/given", "--in", "bare.csv", "--metrics", "accuracy").stderr, "bare.csv", "no labels", "give the labels")
	bare := b.must(0, "eval", "runs/given", "--in", "bare.csv")
	b.contains("defaults", bare.stdout, "mse")
	b.contains("what is left out", bare.stderr, "no value of accuracy", "the samples have no labels")
}

// For published or generated data sets, labels and columns are read from a file by their own names.
func TestColumnsOfAGeneratedSetAreReadByTheirNames(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.loan]
dataset = { name = "credit", count = 60, test = 10 }
encoder = [{ kind = "dense", units = 2 }]
decoder = []
head.y = { from = ["code", "labels", "group"], layers = [{ kind = "dense", units = 1 }] }
loss  = [{ kind = "mse", on = "y", against = "labels" }]
train = { epochs = 1 }
`)
	b.must(0, "train", "loan")
	b.write("new.csv", "u,v,w,x,y,z,group,label\n1,2,3,4,5,6,a,repaid\n1,2,3,4,5,6,b,repaid\n")
	b.write("less.csv", "u,v,w,x,y,z\n1,2,3,4,5,6\n")
	b.must(0, "encode", "runs/loan", "--in", "new.csv", "--value", "y", "-o", "y.csv")
	if got := strings.Split(b.read("y.csv"), "\n"); len(got) != 4 || got[1] == got[2] {
		t.Errorf("got %q, want two different rows", got)
	}
	b.contains("no group", b.must(4, "encode", "runs/loan", "--in", "less.csv", "--value", "y", "-o", "y.csv").stderr, "less.csv")
}

// A class that was a number in the training is no text in other samples, whose order would be alphabetical; numbers for classes that had names are said.
func TestEvalReadsLabelsAsTheTrainingDid(t *testing.T) {
	b := newBench(t)
	kinds := map[string][]string{"numbers.csv": {"0", "1", "2"}, "texts.csv": {"c", "a", "b"}, "floats.csv": {"0.0", "1.0", "2.0"}}
	for file, names := range kinds {
		rows := "a,b,kind\n"
		for i := range 30 {
			rows += fmt.Sprintf("%d,%d,%s\n", i%3, i%5, names[i%3])
		}
		b.write(file, rows)
		b.write(file+".toml", fmt.Sprintf(`
[model.m]
dataset = { file = %q, labels = "kind", validation = 0 }
encoder = [{ kind = "dense", units = 8, activation = "relu" }]
decoder = []
head.class.layers = [{ kind = "dense" }]
loss  = [{ kind = "cross_entropy" }]
train = { epochs = 1 }
`, file))
		b.must(0, "train", "m", "-f", file+".toml", "-o", "runs/"+strings.TrimSuffix(file, ".csv"))
	}
	accuracy := b.must(0, "eval", "runs/numbers", "--in", "numbers.csv", "--metrics", "accuracy", "--json").stdout
	b.contains("numbers", accuracy, `"accuracy"`)
	for file, name := range map[string]string{"texts.csv": `"c"`, "floats.csv": `"0.0"`} {
		b.contains(file, b.must(4, "eval", "runs/numbers", "--in", file).stderr, file, name, "which no training sample has (0, 1, 2)")
	}
	b.contains("names", b.must(4, "eval", "runs/texts", "--in", "numbers.csv").stderr, `"0"`, "which no training sample has (a, b, c)")
}
