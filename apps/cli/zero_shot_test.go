package cli

import (
	"strings"
	"testing"
)

// A model of figures and captions names combinations by texts; texts that it cannot read, and runs without texts, are errors that say what to do.
func TestZeroShotNamesWhatTextsSay(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.pair]
extends = "clip-swimmer"
dataset = { name = "captions", count = 600, tests = 60 }
encoder = [{ kind = "flatten" }, { kind = "dense", units = 8 }]
head.text = { from = "caption", layers = [{ kind = "embedding", vocabulary = 9, units = 8 }, { kind = "take_token", mean = true }, { kind = "dense", units = 8 }] }
train = { epochs = 1, batch = 100 }
`)
	b.must(0, "train", "pair")
	b.contains("measured", b.must(0, "zero-shot", "runs/pair").stdout, "classes        256", "samples        60", "accuracy", "by chance      0.003906")
	b.contains("JSON", b.must(0, "zero-shot", "runs/pair", "--split", "train", "--json").stdout, `"classes": 256`, `"samples": 600`, `"interval"`)
	b.contains("retrieval", b.must(0, "eval", "runs/pair").stdout, "retrieval_first", "retrieval_back_recall")

	b.write("prompts.csv", "class,prompt\nup,left arm straight right arm straight\nup,right arm straight\ndown,left leg straight\n")
	b.write("lines.txt", "left arm straight\n\nRight Arm back\n")
	b.write("new.csv", strings.Repeat("p,", 1023)+"p\n"+strings.Repeat(strings.Repeat("0,1,", 511)+"0,1\n", 2)) // 32 x 32 values
	b.must(0, "zero-shot", "runs/pair", "--prompts", "prompts.csv", "--in", "new.csv", "-o", "classes.csv")
	b.contains("written", b.read("classes.csv"), "name,class,similarity", "0,", "1,")
	b.contains("lines", b.must(0, "zero-shot", "runs/pair", "--prompts", "lines.txt", "--in", "new.csv").stdout, "name,class,similarity", "0,", "1,")

	for name, c := range map[string]struct {
		text string
		exit int
		want []string
	}{
		"wrong.txt": {"left arm strait\n", exitData, []string{"wrong.txt", `the word "strait"`, `did you mean "straight"?`}},
		"long.txt":  {"left left left left left left left left left left left left left\n", exitData, []string{"long.txt", "13 words, want 12"}},
		"empty.txt": {"\n", exitData, []string{"empty.txt", "has no texts"}},
		"names.csv": {"a,b\nc,d\n", exitData, []string{"names.csv", "columns class and prompt"}},
		"other.txt": {"left arm back\n", exitUsage, []string{"no sample has one of the classes of the texts"}},
	} {
		b.write(name, c.text)
		b.contains(name, b.must(c.exit, "zero-shot", "runs/pair", "--prompts", name).stderr, c.want...)
	}
	b.trained("runs/small", 1)
	b.contains("no texts", b.must(exitUsage, "zero-shot", "runs/small").stderr, "compares its samples with no texts")
	b.contains("no file", b.must(exitUsage, "zero-shot", "runs/pair", "-o", "x.csv").stderr, "--in")
}
