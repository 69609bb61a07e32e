package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

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
// With maxn > 0 a word has two more columns, of 1 + `pieces` values, for `embedding` with mask = "there":
//
//	pieces   its number, and those of its n-grams of characters
//	there    1 for these, 0 for the places behind them
//
// The n-grams of `her` with minn = 3 and maxn = 4 are <he, <her, her, her> and er>, where < and > are its ends. An n-gram has the number V + 3 + h mod
// `buckets`, for V words, with the hash h of fastText: FNV-1a of 32 bits, of which bytes are signed numbers. Words of further texts that are not in the
// vocabulary are samples too then, with their n-grams alone, and no context of others.
//
// The column noise is a table, in random order, in which the number of places of a word with n occurrences is in proportion to n^power: words of
// other samples, { kind = "other", of = "noise" }, are drawn by these frequencies.
//
// Sources: T. Mikolov et al., Distributed representations of words and phrases and their compositionality, NIPS 2013; P. Bojanowski et al., Enriching word
// vectors with subword information, TACL 2017.
type Contexts struct {
	Texts
	Context    int     `toml:"context" want:"in [1,1000]" doc:"largest distance of a word of the context, in words"`
	Subsample  float64 `toml:"subsample" want:">= 0" doc:"share of all words above which occurrences of a word are left out; 0 for none"`
	Power      float64 `toml:"power" want:"in [0,1]" doc:"power of the number of occurrences to which the column noise is in proportion"`
	Least      int     `toml:"least" want:"> 0" doc:"smallest number of occurrences of a word"`
	Vocabulary int     `toml:"vocabulary" want:"in [1,1000000]" doc:"largest number of words, the most frequent ones"`
	Subwords
}

func init() {
	data.Registry.Register(contextsName, "your own texts as words with the words around them: for vectors of words",
		func() data.Source {
			return &Contexts{Texts: Texts{Lower: true}, Context: 5, Subsample: 1e-3, Power: 0.75, Least: 5, Vocabulary: 10000,
				Subwords: Subwords{Minn: 3, Pieces: 32, Buckets: 100000}}
		})
}

func (c *Contexts) Check() error { return errors.Join(c.Texts.Check(), c.Subwords.check()) }

func (*Contexts) Unlabelled() bool { return true }

func (*Contexts) Unvalidated() bool { return true }

// Shape implements [data.Source].
func (c *Contexts) Shape(data.Dirs) ([]int, bool) { return []int{1}, true }

func (c *Contexts) DescribeColumns(data.Dirs) []data.Column {
	around := []int{2 * c.Context}
	list := []data.Column{{Name: "context", Shape: around, Type: data.Whole}, {Name: "near", Shape: around, Type: data.Float32}, {Name: "noise", Type: data.Whole}}
	if c.Maxn > 0 {
		list = append(list, data.Column{Name: "pieces", Shape: []int{1 + c.Pieces}, Type: data.Whole}, data.Column{Name: "there", Shape: []int{1 + c.Pieces}, Type: data.Float32})
	}
	return list
}

func (c *Contexts) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return c.load(ctx, contextsName, c, nil)
}

