package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// tokens writes a data set of tokens, and trains a model whose code reads them and not the images.
func (b *bench) tokens() {
	b.Helper()
	b.write("words.csv", "a,b,word,kind\n"+strings.Repeat("0.1,0.2,0,x\n0.3,0.1,1,y\n0.2,0.5,2,x\n", 8))
	b.write("models.toml", `
[model.words]
dataset = { name = "csv", file = "words.csv", labels = "kind", columns = { word = "word" } }
encoder = [{ kind = "embedding", vocabulary = 3, units = 4, from = "word" }]
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }]
train   = { epochs = 1 }
`)
	b.must(0, "train", "words", "--quiet")
}

func TestAFigureOfCodesReadsTheColumnsOfTheCode(t *testing.T) {
	b := newBench(t)
	b.tokens()
	b.must(0, "figure", "codes", "runs/words", "--images", "0,1,2", "-o", "codes.png")
	b.must(0, "report", "runs/words", "--metrics", "mse,max_approx", "-o", "words.html")
	expect.Contains(t, b.read("words.html"), `<th scope="row">max_approx</th>`, "a report leaves out a named metric without a value")
}

func TestNoOutputReplacesAFileOfASweep(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.write("models.toml", b.read("models.toml")+"\n[sweep.seeds]\nmodel = \"small\"\nseeds = [1]\n")
	b.must(0, "sweep", "seeds", "--epochs", "1", "--quiet")
	for _, name := range []string{"results.json", "results.csv", "summary.csv", "timings.csv", "selected.csv", "manifest.json"} {
		b.contains(name, b.must(exitUsage, "export", "runs/small", "--to", "npz", "-o", "sweeps/seeds/"+name).stderr, "is a file of the sweep sweeps/seeds")
	}
	b.must(0, "report", "sweeps/seeds", "-o", "sweeps/seeds/report.html")
}

func TestCheckAndSummarySayWhatWasRead(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	fatal.If(t, data.WriteImages(b.path("in.npy"), []int{32, 32}, swimmer(t)))
	b.must(0, "encode", "runs/small", "--in", "in.npy", "-o", "codes.npy")
	b.write("own.toml", "[model.codes]\nkind = \"gmm\"\ncomponents = 2\ndataset = { name = \"npy\", images = \"codes.npy\" }\n")
	b.contains("check", b.must(0, "check", "own.toml").stdout, `model "codes": 256 training samples of 6`)
	b.contains("summary", b.must(0, "summary", "codes", "-f", "own.toml").stdout, "free parameters  ")
}

// Every command shows people and programs the same document.
func TestCommandsThatListHaveJSON(t *testing.T) {
	b := newBench(t)
	for command, member := range map[string]string{"doctor": "kernels", "data list": "data", "version": "version"} {
		var shown map[string]any
		if err := json.Unmarshal([]byte(b.must(0, append(strings.Fields(command), "--json")...).stdout), &shown); err != nil || shown[member] == nil {
			t.Errorf("%s: got %v, %v, want a member %q", command, shown, err, member)
		}
	}
}
