package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/classical"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestRankChoosesTheNumberOfComponents(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.p]\nkind = \"pca\"\ncomponents = 8\ndataset = { name = \"bars\", count = 300 }\n"+
		"[model.f]\nextends = \"p\"\nkind = \"nmf\"\ncomponents = 8\niterations = 100\n[model.k]\nextends = \"p\"\nkind = \"semi_nmf\"\n")
	for _, model := range []string{"p", "f"} {
		var errs []struct {
			Components int
			MSE        float64
		}
		fatal.If(t, json.Unmarshal([]byte(b.must(0, "rank", model, "--ranks", "2,16,30", "--json").stdout), &errs))
		if len(errs) != 3 || errs[1].Components != 16 || errs[0].MSE <= errs[1].MSE || errs[2].MSE <= errs[1].MSE {
			t.Errorf("%s: got %+v, want the least error at 16 bars", model, errs)
		}
	}
	usual := b.must(0, "rank", "p")
	b.contains("without --ranks", usual.stdout, "held-out mse", "least")
	ends := b.must(0, "rank", "p", "--ranks", "2,16")
	b.contains("rank", ends.stdout, "held-out mse", "least, fewest within one standard error")
	b.contains("a warning", ends.stderr, "is the largest of those compared")
	// The start nndsvda ends in a local minimum for exactly as many atoms as bars; several random starts find the bars.
	b.contains("restarts", b.must(0, "rank", "f", "--ranks", "12,16,20", "--set", "init=random", "--set", "restarts=5", "--figure", "f.svg").stdout, "\n16 ", "fewest within one standard error\n20 ")
	b.contains("f.svg", b.read("f.svg"), "components", "bars: one standard error of the held-out mse", "fewest within one standard error: 16")
	b.contains("--epochs", b.must(exitUsage, "rank", "f", "--ranks", "2", "--epochs", "3").stderr, "--epochs: f is a baseline")
	b.write("counts.csv", "a,b,c,d,e,f\n4,3,0,0,0,0\n0,0,5,6,0,0\n8,6,0,0,0,0\n0,0,0,0,2,2\n0,0,10,12,0,0\n0,0,0,0,7,7\n4,3,0,0,2,2\n")
	agree := b.must(0, "rank", "f", "--ranks", "2,3", "--seeds", "4", "--set", "dataset=counts.csv")
	b.contains("--seeds", agree.stdout, "stability", "most stable", "Parts of 3 components", "largest columns", "a, b", "d, c", "e, f")
	b.contains("--seeds", b.must(0, "rank", "k", "--ranks", "2", "--seeds", "3", "--json").stdout, `"consensus_mse"`, `"similarity"`)
	for args, says := range map[string]string{
		"--ranks 2 k":           `kind "semi_nmf"`,
		"--ranks 2 --seeds 3 p": `want kind = "nmf"`,
		"--ranks 2 --seeds 2 f": "want an integer >= 3",
		"--ranks 33 p":          "got 33, want 1 to 32",
	} {
		b.contains(args, b.must(exitUsage, append([]string{"rank"}, strings.Fields(args)...)...).stderr, says)
	}
}

