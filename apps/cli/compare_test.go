package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"tessera/apps/show/comparison"
)

func TestCompareShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, run := range [][]string{{"a1", "1", "1"}, {"a2", "2", "1"}, {"b1", "1", "0.5"}, {"b2", "2", "0.5"}} {
		b.must(0, "train", "small", "--epochs", "1", "--out", run[0], "--set", "train.seed="+run[1], "--set", "loss.0.weight="+run[2])
	}
	r := b.must(0, "compare", "a1", "a2", "b1", "b2")
	b.contains("standard output", r.stdout, "A  small  swimmer, train, 256 images (fitted to these images)  a1 a2\n", "B  small  swimmer, train, 256 images (fitted to these images)  b1 b2\n",
		"setting        A    B\nloss.0.weight  1.0  0.5\n", "B - A (95 %)", " ± ", "A, between its seeds", "A and B")
	var c comparison.Table
	if err := json.Unmarshal([]byte(b.must(0, "compare", "a1", "b1", "--json", "--metrics", "mse,hoyer").stdout), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Models) != 2 || len(c.Metrics) != 2 || c.Metrics[0].Name != "mse" || c.Metrics[0].Cells[1].Paired != nil {
		t.Errorf("got %+v", c)
	}
	b.contains("standard error", b.must(exitUsage, "compare", "a1").stderr, "compare: got 1 run, want at least 2\n")
	b.contains("standard error", b.must(exitUsage, "compare", "a1", "a1").stderr, "compare: a1: the same model with the same seed 1 as a1; give it once\n")
	b.contains("standard error", b.must(exitUsage, "compare", "a1", "nothing").stderr, "nothing")
	if out := b.must(0, "compare", "a1", "b1").stdout; strings.Contains(out, "between its seeds") {
		t.Errorf("one seed has no agreement between seeds:\n%s", out)
	}
}
