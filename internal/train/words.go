package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/tokens"
	vector "tessera/internal/vectors"
	"tessera/metrics"
)

// ErrNoWords is the error for a model that was not fitted to texts.
var ErrNoWords = errors.New("its samples are no texts: want a model of the data sets text, cooccurrence, contexts or tokens")

// Atoms returns the atoms, nil if it has none.
func (t *Trained) Atoms() *metrics.Atoms {
	if t.Baseline != nil {
		return t.Baseline.Atoms()
	}
	return t.Model.Atoms()
}

// WordVectors returns a vector of a number of values for every token of texts, in the order of the vocabulary: its row of the table of the first layer
// `embedding`, the mean of this row and those of its n-grams of characters if words have them, or else the values of the word in all atoms.
func (t *Trained) WordVectors() (vectors []float32, width int, err error) {
	if t.Tokens == nil {
		return nil, 0, ErrNoWords
	}
	n := t.Tokens.Texts()
	if p := wordTable(t.Model, n); p != nil {
		width := p.Shape[1]
		for i := range n {
			of := t.WordVector(t.Tokens.Name(int32(i)))
			if of == nil { // rows alone
				return p.Data[:n*width], width, nil
			}
			vectors = append(vectors, of...)
		}
		return vectors, width, nil
	}
	a := t.Atoms()
	if a == nil || a.Pixels() != n {
		return nil, 0, errors.New("it has no vectors of words: neither a layer embedding nor atoms with a value for every word")
	}
	vectors = make([]float32, n*a.Count)
	for j := range a.Count {
		for i, v := range a.Values[j*n : (j+1)*n] {
			vectors[i*a.Count+j] = v
		}
	}
	return vectors, a.Count, nil
}

// WordVector returns the vector of any word, which its n-grams of characters have; nil if words have none, or the table has no rows for them.
func (t *Trained) WordVector(word string) []float32 {
	source, ok := t.Spec.Dataset.Source.(interface {
		PiecesOf(t *tokens.Tokenizer, word string) []int32
	})
	p := wordTable(t.Model, t.Tokens.Texts())
	if !ok || p == nil {
		return nil
	}
	rows := source.PiecesOf(t.Tokens, word)
	if len(rows) == 0 || int(slices.Max(rows)) >= p.Shape[0] {
		return nil
	}
	sum, width := make([]float64, p.Shape[1]), p.Shape[1]
	for _, row := range rows {
		for j, v := range p.Data[int(row)*width:][:width] {
			sum[j] += float64(v) / float64(len(rows))
		}
	}
	return vector.Narrow(sum)
}

// wordTable returns the table of the first layer `embedding` of the encoder of m, if it has rows for n words; otherwise nil.
func wordTable(m *graph.Model, n int) *graph.Parameter {
	if m == nil {
		return nil
	}
	at := slices.IndexFunc(m.Layout.Encoder, func(l config.Placed) bool { return l.Kind == "embedding" })
	i := slices.IndexFunc(m.Parameters, func(p *graph.Parameter) bool {
		return at >= 0 && p.Path == m.Layout.Encoder[at].Path+".weight" && p.Shape[0] >= n
	})
	if i < 0 {
		return nil
	}
	return m.Parameters[i]
}

// spell copies the vectors of words of a file to the rows of the same words in the table of the words. Other rows keep their initial values.
func (n *trainee) spell(path string, s *config.Start) (*data.File, error) {
	refuse := func(key, format string, args ...any) (*data.File, error) {
		return nil, part.KeyErrorf(key, "%s has vectors of words: %s", path, fmt.Sprintf(format, args...))
	}
	words := n.samples.tokens
	if words == nil {
		return refuse("file", "want a model of the data sets contexts or tokens")
	}
	rowsOf := wordTable(n.model, words.Texts())
	switch {
	case rowsOf == nil:
		return refuse("file", "want a model whose encoder has a layer embedding with a row for each of the %d words", words.Texts())
	case s.Names != nil:
		return refuse("names", "they have no other names")
	case !config.MatchPath(s.On, rowsOf.Path):
		return refuse("on", "they are copied to %s, which %q does not match", rowsOf.Path, s.On)
	}
	rows, err := data.ReadRows(context.Background(), path, nil, nil)
	if err != nil {
		return nil, err
	}
	width := rowsOf.Shape[1]
	if rows.Names == nil || rows.Pixels() != width {
		return refuse("file", "got %d rows of %d values (names: %v), want names and %d values, the units of %s", rows.Len(), rows.Pixels(), rows.Names != nil, width, rowsOf.Path)
	}
	at := map[string]int{}
	for i, name := range slices.Backward(rows.Names) { // the first of equal names
		at[name] = i
	}
	var missing []string
	for token := range words.Texts() {
		name := words.Name(int32(token))
		i, ok := at[name]
		if !ok {
			i, ok = at[words.Word(int32(token))]
		}
		if ok {
			rows.Batch(rowsOf.Data[token*width:(token+1)*width], []int{i})
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) == words.Texts() {
		return refuse("file", "none of the %d words of the vocabulary is among its %d", len(missing), rows.Len())
	}
	if warn := n.options.Warn; warn != nil && len(missing) > 0 {
		warn(fmt.Sprintf("start: %s has vectors of %d of the %d words of the vocabulary; others begin with drawn values: %s",
			path, words.Texts()-len(missing), words.Texts(), table.Quoted(missing[:min(5, len(missing))])))
	}
	return ParametersOf(path)
}
