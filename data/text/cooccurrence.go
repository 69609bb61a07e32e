package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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

// unitCount is the count of a pair at the distance 1: the shares of larger distances are rounded, so that all counts are whole numbers.
const unitCount = 1 << 32

func (c *Cooccurrence) samples(ctx context.Context, of *content, t *tokens.Tokenizer) (*data.Images, error) {
	near, err := c.count(ctx, of, t)
	if err != nil {
		return nil, err
	}
	words := t.Texts()
	starts, columns, values := make([]int, 1, words+1), []int32{}, []float32{}
	rows := c.record(of.path, 3)
	add := func(a, b int, count float64) error {
		if c.Entries {
			return rows.Add(float32(a), float32(b), float32(count+c.Smooth))
		}
		for len(starts) <= a {
			starts = append(starts, len(columns))
		}
		columns, values = append(columns, int32(b)), append(values, float32(count))
		return nil
	}
	next := 0 // the pair behind the last one, all pairs in a row
	absent := func(to int) (err error) {
		for ; c.Smooth > 0 && next < to && err == nil; next++ {
			err = add(next/words, next%words, 0)
		}
		return err
	}
	alone, last := words, int32(-1)
	err = near.Each(ctx, func(a, b int32, count uint64) error {
		if a != last {
			alone, last = alone-1, a
		}
		at := int(a)*words + int(b)
		err := cmp.Or(absent(at), add(int(a), int(b), float64(count)/unitCount))
		next = at + 1
		return err
	})
	if err = cmp.Or(err, absent(words*words)); err != nil {
		return nil, err
	}
	if alone == words {
		return nil, &data.Error{Path: of.path, Problem: fmt.Sprintf("no two words of the vocabulary (%d) are within a window of %d words", words, c.Window)}
	}
	if alone > 0 {
		of.notes = append(of.notes, fmt.Sprintf("%s: %d of %d words have no neighbour in the vocabulary", of.name(), alone, words))
	}
	if !c.Entries {
		for len(starts) <= words {
			starts = append(starts, len(columns))
		}
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

// count counts the pairs of words.
func (c *Cooccurrence) count(ctx context.Context, of *content, t *tokens.Tokenizer) (*data.Tally, error) {
	near, words := c.tally(of.path), t.Texts()
	counts := lists.Of(c.Window+1, func(d int) uint64 {
		if c.Weights == "harmonic" && d > 0 {
			return (unitCount + uint64(d)/2) / uint64(d)
		}
		return unitCount
	})
	var list []int32 // the last words of the text, and those of the piece
	err := of.each(ctx)(func(piece string, last bool) {
		old := len(list)
		list = append(list, t.Encode(piece)...)
		for i := old; i < len(list); i++ {
			a := list[i]
			for d := 1; d <= c.Window && d <= i && int(a) < words; d++ {
				switch b := list[i-d]; {
				case int(b) >= words:
				case a == b: // each is near the other
					near.Add(a, b, 2*counts[d])
				default:
					near.Add(a, b, counts[d])
				}
			}
		}
		if list = append(list[:0], list[max(0, len(list)-c.Window):]...); last {
			list = list[:0]
		}
	})
	return near, err
}
