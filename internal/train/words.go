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

// WordVectors returns a vector of a number of values for every token of texts, in the order of the vocabulary: the table of the first layer
// `embedding`, or else the values of the word in all atoms.
func (t *Trained) WordVectors() (vectors []float32, width int, err error) {
	if t.Tokens == nil {
		return nil, 0, ErrNoWords
	}
	n := t.Tokens.Texts()
	if p := wordTable(t.Model, n); p != nil {
		return p.Data[:n*p.Shape[1]], p.Shape[1], nil
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
		if i, ok := at[name]; ok {
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
