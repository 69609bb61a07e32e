package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/tokens"
)

const pairsName = "cooccurrence"

// Cooccurrence is a data set of words: a sample is a word of the vocabulary, a sparse vector with the number of its occurrences near every word of
// the vocabulary,
//
//	x_ij = sum over occurrences of i, and of j at a distance d <= window in the same text, of f(d)
//
// with f(d) = 1, or 1/d with weights = "harmonic" (GloVe). The matrix is symmetric. Distances count words that are not in the vocabulary too. Words
// are those of the data set text; the vocabulary has words that occur at least `least` times, and of these the `vocabulary` most frequent.
//
// With entries = true, a sample is a pair of words with x_ij > 0 instead: the number i, of shape (1), with the columns `context`, the number j, and
// `count`, x_ij; for the loss glove. `smooth` is added to every count, so that with it all pairs of words are samples. Without it nothing says that words
// which never occur together belong apart: of few words, of which 58 of 100 pairs never occur, glove then finds no analogies, however long it is
// trained. Many words are placed by what occurs, and have too many pairs to list all.
//
// With scale = "ppmi", a factorisation such as `nmf` gives vectors of words with interpretable values.
//
// Source: B. Murphy, P. Talukdar, T. Mitchell, Learning effective and interpretable semantic models using non-negative sparse embedding, COLING 2012.
type Cooccurrence struct {
	Texts
	Window     int        `toml:"window" want:"in [1,1000]" doc:"largest distance of two words, in words"`
	Weights    string     `toml:"weights" oneof:"flat harmonic" doc:"what a pair at distance d counts: 1 (flat) or 1/d (harmonic)"`
	Least      int        `toml:"least" want:"> 0" doc:"smallest number of occurrences of a word"`
	Vocabulary int        `toml:"vocabulary" want:"in [1,1000000]" doc:"largest number of words, the most frequent ones"`
	Entries    bool       `toml:"entries" doc:"a sample is a pair of words with its count"`
	Smooth     float64    `toml:"smooth" want:">= 0" doc:"added to the count of every pair, with entries = true; above 0 pairs that do not occur are samples too"`
	Scale      data.Scale `toml:"scale" single:"true" bare:"factor.by" optional:"true" doc:"how the counts are scaled, such as \"ppmi\": a scaling (tessera list scalings), a number as factor, or several scalings in order; by default they are not scaled"`
}

func init() {
	data.Registry.Register(pairsName, "your own texts as counts of neighbouring words: a sample is a word",
		func() data.Source {
			return &Cooccurrence{Texts: Texts{Lower: true}, Window: 5, Weights: "flat", Least: 5, Vocabulary: 10000}
		})
}

func (c *Cooccurrence) Check() error {
	if c.Entries && len(c.Scale) > 0 {
		return part.KeyErrorf("scale", "is given with entries = true, whose samples are numbers of words: leave it out")
	}
	if c.Smooth > 0 && !c.Entries {
		return part.KeyErrorf("smooth", "is for entries = true: leave it out")
	}
	return errors.Join(c.Texts.Check(), c.Scale.OfValues())
}

func (c *Cooccurrence) FitsScale() bool { return c.Scale.Fitted() }

func (*Cooccurrence) Unlabelled() bool { return true }

func (*Cooccurrence) Unvalidated() bool { return true }

// Shape implements [data.Source]: the number of words is known after the texts are read.
func (c *Cooccurrence) Shape(data.Dirs) ([]int, bool) {
	if c.Entries {
		return []int{1}, true
	}
	return c.shape(pairsName, c)
}

func (c *Cooccurrence) DescribeColumns(data.Dirs) []data.Column {
	if !c.Entries {
		return nil
	}
	return []data.Column{{Name: "context", Shape: []int{1}, Type: data.Whole}, {Name: "count", Type: data.Float32}}
}

func (c *Cooccurrence) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return c.load(ctx, pairsName, c, c.Scale)
}

func (c *Cooccurrence) ReadFile(ctx context.Context, path string, classes []string) (*data.Rows, error) {
	return c.rows(ctx, c, path, classes)
}

func (c *Cooccurrence) Fitted(t *tokens.Tokenizer) data.Source {
	other := *c
	other.fitted = t
	return &other
}

func (c *Cooccurrence) Describe(ctx context.Context) (string, error) { return describe(ctx, c, "word") }

