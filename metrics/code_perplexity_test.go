package metrics

import (
	"context"
	"errors"
	"math"
	"testing"

	"tessera/internal/fatal"
)

// quantised is a coder with code books whose indices are columns.
type quantised struct {
	*affine
	books []CodeBook
}

func (q quantised) CodeBooks() []CodeBook { return q.books }

func (q quantised) ValueOf(name string, columns map[string][]float32) ([]float32, error) {
	return columns[name], nil
}

func TestCodePerplexityByHand(t *testing.T) {
	m, _ := Registry.Lookup("code_perplexity")
	for _, c := range []struct {
		indices map[string][]float32
		want    float64
	}{
		{map[string][]float32{"a": {2, 2, 2, 2}}, 1},
		{map[string][]float32{"a": {0, 1, 2, 3}}, 4},
		{map[string][]float32{"a": {0, 0, 0, 1}}, math.Exp(-0.75*math.Log(0.75) - 0.25*math.Log(0.25))},
		{map[string][]float32{"a": {0, 1, 2, 3}, "b": {1, 1, 1, 1}}, 2}, // sqrt(4 * 1)
	} {
		q := quantised{}
		for name := range c.indices {
			q.books = append(q.books, CodeBook{name, 4})
		}
		meter, err := m.New().Start(&Subject{Coder: q})
		fatal.If(t, err)
		for half := range 2 {
			columns := map[string][]float32{}
			for name, values := range c.indices {
				columns[name] = values[half*2 : half*2+2]
			}
			fatal.If(t, meter.Add(&Batch{Columns: columns}))
		}
		got, err := meter.Values(context.Background())
		if err != nil || !(math.Abs(got[0].Number-c.want) < 1e-12) {
			t.Errorf("indices %v have the perplexity %v (%v), want %v", c.indices, got, err, c.want)
		}
	}
}

func TestCodePerplexityOfATokenWithANaNIsAnError(t *testing.T) {
	m, _ := Registry.Lookup("code_perplexity")
	meter, err := m.New().Start(&Subject{Coder: quantised{books: []CodeBook{{"a", 4}}}})
	fatal.If(t, err)
	err = meter.Add(&Batch{Columns: map[string][]float32{"a": {1, float32(math.NaN())}}})
	if infinite := new(NotFinite); !errors.As(err, &infinite) {
		t.Errorf("got %v, want a NotFinite", err)
	}
}