// ReadFile implements [data.FileReader]. A sample has the name of its word.
func (c *Contexts) ReadFile(ctx context.Context, path string, classes []string) (*data.Rows, error) {
	return c.rows(ctx, c, path, classes)
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

// samples records the words of all texts, and then those that are kept. Beside a word is the number of texts that begin with it: more than one if those before
// it have no word. The columns follow from the words around it.
func (c *Contexts) samples(ctx context.Context, of *content, t *tokens.Tokenizer) (*data.Images, error) {
	counts := make([]float64, t.Texts())
	all := c.record(of.path, 2)
	var wrong error
	begins := float32(1)
	spelled, encode := c.spell(t), t.Encode
	if c.fitted != nil && c.Maxn > 0 {
		encode = spelled.encode
	}
	err := of.each(ctx)(func(piece string, last bool) {
		for _, word := range encode(piece) {
			if int(word) < t.Texts() {
				counts[word]++
			} else if int(word) < t.Size() {
				continue
			}
			wrong = cmp.Or(wrong, all.Add(float32(word), begins))
			begins = 0
		}
		if last {
			begins++
		}
	})
	if err = cmp.Or(err, wrong); err == nil {
		err = all.Finish()
	}
	if err != nil {
		return nil, err
	}
	kept := all
	if c.fitted == nil {
		kept, err = c.subsampled(ctx, of.path, all, counts)
	}
	switch n := kept.Len(); {
	case err != nil:
		return nil, err
	case n == 0 && c.fitted != nil:
		return nil, &data.Error{Path: of.path, Problem: fmt.Sprintf("has no word of the vocabulary (%d)", t.Texts())}
	case n == 0:
		return nil, &data.Error{Path: of.path, Problem: fmt.Sprintf("no text has two words of the vocabulary (%d)", t.Texts()), Hint: "lower the key least, or raise subsample"}
	}
	images, err := kept.Images([]int{1}, nil)
	if err != nil {
		return nil, err
	}
	if c.fitted != nil {
		of.names, of.parts = nil, nil
		err = kept.Each(ctx, func(row []float32) error {
			of.names = append(of.names, spelled.name(int32(row[0])))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	columns, n := c.DescribeColumns(nil), kept.Len()
	pairs := func(weight func(d int, other float32) float32) func(dst []float32, row int) {
		return func(dst []float32, row int) {
			c.around(kept, row, func(i, d int, other float32) {
				if int(other) < t.Texts() {
					dst[i] = weight(d, other)
				}
			}, dst)
		}
	}
	table := noise(counts, c.Power, min(n, mostNoise))
	values := []*data.Values{
		data.ReadColumn(columns[0], n, pairs(func(_ int, other float32) float32 { return other })).Within(t.Texts() - 1),
		data.ReadColumn(columns[1], n, pairs(func(d int, _ float32) float32 { return 1 - float32(d-1)/float32(c.Context) })),
		data.ReadColumn(columns[2], n, func(dst []float32, row int) { dst[0] = float32(table[row%len(table)]) }).Within(t.Texts() - 1),
	}
	if c.Maxn > 0 {
		pieces := func(one func(piece int32) float32) func(dst []float32, row int) {
			return func(dst []float32, row int) {
				var word [2]float32
				kept.Read(word[:], row)
				clear(dst)
				for i, piece := range spelled.rows(int32(word[0])) {
					dst[i] = one(piece)
				}
			}
		}
		values = append(values, data.ReadColumn(columns[3], n, pieces(func(piece int32) float32 { return float32(piece) })).Within(t.Size()+c.Buckets-1),
			data.ReadColumn(columns[4], n, pieces(func(int32) float32 { return 1 })))
	}
	return images.WithColumns(values...)
}

// subsampled returns the words that are kept, of texts that have two of them.
func (c *Contexts) subsampled(ctx context.Context, path string, all *data.Recording, counts []float64) (*data.Recording, error) {
	kept := c.record(path, 2)
	number, r := -1, (*rand.Rand)(nil)
	first, several := float32(-1), false // the first word of a text, which is kept if there is a second one
	err := all.Each(ctx, func(row []float32) (err error) {
		if row[1] > 0 {
			number += int(row[1])
			r, first, several = random.Stream(1, "subsample", uint64(number)), -1, false
		}
		share := counts[int(row[0])] / float64(all.Len()) / c.Subsample
		switch keep := c.Subsample == 0 || r.Float64() < math.Sqrt(1/share)+1/share; {
		case !keep:
			return nil
		case first < 0:
			first = row[0]
			return nil
		case !several:
			several, err = true, kept.Add(first, 1)
		}
		return cmp.Or(err, kept.Add(row[0], 0))
	})
	return kept, cmp.Or(err, kept.Finish())
}

// mostNoise is the largest number of places of the column noise, which are repeated if there are more words.
const mostNoise = 1 << 24

// spare has buffers for words around a word.
var spare = sync.Pool{New: func() any { return new([]float32) }}

// around clears dst, and calls do for the words at the distances 1, -1, 2, -2, ... of a word in the same text.
func (c *Contexts) around(words *data.Recording, row int, do func(i, distance int, other float32), dst []float32) {
	clear(dst)
	low, high := max(0, row-c.Context), min(words.Len(), row+c.Context+1)
	near := spare.Get().(*[]float32)
	defer spare.Put(near)
	*near = slices.Grow(*near, 2*(high-low))
	around := (*near)[:2*(high-low)]
	words.Read(around, low)
	for d := 1; row+d < high && around[2*(row+d-low)+1] == 0; d++ {
		do(2*d-2, d, around[2*(row+d-low)])
	}
	for d := 1; row-d >= low && around[2*(row-d+1-low)+1] == 0; d++ {
		do(2*d-1, d, around[2*(row-d-low)])
	}
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
