package cli

import (
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// patients writes a table, and trains a model with a head that reads two of its columns.
func (b *bench) patients() {
	b.Helper()
	rows := "a,b,dose,ward,kind\n"
	for i := range 40 {
		rows += fmt.Sprintf("%d,%d,%d,%d,%s\n", i%3, i%5, i%7, i%4, []string{"mild", "severe"}[i%2])
	}
	b.write("patients.csv", rows)
	b.write("models.toml", `
[model.patients]
dataset = { name = "csv", file = "patients.csv", labels = "kind", scale = "standardise", columns = { dose = "dose", place = "ward" } }
encoder = [{ kind = "dense", units = 4 }]
head.class = { from = ["code", "dose", "place"], layers = [{ kind = "dense" }] }
loss    = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train   = { epochs = 2 }
`)
	b.must(0, "train", "patients")
}

// predict and encode find the columns of a value in the input file by name. The order of the columns in the file has no
// effect.
func TestColumnsAreReadFromTheInputFile(t *testing.T) {
	b := newBench(t)
	b.patients()
	b.write("new.csv", "a,b,dose,ward\n1,2,3,0\n2,0,1,3\n")
	b.write("turned.csv", "ward,b,dose,a\n0,2,3,1\n3,0,1,2\n")
	b.write("other.csv", "a,b,dose,ward\n1,2,6,1\n2,0,1,3\n")
	first := b.must(0, "predict", "runs/patients", "--in", "new.csv", "--probabilities").stdout
	expect.Equal(t, b.must(0, "predict", "runs/patients", "--in", "turned.csv", "--probabilities").stdout, first)
	lines := func(text string) []string { return strings.Split(text, "\n") }
	other := lines(b.must(0, "predict", "runs/patients", "--in", "other.csv", "--probabilities").stdout)
	if one := lines(first); len(one) != 4 || other[1] == one[1] || other[2] != one[2] {
		t.Errorf("got %q and %q, want them to differ in the first sample alone", one, other)
	}
	b.write("less.csv", "a,b,dose\n1,2,3\n2,0,1\n")
	for _, args := range [][]string{{"predict", "runs/patients", "--in", "less.csv"}, {"encode", "runs/patients", "--in", "less.csv", "--value", "class", "-o", "c.csv"}} {
		b.contains("missing column", b.must(4, args...).stderr, "less.csv", `"place"`, `"ward"`, `"dose"`)
	}
	b.must(0, "encode", "runs/patients", "--in", "less.csv", "-o", "codes.csv") // the code needs the values alone
	expect.Equal(t, len(lines(b.read("codes.csv"))), 4)
}