func (c *Cooccurrence) vocabulary(ctx context.Context, of *content) (*tokens.Tokenizer, error) {
	t := &tokens.Tokenizer{Kind: tokens.Words, Lower: c.Lower, Plain: true}
	return t.Fit(tokens.Limits{Size: c.Vocabulary + 3, Least: c.Least}, of.each(ctx))
}

// samples counts the pairs of all words at once, or, if they do not fit into the budget, of fewer words in several passes over the texts, which give equal sums.
func (c *Cooccurrence) samples(ctx context.Context, of *content, t *tokens.Tokenizer) (*data.Images, error) {
	words := t.Texts()
	starts, columns, values := []int{0}, []int32{}, []float32{}
	rows := c.record(of.path, 3)
	alone := 0
	for from := 0; from < words; {
		near, err := c.count(ctx, of, t, from)
		if err != nil {
			return nil, err
		}
		for i, row := range near {
			if len(row) == 0 {
				alone++
			}
			others := slices.Sorted(maps.Keys(row))
			for j := int32(0); c.Smooth > 0 && int(j) < words; j++ {
				others = append(others[:j], j) // all words
			}
			for _, j := range others {
				if count := float32(row[j] + c.Smooth); c.Entries {
					err = cmp.Or(err, rows.Add(float32(from+i), float32(j), count))
				} else {
					columns, values = append(columns, j), append(values, count)
				}
			}
			starts = append(starts, len(columns))
		}
		if err != nil {
			return nil, err
		}
		from += len(near)
	}
	if alone == words {
		return nil, &data.Error{Path: of.path, Problem: fmt.Sprintf("no two words of the vocabulary (%d) are within a window of %d words", words, c.Window)}
	}
	if alone > 0 {
		of.notes = append(of.notes, fmt.Sprintf("%s: %d of %d words have no neighbour in the vocabulary", of.name(), alone, words))
	}
	if !c.Entries {
		return data.NewCounts(starts, columns, values, t.Names, t.Names, nil)
	}
	if err := rows.Finish(); err != nil {
		return nil, err
	}
	images, err := rows.Images([]int{1}, nil)
	if err != nil {
		return nil, err
	}
	list := c.DescribeColumns(nil)
	return images.WithColumns(rows.Column(list[0], 1).Within(words-1), rows.Column(list[1], 2))
}

const (
	pairSize    = 40      // bytes that a pair takes, about
	leastUnseen = 1 << 14 // words between two looks at the pairs
)

// count counts the words near a word, from the given word on: all, or as many as fit into half of the budget.
func (c *Cooccurrence) count(ctx context.Context, of *content, t *tokens.Tokenizer, from int) (near []map[int32]float64, err error) {
	words := t.Texts()
	near = lists.Of(words-from, func(int) map[int32]float64 { return map[int32]float64{} })
	add := func(a, b int32, weight float64) {
		if i := int(a) - from; i >= 0 && i < len(near) {
			near[i][b] += weight
		}
	}
	var list []int32 // the last words of the text, and those of the piece
	unseen := 0      // words since the pairs were numbered
	err = of.each(ctx)(func(piece string, last bool) {
		old := len(list)
		list = append(list, t.Encode(piece)...)
		for i := old; i < len(list); i++ {
			a := list[i]
			if int(a) >= words {
				continue
			}
			for d := 1; d <= c.Window && d <= i; d++ {
				b := list[i-d]
				if int(b) >= words {
					continue
				}
				weight := 1.0
				if c.Weights == "harmonic" {
					weight = 1 / float64(d)
				}
				add(a, b, weight)
				add(b, a, weight)
			}
		}
		unseen += len(list) - old
		if list = append(list[:0], list[max(0, len(list)-c.Window):]...); last {
			list = list[:0]
		}
		if c.Memory == 0 || unseen < leastUnseen {
			return
		}
		for unseen = 0; len(near) > 1 && pairSize*pairs(near) > int(c.Memory)/2; {
			clear(near[(len(near)+1)/2:])
			near = near[:(len(near)+1)/2]
		}
	})
	return near, err
}

// pairs returns the number of pairs that are counted.
func pairs(near []map[int32]float64) (n int) {
	for _, row := range near {
		n += len(row)
	}
	return n
}
