package text

import (
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
	return shapeOf(c)
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

func (c *Cooccurrence) ReadFile(ctx context.Context, path string) (*data.Rows, error) {
	return c.rows(ctx, c, path)
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

func (c *Cooccurrence) samples(ctx context.Context, of *content, t *tokens.Tokenizer, _ []int) (*data.Images, error) {
	near := lists.Of(t.Texts(), func(int) map[int32]float64 { return map[int32]float64{} })
	err := of.each(ctx)(func(text string) {
		list := t.Encode(text)
		for i, a := range list {
			if int(a) >= t.Texts() {
				continue
			}
			for d := 1; d <= c.Window && d <= i; d++ {
				b := list[i-d]
				if int(b) >= t.Texts() {
					continue
				}
				weight := 1.0
				if c.Weights == "harmonic" {
					weight = 1 / float64(d)
				}
				near[a][b] += weight
				near[b][a] += weight
			}
		}
	})
	if err != nil {
		return nil, err
	}
	starts, columns, values := []int{0}, []int32{}, []float32{}
	alone := 0
	for _, row := range near {
		if len(row) == 0 {
			alone++
		}
		others := slices.Sorted(maps.Keys(row))
		for j := int32(0); c.Smooth > 0 && int(j) < len(near); j++ {
			others = append(others[:j], j) // all words
		}
		for _, j := range others {
			columns, values = append(columns, j), append(values, float32(row[j]+c.Smooth))
		}
		starts = append(starts, len(columns))
	}
	if alone == len(near) {
		return nil, &data.Error{Path: of.file.Path, Problem: fmt.Sprintf("no two words of the vocabulary (%d) are within a window of %d words", t.Texts(), c.Window)}
	}
	if alone > 0 {
		of.notes = append(of.notes, fmt.Sprintf("%s: %d of %d words have no neighbour in the vocabulary", of.file.Path, alone, t.Texts()))
	}
	if !c.Entries {
		return data.NewCounts(starts, columns, values, t.Names, t.Names, nil)
	}
	words := make([]float32, 0, len(columns))
	for i := range near {
		for range columns[starts[i]:starts[i+1]] {
			words = append(words, float32(i))
		}
	}
	images, err := data.NewFloats([]int{1}, words, nil)
	if err != nil {
		return nil, err
	}
	return images.WithColumns(data.WholeColumn("context", []int{1}, columns), data.FloatColumn("count", nil, values))
}
