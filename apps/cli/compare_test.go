package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"

	"tessera/apps/show/comparison"
	"tessera/internal/fatal"
)

func TestCompareShowsWhatDiffers(t *testing.T) {
	b := newBench(t)
	for _, run := range [][]string{{"a1", "1", "1"}, {"a2", "2", "1"}, {"b1", "1", "0.5"}, {"b2", "2", "0.5"}} {
		b.must(0, "train", "small", "--epochs", "1", "--out", run[0], "--set", "train.seed="+run[1], "--set", "loss.0.weight="+run[2])
	}
	r := b.must(0, "compare", "a1", "a2", "b1", "b2")
	b.contains("standard output", r.stdout, "A  small  swimmer, train, 256 images (fitted to these samples)  a1 a2\n", "B  small  swimmer, train, 256 images (fitted to these samples)  b1 b2\n", "Holm's correction for ",
		"setting        A    B\nloss.0.weight  1.0  0.5\n", "B - A (95 %)", " ± ", "A, between its seeds", "A and B")
	var c comparison.Table
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "compare", "a1", "b1", "--json", "--metrics", "mse,hoyer").stdout), &c))
	if len(c.Models) != 2 || len(c.Metrics) != 2 || c.Metrics[0].Name != "mse" || c.Metrics[0].Cells[1].Paired != nil {
		t.Errorf("got %+v", c)
	}
	b.contains("standard error", b.must(exitUsage, "compare", "a1").stderr, "compare: got 1 run, want at least 2\n")
	b.contains("standard error", b.must(exitUsage, "compare", "a1", "a1").stderr, "compare: a1: the same model with the same seed 1 as a1; give it once\n")
	b.contains("standard error", b.must(exitUsage, "compare", "a1", "nothing").stderr, "nothing")
	if out := b.must(0, "compare", "a1", "b1").stdout; strings.Contains(out, "between its seeds") || strings.Contains(out, "(95 %)") {
		t.Errorf("one seed has no agreement between seeds, and no tested difference:\n%s", out)
	}
}

// Law: the verdict of a sweep is the same in the text and the JSON of `compare` and on the page of `report`.
func TestTheReportOfASweepHasTheVerdictsOfCompare(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 2, batch = 20 }
[sweep.s]
model = "small"
seeds = [1, 2, 3]
set.encoder.0.units = [3, 5, 9]
`)
	b.must(0, "sweep", "s", "--quiet")
	for _, flags := range [][]string{nil, {"--reference", "B"}} {
		text := b.must(0, append([]string{"compare", "sweeps/s"}, flags...)...).stdout
		var c comparison.Table
		fatal.If(t, json.Unmarshal([]byte(b.must(0, append([]string{"compare", "sweeps/s", "--json"}, flags...)...).stdout), &c))
		b.must(0, append([]string{"report", "sweeps/s", "-o", "s.html"}, flags...)...)
		page, shown := html.UnescapeString(b.read("s.html")), 0
		for _, row := range c.Metrics {
			for _, cell := range row.Cells {
				if cell.Paired != nil {
					shown++
					b.contains("the text of compare", text, cell.Paired.String())
					b.contains("the page of the sweep", page, ">"+cell.Paired.String()+"</td>")
				}
			}
		}
		if said := fmt.Sprintf("Holm's correction for %d comparisons", c.Tests); shown < 10 || c.Tests < 10 || !strings.Contains(text, said) || !strings.Contains(page, said) {
			t.Errorf("%d differences; %q is not said by compare and on the page", shown, said)
		}
		b.contains("compare", text, "bars, all, 60 images (the fitted samples among them)  3 trials of sweeps/s\n", comparison.Spread)
	}
	for _, command := range []string{"compare", "report"} {
		b.contains("standard error", b.must(exitUsage, command, "sweeps/s", "--reference", "Z").stderr, `--reference: no such model to compare with: got "Z", want one of A (small), B (small), C (small)`)
	}
}
