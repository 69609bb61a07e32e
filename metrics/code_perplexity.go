package metrics

import (
	"maps"
	"math"

	"tessera/data"
	"tessera/internal/lists"
)

// CodeBook is the index that a layer with a code book gives every token of an image.
type CodeBook struct {
	Index   string // name of the value, several whole numbers for each image
	Entries int    // number of entries of the code book; an index is less than it
}

// Quantised is a [ColumnCoder] with code books.
type Quantised interface {
	ColumnCoder
	CodeBooks() []CodeBook
}

// Source: van den Oord, Vinyals and Kavukcuoglu, Neural discrete representation learning, 2017.
func init() {
	register("code_perplexity", "perplexity of the entries of a code book", Description{
		Measures: []Measure{{Name: "code_perplexity", Better: Neither,
			Doc: "exp(-Σ p_j ln p_j), p_j the share of the tokens that entry j of the code book replaces: from 1 to the number of entries. " +
				"Of several code books the geometric mean (van den Oord et al. 2017). For models with a layer `vq`"}},
		Reads: ReadsImages, ScaleFree: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		none := Fixed(NotApplicable("the model has no layer with a code book"))
		coder, ok := As[Quantised](s.Coder)
		if !ok {
			return none, nil
		}
		books := coder.CodeBooks()
		if len(books) == 0 {
			return none, nil
		}
		counts := lists.Map(books, func(book CodeBook) []float64 { return make([]float64, book.Entries) })
		return meter{
			add: func(b *Batch) error {
				for i, book := range books {
					given := map[string][]float32{data.ImagesColumn: b.Images}
					maps.Copy(given, b.Columns)
					indices, err := coder.ValueOf(book.Index, given)
					if err != nil {
						return err
					}
					for _, k := range indices {
						if k != k { // of a token with a NaN
							return &NotFinite{"code_perplexity", float64(k)}
						}
						counts[i][int(k)]++
					}
				}
				return nil
			},
			values: func() []Value { return []Value{perplexity(counts)} },
		}, nil
	})
}

// perplexity returns the geometric mean of the perplexities of the counts of several code books.
func perplexity(counts [][]float64) Value {
	entropy := 0.0
	for _, n := range counts {
		total := lists.Sum(n)
		if total == 0 {
			return NotApplicable(noImages)
		}
		for _, v := range n {
			if v > 0 {
				entropy -= v / total * math.Log(v/total) / float64(len(counts))
			}
		}
	}
	return Number(math.Exp(entropy))
}
