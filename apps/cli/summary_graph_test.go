package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const graphModels = `
[model.plain]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]

[model.skip]
dataset = "bars"
encoder = [{ kind = "conv2d", filters = 2 }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 64 }, { kind = "reshape", shape = [8, 8] }, { kind = "conv2d", filters = 1, from = ["previous", "encoder.0"] }]
loss = [{ kind = "mse" }, { kind = "l2", on = "code" }]

[model.taught]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }, { kind = "consistency", on = "code", teacher = "slow", name = "like" }]
hook.slow = { kind = "teacher", decay = 0.9 }

[model.heads]
dataset = { name = "csv", file = "p.csv", labels = "species", validation = 0, columns = { weight = "w", target = ["u", "v"] } }
encoder = [{ kind = "dense", units = 3, activation = "relu" }]
decoder = []
head.y.layers = [{ kind = "dense" }]
head.class.from = "images"
head.class.layers = [{ kind = "dense", units = 3, share = "encoder.0" }, { kind = "dense" }]
loss = [{ kind = "mse", on = "y", against = "target", sample_weight = "weight" }, { kind = "cross_entropy", on = "class", name = "sort" }]
`

// summary prints a table of values and their readers for a model that is more than an encoder and a decoder, and only for such
// a model.
func TestSummaryListsValuesAndTheirReaders(t *testing.T) {
	b := newBench(t)
	b.write("p.csv", "a,b,w,u,v,species\n1,2,0.5,1,0,x\n3,4,0.25,0,1,y\n")
	b.write("models.toml", graphModels)
	if text := b.must(0, "summary", "plain").stdout; strings.Contains(text, "read by") {
		t.Errorf("an encoder and a decoder have a table of values:\n%s", text)
	}
	b.contains("heads", b.must(0, "summary", "heads").stdout, "read by", "loss mse (sample_weight)", "loss mse (against)", "loss sort (against)")
	var s summary
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "summary", "skip", "--json").stdout), &s))
	got := map[string]valueSummary{}
	for _, v := range s.Values {
		got[v.Name] = v
	}
	for name, want := range map[string]valueSummary{
		"images":    {Name: "", Shape: []int{8, 8}, ReadBy: []string{"encoder.0", "loss mse (against)"}},
		"code":      {Name: "", Shape: []int{4}, ReadBy: []string{"decoder.0", "loss l2"}},
		"output":    {Name: "", Shape: []int{64}, ReadBy: []string{"loss mse"}},
		"encoder.0": {Name: "", Shape: []int{8, 8, 2}, ReadBy: []string{"encoder.1", "decoder.2"}},
	} {
		if v := got[name]; !slices.Equal(v.Shape, want.Shape) || !slices.Equal(v.ReadBy, want.ReadBy) || len(got) != 4 {
			t.Errorf("%s: got %v of %d values, want %v", name, v, len(got), want)
		}
	}
}

// The graph of a model contains its columns, the layers of each stack, values and terms, with edges from each value to its
// readers.
func TestSummaryWritesAGraph(t *testing.T) {
	b := newBench(t)
	b.write("p.csv", "a,b,w,u,v,species\n1,2,0.5,1,0,x\n3,4,0.25,0,1,y\n")
	b.write("models.toml", graphModels+`
player.one = { trains = ["encoder.*"], losses = ["mse"], optimizer = { kind = "sgd", learning_rate = 0.1 } }
player.two = { trains = ["head.*"], losses = ["sort"], optimizer = { kind = "adam" } }
`)
	b.contains("skip", b.must(0, "summary", "skip", "--dot").stdout, `digraph "skip" {`, `"images" [shape=ellipse, label="images\n8x8"]`,
		`subgraph "cluster decoder" {`, `"decoder.2" [shape=box, label="decoder.2\nconv2d\n8x8x1"]`, `"encoder.0" -> "decoder.2"`, `"code" -> "loss l2"`,
		`"images" -> "loss mse" [label="against"]`)
	b.contains("taught", b.must(0, "summary", "taught", "--dot").stdout, `"hook slow" [shape=hexagon, label="hook slow\ncopy of the parameters"]`,
		`"hook slow" -> "loss like" [label="code (teacher)"]`)
	heads := b.must(0, "summary", "heads", "--dot").stdout
	if strings.Contains(heads, `"player two" -> "head.class.0"`) {
		t.Errorf("a player trains a layer that has no parameters of its own:\n%s", heads)
	}
	b.contains("heads", heads, `subgraph "cluster head class" {`, `"weight" -> "loss mse" [label="sample_weight"]`,
		`"encoder.0" -> "head.class.0" [label="shared parameters"`, `"loss sort" [shape=octagon, label="loss sort\ncross_entropy"]`, `"player one" -> "encoder.0"`)
	b.contains("two outputs", b.must(exitUsage, "summary", "skip", "--dot", "--json").stderr, "--dot and --json cannot be given together")
	expect.Equal(t, dotText(`a "b" \c`, "d\ne"), `"a \"b\" \\c\nd\\u000ae"`, "quoted text")
}
