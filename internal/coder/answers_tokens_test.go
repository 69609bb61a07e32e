package coder_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/metrics"
)

// languageText declares a small model of language: the first block is the value that other models read, and later tokens read earlier ones
// behind it too.
const languageText = `dataset = { grammar = 60, length = 24, tokens = "words", validation = 0 }
encoder = [{ kind = "embedding", vocabulary = 147, units = 6 }, { kind = "transformer", causal = true, heads = 2 }, { kind = "transformer", causal = true, heads = 2 }]
decoder = []
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 147 }] }
loss = [{ kind = "next_token", length = "length" }]
train = { epochs = 2, batch = 16 }`

// The samples are the values at the tokens that are no padding and no <end>, in the order of the texts, each with the token that follows.
func TestTokensOfTextsAreSamples(t *testing.T) {
	t.Chdir(t.TempDir())
	language := declared(t, languageText, "language")
	texts, err := data.Load(t.Context(), language.Model.Dataset.Source, nil, data.Both)
	fatal.If(t, err)
	set, err := data.Load(t.Context(), sourceOf(t, `{ run = "language", value = "encoder.1", columns = { later = "encoder.2" }, tokens = true }`), nil, data.Both.WithColumns([]string{"later"}))
	fatal.If(t, err)
	tokens := language.Tokens()
	expect.Equal(t, len(set.Classes), tokens.Size(), "classes")
	for images, of := range map[*data.Images]*data.Images{set.Train: texts.Train, set.Test: texts.Test} {
		rows, n := of.Float32(), of.Pixels()
		blocks, err := language.Value("encoder.1", rows)
		fatal.If(t, err)
		later, err := language.Value("encoder.2", rows)
		fatal.If(t, err)
		var values, further []float32
		var labels []int
		for i, token := range rows {
			if int32(token) == tokens.Pad() || int32(token) == tokens.End() {
				continue
			}
			values, further = append(values, blocks[i*6:(i+1)*6]...), append(further, later[i*6:(i+1)*6]...)
			label := -1
			if i%n < n-1 && int32(rows[i+1]) != tokens.Pad() {
				label = int(rows[i+1])
			}
			labels = append(labels, label)
			name := images.SampleNames()[len(labels)-1]
			expect.Equal(t, strings.Count(name, "["+tokens.Name(int32(token))+"]"), 1, name)
		}
		expect.Slice(t, images.Shape, []int{6}, "shape")
		expect.Slice(t, images.Float32(), values, "values")
		expect.Slice(t, images.Labels(), labels, "labels")
		expect.Slice(t, images.All()["later"], further, "a column")
	}
}

// With the values themselves in place, exp of the mean loss is the perplexity of the texts, also if only some of the samples are given, in any order; and
// a sample changes what follows it, not what precedes it.
func TestWhatFollowsFromTheTokensOfATextIsTheModelOfLanguage(t *testing.T) {
	t.Chdir(t.TempDir())
	language := declared(t, languageText, "language")
	chosen, err := metrics.Select("perplexity")
	fatal.If(t, err)
	result, err := language.EvaluateOn(t.Context(), data.TestSplit, chosen)
	fatal.If(t, err)
	set, err := data.Load(t.Context(), sourceOf(t, `{ run = "language", value = "encoder.0", tokens = true }`), nil, data.Both)
	fatal.If(t, err)
	logitsOf := func(images *data.Images, values []float32) [][]float32 {
		all := make([][]float32, images.Len())
		fatal.If(t, images.Following()(values, func(i int, logits []float32) error {
			all[i] = slices.Clone(logits)
			return nil
		}))
		return all
	}
	values := set.Test.Float32()
	all, nll, n := logitsOf(set.Test, values), 0.0, 0.0
	for i, label := range set.Test.Labels() {
		if label >= 0 {
			sum := 0.0
			for _, v := range all[i] {
				sum += math.Exp(float64(v))
			}
			nll, n = nll+math.Log(sum)-float64(all[i][label]), n+1
		}
	}
	expect.Near(t, math.Exp(nll/n), result.Values[0].Number, 1e-3, "perplexity")

	some := []int{7, 2, 40, 3, 41}
	for at, logits := range logitsOf(set.Test.Subset(some), set.Test.Subset(some).Float32()) {
		expect.Slice(t, logits, all[some[at]], "sample", some[at], "alone")
	}
	ends := func(i int) bool {
		return set.Test.Labels()[i] < 0 || set.Test.Labels()[i] == int(language.Tokens().End())
	}
	changed := slices.Clone(values)
	for i := range 6 {
		changed[4*6+i] += 1
	}
	last := 4
	for !ends(last) {
		last++
	}
	for i, logits := range logitsOf(set.Test, changed) {
		expect.Equal(t, !slices.Equal(logits, all[i]), i >= 4 && i <= last, "sample", i, "of a text that ends at", last)
	}
}

