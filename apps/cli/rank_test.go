package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tessera/baselines"
)

func TestRankChoosesTheNumberOfComponents(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.p]\nkind = \"pca\"\ncomponents = 8\ndataset = { name = \"bars\", count = 300 }\n"+
		"[model.f]\nextends = \"p\"\nkind = \"nmf\"\ncomponents = 8\niterations = 100\n[model.k]\nextends = \"p\"\nkind = \"semi_nmf\"\n")
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
		"--ranks 2 k":           `kind "semi_nmf"`,
		"p":                     "--ranks is missing",
		"--ranks 33 p":          "got 33, want 1 to 32",
		"--ranks 0 p":           "got 0, want 1 to 32",
		"--ranks 2 --folds 1 p": "folds: got 1",
	} {
		b.contains(args, b.must(exitUsage, append([]string{"rank"}, strings.Fields(args)...)...).stderr, says)
	}
}

func TestRankChoosesTheNumberOfClusters(t *testing.T) {
	b := newBench(t)
	var text strings.Builder
	text.WriteString("x,y\n")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 120 {
		fmt.Fprintf(&text, "%.4f,%.4f\n", 9*float64(i%2)+r.NormFloat64(), 9*float64(i/2%2)+r.NormFloat64())
	}
	b.write("blobs.csv", text.String())
	b.write("models.toml", "[model.k]\nkind = \"kmeans\"\ncomponents = 4\ndataset = { name = \"csv\", file = \"blobs.csv\" }\n"+
		"[model.g]\nkind = \"gmm\"\ncomponents = 4\ndataset = { name = \"csv\", file = \"blobs.csv\" }\n")
	for model, says := range map[string][]string{"k": {"held-out mse", "elbow, highest silhouette"}, "g": {"highest likelihood", "least bic, highest silhouette"}} {
		out := b.must(0, "rank", model, "--ranks", "1,2,4,7", "--figure", model+".svg").stdout
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, "highest silhouette") && !strings.HasPrefix(strings.TrimSpace(line), "4 ") {
				t.Errorf("%s: %s", model, out)
			}
		}
		for _, one := range says {
			b.contains(model, out, one)
		}
		for _, panel := range []string{"silhouette", "held-out"} {
			b.contains(model, b.read(model+".svg"), panel)
		}
	}
	var list []baselines.RankClusters
	if err := json.Unmarshal([]byte(b.must(0, "rank", "k", "--ranks", "1,4", "--json").stdout), &list); err != nil || len(list) != 2 || list[0].Silhouette != nil || *list[1].Silhouette < 0.5 {
		t.Errorf("%+v, %v", list, err)
	}
	b.contains("extension", b.must(exitUsage, "rank", "k", "--ranks", "1,4", "--figure", "k.gif").stderr, `--figure: k.gif: unknown extension`)
}
