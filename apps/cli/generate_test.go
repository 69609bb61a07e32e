package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// A model of language is trained on a text, continues a prompt with what it has learned, and says what it cannot do.
func TestATextIsContinued(t *testing.T) {
	b := newBench(t)
	b.write("abc.txt", strings.Repeat("abcabcabc", 200))
	b.write("models.toml", `[model.abc]
dataset   = { file = "abc.txt", length = 13, step = 5, tokens = "characters" }
encoder   = [{ kind = "embedding", vocabulary = 6, units = 16 }, { kind = "position" }, { kind = "transformer", heads = 2, causal = true }]
decoder   = []
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 6 }] }
loss      = [{ kind = "next_token", length = "length" }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train     = { epochs = 15, batch = 16 }

[model.flat]
extends   = "abc"
head.next = { layers = [{ kind = "dense", units = 26 }] }

[model.blanks]
extends       = "abc"
encoder       = [{ kind = "replace", mask = "hidden", by = 6 }, { kind = "embedding", vocabulary = 7, units = 16 }, { kind = "position" }, { kind = "transformer", heads = 2 }]
column.hidden = { kind = "bernoulli", like = "images", probability = 0.2 }
head.next     = false
head.token    = { from = "encoder.3", layers = [{ kind = "token_dense", units = 6 }] }
loss          = [{ kind = "masked_token", hidden = "hidden", length = "length" }]
train.epochs  = 40

[model.counts]
kind       = "nmf"
components = 1
dataset    = { file = "abc.txt", unit = "line", least = 1, most = 1.0, validation = 0 }
`)
	b.contains("a head that reads the code", b.must(exitData, "train", "flat").stderr, "next_token", "2 logits for each of 13 tokens", `from = "encoder.N"`)
	b.must(0, "train", "abc", "--quiet")
	b.contains("what is measured", b.must(0, "eval", "runs/abc").stdout, "perplexity    1")
	b.must(0, "train", "abc", "--quiet", "--set", "dataset.tokens=bytes", "--set", "encoder.0.vocabulary=258", "--set", "head.next.layers.0.units=258", "--out", "runs/bytes")
	if got := b.must(0, "eval", "runs/bytes", "--metrics", "language").stdout; !strings.Contains(got, "bits_per_byte") || strings.Contains(got, "bits_per_byte  -") {
		t.Errorf("bits per byte of bytes: got %s", got)
	}
	for _, how := range [][]string{{"--temperature", "0"}, {"--temperature", "0.2", "--top-k", "1"}, {"--top-p", "0.05"}} {
		got := b.must(0, append([]string{"generate", "runs/abc", "--prompt", "bcab", "-n", "20"}, how...)...).stdout // longer than a sample
		expect.Equal(t, got, "bcabcabcabcabcabcabcabca\n", how)
	}
	one := b.must(0, "generate", "runs/abc", "--prompt", "a", "--temperature", "5", "--seed", "3").stdout
	expect.Equal(t, b.must(0, "generate", "runs/abc", "--prompt", "a", "--temperature", "5", "--seed", "3").stdout, one, "the same seed gives")
	for stop, want := range map[string]string{"bc": "bca\n", "ca": "bcab\n", "cab": "bcabca\n"} { // which the prompt does not begin
		expect.Equal(t, b.must(0, "generate", "runs/abc", "--prompt", "bca", "-n", "3", "--temperature", "0", "--stop", stop, "--stop", "y").stdout, want, "stop", stop)
	}
	b.contains("no stop text", b.must(exitUsage, "generate", "runs/abc", "--prompt", "a", "--stop", "").stderr, "--stop")
	b.contains("JSON", b.must(0, "generate", "runs/abc", "--prompt", "ab", "-n", "2", "--temperature", "0", "--json").stdout, `"text": "abca"`)
	b.contains("nearest token", b.must(0, "neighbours", "runs/abc", "a").stdout, "b", "c")
	b.must(0, "export", "runs/abc", "--to", "vec", "--out", "abc.vec")
	ofFile := b.must(0, "neighbours", "abc.vec", "a", "b", "--minus", "c", "-n", "4").stdout
	expect.Equal(t, ofFile, b.must(0, "neighbours", "runs/abc", "a", "b", "--minus", "c", "-n", "4").stdout)
	b.write("pairs.tsv", "Word 1\tWord 2\tHuman (mean)\na\tb\t7.5\n# of letters\nb\tc\t2\na\tc\t1\na\tzebra\t3\n")
	ofPairs := b.must(0, "neighbours", "runs/abc", "--pairs", "pairs.tsv")
	b.contains("pairs", ofPairs.stdout+ofPairs.stderr, "Spearman's correlation", "pairs ", "1 of 4 pairs are left out, whose words have no vector: \"zebra\"")
	b.write("pairs.csv", "a,b,7.5\na,c\n")
	b.contains("a line without a number", b.must(exitUsage, "neighbours", "abc.vec", "--pairs", "pairs.csv").stderr, "pairs.csv:2: got", "want two words and a number")
	b.contains("words and pairs", b.must(exitUsage, "neighbours", "abc.vec", "a", "--pairs", "pairs.csv").stderr, "give words, or --pairs alone")
	b.startsFromVectors(b.read("abc.vec"))
	b.contains("an unknown word of a file", b.must(exitUsage, "neighbours", "abc.vec", "zz").stderr, "is no token of the vocabulary")
	for _, wrong := range []string{"ab", "x"} {
		b.contains("no single token", b.must(exitUsage, "neighbours", "runs/abc", wrong).stderr, "is no token of the vocabulary")
	}
	b.contains("an unknown token", b.must(0, "generate", "runs/abc", "--prompt", "ax", "-n", "1").stderr, "1 of 2 tokens of the prompt")
	b.contains("no prompt", b.must(exitUsage, "generate", "runs/abc", "--prompt", "").stderr, "the prompt is empty")
	b.must(0, "train", "blanks", "--quiet")
	b.contains("what is measured of hidden tokens", b.must(0, "eval", "runs/blanks").stdout, "perplexity    1")
	b.write("one.txt", "abc<mask>bc<mask>bc")
	filled := b.must(0, "predict", "runs/blanks", "--in", "one.txt").stdout
	b.contains("blanks", filled, "name,place,word,probability,next words\none,4,a,0.", "\none,7,a,0.")
	b.contains("all tokens", b.must(0, "predict", "runs/blanks", "--in", "one.txt", "--probabilities").stdout, "next words,a,b,c,<pad>,<end>,<unknown>\n")
	b.write("none.txt", "abc")
	b.contains("no blank", b.must(exitData, "predict", "runs/blanks", "--in", "none.txt").stderr, "no text has a <mask>")
	b.contains("it continues nothing", b.must(exitUsage, "generate", "runs/blanks", "--prompt", "a").stderr, "it continues no texts")
	b.must(0, "train", "counts", "--quiet")
	other := b.must(exitUsage, "generate", "runs/counts", "--prompt", "a")
	b.contains("another model", other.stderr, "it continues no texts")
	expect.Equal(t, other.stdout, "", "a model of no language prints")
}

