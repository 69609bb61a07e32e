package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"tessera/baselines"
)

func TestRankChoosesTheNumberOfComponents(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.p]\nkind = \"pca\"\ncomponents = 8\ndataset = { name = \"bars\", count = 300 }\n"+
		"[model.f]\nextends = \"p\"\nkind = \"nmf\"\ncomponents = 8\niterations = 100\n[model.k]\nextends = \"p\"\nkind = \"kmeans\"\n")
	for _, model := range []string{"p", "f"} {
		var errs []baselines.RankError
		if err := json.Unmarshal([]byte(b.must(0, "rank", model, "--ranks", "2,16,30", "--json").stdout), &errs); err != nil {
			t.Fatal(err)
		}
		if len(errs) != 3 || errs[1].Components != 16 || errs[0].MSE <= errs[1].MSE || errs[2].MSE <= errs[1].MSE {
			t.Errorf("%s: got %+v, want the least error at 16 bars", model, errs)
		}
	}
	b.contains("rank", b.must(0, "rank", "p", "--ranks", "2,16").stdout, "held-out mse", "least")
	for args, says := range map[string]string{
		"--ranks 2 k":           `kind "kmeans"`,
		"p":                     "--ranks is missing",
		"--ranks 33 p":          "got 33, want 1 to 32",
		"--ranks 0 p":           "got 0, want 1 to 32",
		"--ranks 2 --folds 1 p": "folds: got 1",
	} {
		b.contains(args, b.must(exitUsage, append([]string{"rank"}, strings.Fields(args)...)...).stderr, says)
	}
}
