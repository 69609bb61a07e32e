package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// Files that are no pages, and folders that are missing, cost neither a file nor a result.
func TestMistakenOutputsCostNothing(t *testing.T) {
	b := newBench(t)
	b.trainSpectra("a", "b", "c")
	before, err := os.ReadFile(b.path("spectra.csv"))
	fatal.If(t, err)
	for _, args := range [][]string{{"report", "run"}, {"compare", "run", "run"}} {
		b.contains("another name", b.must(exitUsage, append(args, "-o", "spectra.csv")...).stderr, `want a name that ends in .html`)
	}
	if after, err := os.ReadFile(b.path("spectra.csv")); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
	b.write("nmf.toml", "[model.n]\nkind = \"nmf\"\ndataset = { name = \"bars\", count = 60 }\ncomponents = 2\niterations = 3\n")
	ranked := b.must(exitWrite, "rank", "n", "-f", "nmf.toml", "--ranks", "1,2", "--figure", "missing/rank.png")
	b.contains("the table", ranked.stdout, "components")
	b.contains("the folder", ranked.stderr, "missing/rank.png")
	b.contains("complete", b.must(exitUsage, "complete", "run", "--in", "spectra.csv", "-o", "filled.npy").stderr, `--out: got "filled.npy", want a name that ends in .csv`)
}

func TestOneJSONDocumentBesideAPage(t *testing.T) {
	b := newBench(t)
	b.trainSpectra("a", "b")
	b.must(0, "train", "spectra", "--seed", "2", "--out", "other")
	out := b.must(0, "compare", "run", "other", "--metrics", "mse", "--json", "-o", "c.html")
	if !json.Valid([]byte(out.stdout)) || !strings.Contains(out.stderr, "report c.html") {
		t.Errorf("got %s, %s", out.stdout, out.stderr)
	}
}

func TestMistakesHaveTheCodeOfMistakes(t *testing.T) {
	b := newBench(t)
	b.trainSpectra("a", "b")
	b.contains("help", b.must(exitUsage, "help", "foo").stderr, `unknown command "foo"`)
	b.contains("help", b.must(0, "help", "train").stdout, "tessera train")
	b.write("bare.csv", "a,b\n1,2\n2,1\n")
	b.contains("labels", b.must(exitData, "eval", "run", "--in", "bare.csv", "--metrics", "knn_accuracy").stderr, "give the labels in the file of the samples")
	b.trained("images", 12)
	b.contains("atoms", b.must(exitUsage, "figure", "atoms", "run", "images", "-o", "a.png").stderr, "draw vectors and images one by one")
	fatal.If(t, os.Mkdir(b.path("damaged"), 0o777))
	b.write("damaged/config.toml", "garbage")
	b.contains("runs", strings.Join(strings.Fields(b.must(0, "runs", "damaged").stdout), " "), "damaged - - ")
}