// The best number may be outside of a range at whose end it is.
func TestABestNumberAtTheEndOfTheRangeIsAWarning(t *testing.T) {
	of := func(components ...int) *ranking {
		r := rankedByError()
		for _, n := range components {
			r.Add(n, 0.5, math.Abs(float64(n)-5))
		}
		return ranked(r, "components")
	}
	const both = ", the best number (least, fewest within one standard error), is the "
	for want, r := range map[string]*ranking{
		"": of(4, 5, 6),
		"3" + both + "largest of those compared, and a larger one may be better: give --ranks larger ones too":    of(3, 1, 2),
		"7" + both + "smallest of those compared, and a smaller one may be better: give --ranks smaller ones too": of(8, 7),
	} {
		expect.Equal(t, strings.Join(r.atEdges(), "\n"), want)
	}
	// There are no fewer components than one, and one number alone is no range.
	one := rankedByError()
	one.Add(1, 0, 1)
	one.Add(2, 0, 2)
	if got := slices.Concat(of(3).atEdges(), of(3, 3).atEdges(), ranked(one, "components").atEdges()); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func rankedByError() *classical.Ranking {
	return &classical.Ranking{Measures: []classical.RankMeasure{{Key: "mse", Name: "held-out mse", Choice: classical.Simplest}}}
}

// JSON has the marks of the table and the warning about the end of the range, in the row that they are about.
func TestTheJSONOfRankHasMarksAndEdges(t *testing.T) {
	r := rankedByError()
	for i, mse := range []float64{3, 2, 1.9} {
		r.Add(i+1, 0.2, mse)
	}
	got, err := json.Marshal(ranked(r, "").document().Data)
	if want := `[{"components":1,"mse":3,"standard_error":0.2},{"components":2,"marks":["fewest within one standard error"],"mse":2,"standard_error":0.2},` +
		`{"components":3,"edge":"largest","marks":["least"],"mse":1.9,"standard_error":0.2}]`; string(got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
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
	var list []struct{ Silhouette *float64 }
	if err := json.Unmarshal([]byte(b.must(0, "rank", "k", "--ranks", "1,4", "--json").stdout), &list); err != nil || len(list) != 2 || list[0].Silhouette != nil || *list[1].Silhouette < 0.5 {
		t.Errorf("%+v, %v", list, err)
	}
	b.contains("extension", b.must(exitUsage, "rank", "k", "--ranks", "1,4", "--figure", "k.gif").stderr, `--figure: k.gif: unknown extension`)
}

// The images have 8 parts: with fewer units the error of hidden entries is larger, with 16 it is larger again.
func TestRankChoosesTheNumberOfUnits(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.a]
dataset = { name = "shapes", parts = 8, height = 10, width = 10, count = 300, noise = 0.02 }
encoder = [{ kind = "unrolled", units = 8, steps = 4 }]
decoder = [{ kind = "tied", bias = false }]
loss = [{ kind = "mse" }, { kind = "l1", weight = 0.0001 }]
constraint = [{ kind = "nonneg", on = "decoder.*.weight" }, { kind = "unit_norm", on = "decoder.*.weight" }]
optimizer = { kind = "adam", learning_rate = 1e-2 }
train = { epochs = 1, batch = 64, min_epoch_steps = 20 }
[model.several]
extends = "a"
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "unrolled", units = 8 }, { kind = "residual", layers = [{ kind = "dense", units = 5 }, { kind = "dense", units = 8 }] }, { kind = "relu" }]
train = { epochs = 1 }
`)
	out := b.must(0, "rank", "a", "--ranks", "4,8,16", "--threads", "1", "--epochs", "15", "--figure", "a.svg")
	var chosen []string
	for _, line := range strings.Split(out.stdout, "\n") {
		if strings.Contains(line, "fewest within") {
			chosen = strings.Fields(line)
		}
	}
	if len(chosen) == 0 || chosen[0] != "8" {
		t.Errorf("%s\nwant 8 units", out.stdout)
	}
	b.contains("progress", out.stderr, "training 6 of 6")
	if before, _, _ := strings.Cut(out.stderr, "tessera: training 1 of 6\n"); !strings.HasSuffix(before, "tessera: 6 trainings: 3 numbers of units, 2 folds\n") {
		t.Errorf("before the end of the first training: got %q", before)
	}
	b.contains("a.svg", b.read("a.svg"), "held-out mse", "units in use", ">units<", "fewest within one standard error: 8")
	var list []struct {
		Components int
		MSE        float64
	}
	if err := json.Unmarshal([]byte(b.must(0, "rank", "several", "--ranks", "3", "--json").stdout), &list); err != nil || len(list) != 1 || list[0].Components != 3 || list[0].MSE <= 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if rest, err := os.ReadDir(b.dir); err != nil || len(rest) != 2 {
		t.Errorf("%v, %v, want models.toml and a.svg alone", rest, err)
	}
	for args, says := range map[string]string{
		"classifier --ranks 4": "the model has no decoder",
	} {
		out := b.must(exitUsage, append([]string{"rank"}, strings.Fields(args)...)...)
		b.contains(args, out.stderr, says)
	}
}
