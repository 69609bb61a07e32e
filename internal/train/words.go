package train

import (
	"errors"
	"slices"

	"tessera/config"
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
	if m := t.Model; m != nil {
		at := slices.IndexFunc(m.Layout.Encoder, func(l config.Placed) bool { return l.Kind == "embedding" })
		for _, p := range m.Parameters {
			if at >= 0 && p.Path == m.Layout.Encoder[at].Path+".weight" && p.Shape[0] >= n {
				return p.Data[:n*p.Shape[1]], p.Shape[1], nil
			}
		}
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
