package cli

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestThresholdsOfATable(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(4, 4))
	rows := "a,b,sex,loan\n"
	for i := range 400 {
		rows += fmt.Sprintf("%.3f,%.3f,%s,%s\n", r.NormFloat64()+float64(i%2)+0.5*float64(i/2%2), r.NormFloat64(), []string{"f", "m"}[i/2%2], []string{"refused", "granted"}[(i+1)%2])
	}
	b.write("loans.csv", rows)
	b.write("test.csv", "sex,a,b,loan\nf,1,0,granted\nf,0,1,refused\nf,1,1,refused\nm,1,0,granted\nm,0,-1,granted\nm,2,0,refused\n")
	b.write("models.toml", `
[model.loans]
dataset   = { name = "csv", file = "loans.csv", labels = "loan", columns = { sex = "sex" }, validation = 0.5, test = "test.csv" }
encoder   = [{ kind = "dense", units = 4, activation = "relu" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }]
train     = { epochs = 3, batch = 20 }
`)
	b.must(0, "train", "loans", "--quiet")
	const run = "runs/loans"
	fair := func(args ...string) string { // the values of the groups
		out := b.must(0, append([]string{"eval", run, "--metrics", "fairness", "--with", "group=sex", "--with", "positive=0"}, args...)...).stdout
		return out[strings.Index(out, "selection_rate f"):]
	}
	b.contains("eval", b.must(0, "eval", run, "--metrics", "fairness", "--with", "group=sex", "--split", "validation").stdout, "selection_rate f", "selection_rate gap", "count m")
	b.contains("no such column", b.must(exitData, "eval", run, "--metrics", "fairness", "--with", "group=age").stderr, `has no column "age"`)
	b.contains("no such class", b.must(exitUsage, "thresholds", run, "--group", "sex", "--positive", "yes").stderr, "--positive: got \"yes\", want one of the classes: granted, refused")
	expect.Equal(t, fair("--in", "test.csv"), fair("--split", "test"), "of a file")
	out := b.must(0, "thresholds", run, "--group", "sex", "--positive", "granted", "--criterion", "independence").stdout
	b.contains("thresholds", out, `class: independence for "granted" by sex, fitted to 200 validation samples`, "\nf ", "p >= ", "selection_rate_gap", "validation before")
	b.contains("eval", b.must(0, "eval", run, "--metrics", "fairness", "--with", "group=sex", "--with", "positive=0", "--split", "validation").stdout,
		"class: thresholds for independence by sex", "decided by the thresholds that are kept with the run: independence by sex")
	predicted := b.must(0, "predict", run, "--in", "loans.csv")
	b.contains("predict", predicted.stderr, "fitted after the training: class: thresholds for independence by sex")
	expect.Equal(t, fair("--in", "test.csv"), fair("--split", "test"), "of a file, with thresholds")
	b.write("few.csv", "a,b,sex\n0,0,f\n1,0,m\n")
	b.must(0, "predict", run, "--in", "few.csv")
	b.write("none.csv", "a,b\n0,0\n")
	if got := b.run("predict", run, "--in", "none.csv"); got.code == 0 || !strings.Contains(got.stderr, "sex") {
		t.Errorf("without the column of the groups: %d, %s", got.code, got.stderr)
	}
	b.must(0, "thresholds", run, "--remove")
	b.must(0, "predict", run, "--in", "none.csv")
}
