package text

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/tokens"
)

const bagName = "text"

// Bag is a data set of texts as counts of words: a sample is a sparse vector with the number of occurrences of every word of the vocabulary.
//
//	dataset = "corpus/"                                     a folder of .txt files; its folders are classes
//	dataset = { file = "reviews.csv", text = "review", labels = "stars", scale = "tfidf" }
//	dataset = { file = "book.txt", unit = "paragraph", most = 0.2 }
//
// Words are those of Unicode Standard Annex 29 that have a letter or a digit, composed (NFC). The vocabulary is that of the training texts,
// held-out ones included: words of at least `least` texts and of at most a share `most` of them, and of these the `vocabulary` most frequent. It is
// kept in the run, with which further texts are counted; other words do not count.
//
// `grammar` generates texts in the place of files: sentences about one of four meanings, their classes, such as "the famous sailors who know a cook
// steer the old raft near this pier". A determiner agrees with its noun in number, and so does the verb, which other words, nouns of the other number
// among them, separate from its subject; agents, verbs, objects and places are those of the meaning. Texts are independent of the run's seed, and a
// larger set begins with the texts of a smaller one. A quarter as many test texts are drawn by themselves.
type Bag struct {
	Texts
	Least      int        `toml:"least" want:"> 0" doc:"smallest number of texts that a word is in"`
	Most       float64    `toml:"most" want:"in (0,1]" doc:"largest share of the texts that a word is in: smaller ones leave out words such as the"`
	Vocabulary int        `toml:"vocabulary" want:">= 0" doc:"largest number of words, the most frequent ones; 0 for all"`
	Scale      data.Scale `toml:"scale" single:"true" bare:"factor.by" optional:"true" doc:"how the counts are scaled, such as \"tfidf\": a scaling (tessera list scalings), a number as factor, or several scalings in order; by default they are not scaled"`
}

func init() {
	data.Registry.Register(bagName, "your own texts as counts of words: folders of .txt files, text files, a column of a table",
		func() data.Source { return &Bag{Texts: Texts{Lower: true}, Least: 2, Most: 0.5} })
}

func (b *Bag) Check() error {
	if b.Most <= 0 || b.Most > 1 {
		return part.KeyErrorf("most", "got %v, want in (0,1]", b.Most)
	}
	return errors.Join(b.Texts.Check(), b.Scale.OfValues())
}

func (b *Bag) FitsScale() bool { return b.Scale.Fitted() }

// Shape implements [data.Source]: the number of words is known after the texts are read.
func (b *Bag) Shape(data.Dirs) ([]int, bool) { return b.shape(bagName, b) }

func classesOf(s data.Source) (int, bool) {
	set, err := s.Load(context.Background(), nil, data.Need{Train: true})
	if err != nil {
		return 0, false
	}
	return len(set.Classes), len(set.Classes) > 0
}

func (b *Bag) Classes(data.Dirs) (int, bool) { return classesOf(b) }

func (b *Bag) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return b.load(ctx, bagName, b, b.Scale)
}

func (b *Bag) ReadFile(ctx context.Context, path string, classes []string) (*data.Rows, error) {
	return b.rows(ctx, b, path, classes)
}

func (b *Bag) ReadTexts(ctx context.Context, texts []string) (*data.Images, error) {
	return b.memory(ctx, b, texts)
}

func (b *Bag) Fitted(t *tokens.Tokenizer) data.Source {
	other := *b
	other.fitted = t
	return &other
}

func (b *Bag) Describe(ctx context.Context) (string, error) { return describe(ctx, b, "word") }

// describe describes a set: its texts, and the vocabulary.
func describe(ctx context.Context, s data.Source, what string) (string, error) {
	set, err := s.Load(ctx, nil, data.Need{Train: true})
	if err != nil {
		return "", err
	}
	first := set.Tokens.Names[:min(8, len(set.Tokens.Names))]
	return fmt.Sprintf("%s of %s (%.150s, ...)", numeral.Of(set.Train.Len(), "sample"), numeral.Of(set.Tokens.Texts(), what), strings.Join(first, ", ")), nil
}

func (b *Bag) vocabulary(ctx context.Context, c *content) (*tokens.Tokenizer, error) {
	size := b.Vocabulary
	if size > 0 {
		size += 3 // counts have no <pad>, <end> and <unknown>
	}
	t := &tokens.Tokenizer{Kind: tokens.Words, Lower: b.Lower, Plain: true}
	return t.Fit(tokens.Limits{Size: size, Texts: b.Least, Share: b.Most}, c.each(ctx))
}

func (b *Bag) samples(ctx context.Context, c *content, t *tokens.Tokenizer) (*data.Images, error) {
	starts, columns, values := []int{0}, []int32{}, []float32{}
	empty := 0
	counts := map[int32]float32{}
	err := c.each(ctx)(func(piece string, last bool) {
		t.Known(piece, func(token int32) { counts[token]++ })
		if !last {
			return
		}
		from := len(columns)
		for token := range counts {
			columns = append(columns, token)
		}
		slices.Sort(columns[from:])
		for _, token := range columns[from:] {
			values = append(values, counts[token])
		}
		if starts = append(starts, len(columns)); from == len(columns) {
			empty++
		}
		clear(counts)
	})
	if err != nil {
		return nil, err
	}
	labels, err := c.labels()
	if err != nil {
		return nil, err
	}
	if empty > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%s: %d of %s have no word of the vocabulary", c.name(), empty, numeral.Of(c.n, "text")))
	}
	return data.NewCounts(starts, columns, values, c.names, t.Names, labels)
}
