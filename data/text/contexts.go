package text

import (
	"context"
	"fmt"
	"math"

	"tessera/data"
	"tessera/internal/random"
	"tessera/internal/tokens"
)

const contextsName = "contexts"

// Contexts is a data set of the words of texts in their places, for vectors of words: a sample is the number of a word, of shape (1), with the columns
//
//	context   the numbers of the words at the distances 1, -1, 2, -2, ..., `context`, -`context` in the same text; 0 outside of it
//	near      the weights of these pairs, 1 - (d - 1)/context at the distance d, 0 outside of the text
//	noise     a word for negatives, see below
//
// The weights are the probabilities with which word2vec, which draws the size of each window, has a pair. Words are those of the data set text;
// the vocabulary has those of at least `least` occurrences, and of these the `vocabulary` most frequent. Other words are left out before distances are
// counted, and so are occurrences of frequent words: one of a word with the share f of all is kept with the probability min(1, sqrt(t/f) + t/f),
// with t = `subsample`. The choice depends on the texts alone. Of further texts, which a trained model reads, every word of the vocabulary is a sample.
//
// The column noise is a table, in random order, in which the number of places of a word with n occurrences is in proportion to n^power: words of
// other samples, { kind = "other", of = "noise" }, are drawn by these frequencies.
//
// Source: T. Mikolov et al., Distributed representations of words and phrases and their compositionality, NIPS 2013.
type Contexts struct {
	Texts
	Context    int     `toml:"context" want:"in [1,1000]" doc:"largest distance of a word of the context, in words"`
	Subsample  float64 `toml:"subsample" want:">= 0" doc:"share of all words above which occurrences of a word are left out; 0 for none"`
	Power      float64 `toml:"power" want:"in [0,1]" doc:"power of the number of occurrences to which the column noise is in proportion"`
	Least      int     `toml:"least" want:"> 0" doc:"smallest number of occurrences of a word"`
	Vocabulary int     `toml:"vocabulary" want:"in [1,1000000]" doc:"largest number of words, the most frequent ones"`
}

func init() {
	data.Registry.Register(contextsName, "your own texts as words with the words around them: for vectors of words",
		func() data.Source {
			return &Contexts{Texts: Texts{Lower: true}, Context: 5, Subsample: 1e-3, Power: 0.75, Least: 5, Vocabulary: 10000}
		})
}

func (*Contexts) Unlabelled() bool { return true }

func (*Contexts) Unvalidated() bool { return true }

// Shape implements [data.Source].
func (c *Contexts) Shape(data.Dirs) ([]int, bool) { return []int{1}, true }

func (c *Contexts) DescribeColumns(data.Dirs) []data.Column {
	around := []int{2 * c.Context}
	return []data.Column{{Name: "context", Shape: around, Type: data.Whole}, {Name: "near", Shape: around, Type: data.Float32}, {Name: "noise", Type: data.Whole}}
}

func (c *Contexts) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return c.load(ctx, contextsName, c, nil)
}

// ReadFile implements [data.FileReader]. A sample has the name of its word.
func (c *Contexts) ReadFile(ctx context.Context, path string) (*data.Rows, error) {
	rows, err := c.rows(ctx, c, path)
	if err != nil {
		return nil, err
	}
	rows.Names = nil
	for _, word := range rows.Float32() {
		rows.Names = append(rows.Names, c.fitted.Name(int32(word)))
	}
	return rows, nil
}

func (c *Contexts) Fitted(t *tokens.Tokenizer) data.Source {
	other := *c
	other.fitted = t
	return &other
}

func (c *Contexts) Describe(ctx context.Context) (string, error) { return describe(ctx, c, "word") }

func (c *Contexts) vocabulary(ctx context.Context, of *content) (*tokens.Tokenizer, error) {
	t := &tokens.Tokenizer{Kind: tokens.Words, Lower: c.Lower, Plain: true}
	return t.Fit(tokens.Limits{Size: c.Vocabulary + 3, Least: c.Least}, of.each(ctx))
}

func (c *Contexts) samples(ctx context.Context, of *content, t *tokens.Tokenizer, _ []int) (*data.Images, error) {
	counts := make([]float64, t.Texts())
	var all []int32 // words of all texts
	ends := []int{0}
	err := of.each(ctx)(func(text string) {
		t.Known(text, func(token int32) {
			counts[token]++
			all = append(all, token)
		})
		ends = append(ends, len(all))
	})
	if err != nil {
		return nil, err
	}
	var words []float32
	var around []int32
	var near []float32
	for i := range ends[1:] {
		r := random.Stream(1, "subsample", uint64(i))
		var list []int32
		for _, token := range all[ends[i]:ends[i+1]] {
			share := counts[token] / float64(len(all)) / c.Subsample
			if c.fitted != nil || c.Subsample == 0 || r.Float64() < math.Sqrt(1/share)+1/share {
				list = append(list, token)
			}
		}
		if len(list) < 2 && c.fitted == nil {
			continue // no pair
		}
		for k, token := range list {
			words = append(words, float32(token))
			for d := 1; d <= c.Context; d++ {
				for _, at := range []int{k + d, k - d} {
					other, weight := int32(0), float32(0)
					if at >= 0 && at < len(list) {
						other, weight = list[at], 1-float32(d-1)/float32(c.Context)
					}
					around, near = append(around, other), append(near, weight)
				}
			}
		}
	}
	switch {
	case len(words) == 0 && c.fitted != nil:
		return nil, &data.Error{Path: of.file.Path, Problem: fmt.Sprintf("has no word of the vocabulary (%d)", t.Texts())}
	case len(words) == 0:
		return nil, &data.Error{Path: of.file.Path, Problem: fmt.Sprintf("no text has two words of the vocabulary (%d)", t.Texts()), Hint: "lower the key least, or raise subsample"}
	}
	images, err := data.NewFloats([]int{1}, words, nil)
	if err != nil {
		return nil, err
	}
	shape := []int{2 * c.Context}
	return images.WithColumns(data.WholeColumn("context", shape, around), data.FloatColumn("near", shape, near), data.WholeColumn("noise", nil, noise(counts, c.Power, len(words))))
}

// noise returns n words in random order, each with a number of places in proportion to a power of its count.
func noise(counts []float64, power float64, n int) []int32 {
	sum := 0.0
	for _, count := range counts {
		sum += math.Pow(count, power)
	}
	list, word, below := make([]int32, n), 0, math.Pow(counts[0], power)
	for i := range list {
		for float64(i)+0.5 > below/sum*float64(n) && word+1 < len(counts) {
			word++
			below += math.Pow(counts[word], power)
		}
		list[i] = int32(word)
	}
	random.Stream(1, "noise", 0).Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