// startsFromVectors begins models with the vectors of a file without the word b: its row is drawn as without the file, and counted.
func (b *bench) startsFromVectors(text string) {
	b.Helper()
	begun := func(sets ...string) map[string]string {
		args := []string{"train", "abc", "--epochs", "0", "--seed", "9", "-o", "runs/begun", "--force"}
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		printed := b.must(0, args...).stderr
		if len(sets) > 0 {
			b.contains("words without a vector", printed, "of the", "words of the vocabulary; others begin with drawn values: \"b\"")
		}
		b.must(0, "export", "runs/begun", "--to", "vec", "--out", "begun.vec")
		return vectorsOf(b.read("begun.vec"))
	}
	lines := strings.Split(text, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "b ") })
	_, width, _ := strings.Cut(lines[0], " ")
	lines[0] = fmt.Sprint(len(lines)-2, " ", width)
	b.write("some.vec", strings.Join(lines, "\n"))
	b.write("glove.txt", strings.Join(lines[1:], "\n"))
	of, drawn := vectorsOf(text), begun()
	for _, start := range []string{`start="some.vec"`, `start={file="glove.txt"}`} {
		got := begun(start)
		for _, word := range []string{"a", "c"} {
			if got[word] != of[word] || got[word] == drawn[word] {
				b.Errorf("%s: the vector of %s is %s, want %s", start, word, got[word], of[word])
			}
		}
		if got["b"] != drawn["b"] || got["b"] == "" {
			b.Errorf("%s: the vector of b is %s, without a file %s", start, got["b"], drawn["b"])
		}
	}
	b.write("other.vec", "1 2\nzebra 1 2\n")
	b.write("narrow.vec", "1 2\na 1 2\n")
	for file, want := range map[string]string{"other.vec": "16 values, the units of encoder.0.weight", "narrow.vec": "got 1 rows of 2 values"} {
		b.contains(file, b.must(exitConfig, "train", "abc", "-o", "runs/wrong", "--set", `start="`+file+`"`).stderr, want)
	}
	b.contains("a model without words", b.must(exitConfig, "train", "swimmer-parts", "-o", "runs/wrong", "--set", `start="some.vec"`).stderr, "data sets contexts or tokens")
}

// vectorsOf returns the vectors of a .vec file as text, by word.
func vectorsOf(text string) map[string]string {
	of := map[string]string{}
	for _, line := range strings.Split(text, "\n")[1:] {
		word, vector, _ := strings.Cut(line, " ")
		of[word] = vector
	}
	return of
}