// recovered_loss of a dictionary of tokens is that of plain loops over the head, where nothing lies between the value and the head.
func TestADictionaryOfTokensRecoversTheLossOfAModelOfLanguage(t *testing.T) {
	t.Chdir(t.TempDir())
	declared(t, languageText, "language")
	run := declared(t, `dataset = { run = "language", value = "encoder.2", tokens = true }
encoder = [{ kind = "dense", units = 3 }]
decoder = [{ kind = "dense" }]
loss = [{ kind = "mse" }]
train.epochs = 2`, "dictionary")
	expect.Equal(t, run.Tokens() == nil, true, "a dictionary of values reads no texts")
	chosen, err := metrics.Select("recovered_loss")
	fatal.If(t, err)
	result, err := run.EvaluateOn(t.Context(), data.TestSplit, chosen)
	fatal.If(t, err)
	set, err := data.Load(t.Context(), run.Model.Dataset.Source, nil, data.Both)
	fatal.If(t, err)
	trained, err := train.Open("language")
	fatal.If(t, err)
	weight, bias := parameter(t, trained, "head.next.0.weight"), parameter(t, trained, "head.next.0.bias")
	classes := len(bias)
	nll := func(values []float32) (mean float64) {
		n := 0.0
		for i, label := range set.Test.Labels() {
			if label < 0 {
				continue
			}
			sum, right := 0.0, 0.0
			for c := range classes {
				z := float64(bias[c])
				for j, v := range values[i*6 : (i+1)*6] {
					z += float64(v) * float64(weight[j*classes+c])
				}
				if sum += math.Exp(z); c == label {
					right = z
				}
			}
			mean, n = mean+math.Log(sum)-right, n+1
		}
		return mean / n
	}
	values := set.Test.Float32()
	outputs, err := run.Value("output", values)
	fatal.If(t, err)
	zeros := nll(make([]float32, len(values)))
	expect.Near(t, result.Values[0].Number, (zeros-nll(outputs))/(zeros-nll(values)), 1e-4, "recovered loss")
}

// N-grams behind the tokens of a text are no samples, and no class follows the last token.
func TestNGramsAreNoTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	run := declared(t, `dataset = { grammar = 60, length = 24, tokens = "words", ngrams = 2, buckets = 50, validation = 0 }
encoder = [{ kind = "embedding", vocabulary = 200, units = 4 }, { kind = "flatten" }]
decoder = []
head.class = { layers = [{ kind = "dense" }] }
loss = [{ kind = "cross_entropy" }]
train.epochs = 1`, "grams")
	set, err := data.Load(t.Context(), sourceOf(t, `{ run = "grams", value = "encoder.0", tokens = true }`), nil, data.Both)
	fatal.If(t, err)
	texts, err := data.Load(t.Context(), run.Model.Dataset.Source, nil, data.Both)
	fatal.If(t, err)
	n, size := 0, run.Tokens().Size()
	for _, token := range texts.Test.Float32() {
		if int(token) < size && int32(token) != run.Tokens().Pad() && int32(token) != run.Tokens().End() {
			n++
		}
	}
	expect.Equal(t, set.Test.Len(), n, "tokens")
	expect.Equal(t, slices.Max(set.Test.Labels()) < size, true, "classes")
}

func TestTokensOfOtherValuesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	declared(t, languageText, "language")
	declared(t, teacherText, "teacher")
	declared(t, "kind = \"nmf\"\ncomponents = 2\niterations = 2\ndataset = { grammar = 60, window = 2, scale = \"ppmi\" }", "counts")
	for dataset, want := range map[string]string{
		`{ run = "teacher", value = "code", tokens = true }`:                                        "tokens: the run reads no texts",
		`{ run = "counts", value = "code", tokens = true }`:                                         "which no value of the run has",
		`{ run = "language", value = "code", tokens = true }`:                                       `code has the shape [144], want (24 tokens, features), as "encoder.0", "encoder.1", "encoder.2", "head.next.0"`,
		`{ run = "language", value = "encoder.1", columns = { all = "encoder.1" }, tokens = true }`: "",
	} {
		_, err := data.Load(t.Context(), sourceOf(t, dataset), nil, data.Both)
		if want == "" {
			fatal.If(t, err)
		} else {
			expect.Error(t, err, want)
		}
	}
	_, err := trainedIn(t, "dataset = { run = \"language\", columns = { all = \"encoder.1\" }, tokens = true }\nencoder = [{ kind = \"dense\", units = 3 }]", "wrong")
	expect.Error(t, err, "tokens have values only: give value = NAME")
}
