package data

import (
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
)

// TFIDF multiplies counts of words by idf, which is large for words that few samples have, and then divides every sample by its norm. With
// n fitted samples, of which df have the word,
//
//	idf = log((1 + n) / (1 + df)) + 1       with smooth
//	idf = log(n / df) + 1                   without; 0 if no fitted sample has the word
//
// With sublinear, 1 + log(x) replaces counts x > 0. Negative values count as 0.
//
// Source: C. D. Manning, P. Raghavan, H. Schütze, Introduction to Information Retrieval, Cambridge 2008, chapter 6; the terms with 1 are
// those of scikit-learn's TfidfTransformer.
type TFIDF struct {
	Smooth    bool   `toml:"smooth" doc:"count one more sample, which has every word"`
	Sublinear bool   `toml:"sublinear" doc:"1 + log(x) in place of x"`
	Norm      string `toml:"norm" oneof:"l2 l1 max none" doc:"norm by which every sample is divided; none for no division"`

	IDF []float32
}

func init() {
	Scalings.Register("tfidf", "x idf / |x idf|, where idf is large for values that few fitted samples have", func() Scaler { return &TFIDF{Smooth: true, Norm: "l2"} })
}

func (s *TFIDF) Check() error {
	if _, err := normOf(s.Norm); err != nil && s.Norm != "none" {
		return part.KeyErrorf("norm", `got %q, want "l2", "l1", "max" or "none"`, s.Norm)
	}
	return nil
}

func (*TFIDF) Fits() bool { return true }

func (s *TFIDF) Fit(m *Images) (*Scaling, error) {
	if err := m.counts(); err != nil {
		return nil, err
	}
	with := make([]float64, m.pixels)
	m.EachRow(func(columns []int32, values []float32) {
		eachPositive(columns, values, func(j int, _ float64) { with[j]++ })
	})
	fitted := *s
	fitted.IDF = make([]float32, m.pixels)
	for j, df := range with {
		switch n := float64(m.n); {
		case s.Smooth:
			fitted.IDF[j] = float32(math.Log((1+n)/(1+df)) + 1)
		case df > 0:
			fitted.IDF[j] = float32(math.Log(n/df) + 1)
		}
	}
	return NewSteps(m.pixels, &fitted), nil
}

func (s *TFIDF) FittedTo(values int) bool {
	return len(s.IDF) == values && s.Check() == nil && allFinite(s.IDF)
}

func (s *TFIDF) Apply(columns []int32, values []float32) {
	for e, v := range values {
		j := e
		if columns != nil {
			j = int(columns[e])
		}
		switch x := float64(v); {
		case v <= 0:
			values[e] = 0
		case s.Sublinear:
			values[e] = float32((1 + math.Log(x)) * float64(s.IDF[j]))
		default:
			values[e] = float32(x * float64(s.IDF[j]))
		}
	}
	if s.Norm != "none" {
		normalise(values, s.Norm, 1)
	}
}

// counts returns an error if a value is negative.
func (m *Images) counts() error {
	if place, v := m.FirstBelow(0); place != "" {
		return fmt.Errorf("%s: got %g, want numbers >= 0", place, v)
	}
	return nil
}

// eachPositive calls do for every positive value of a sample; columns are as in [Step.Apply].
func eachPositive(columns []int32, values []float32, do func(j int, v float64)) {
	for e, v := range values {
		if v > 0 {
			j := e
			if columns != nil {
				j = int(columns[e])
			}
			do(j, float64(v))
		}
	}
}

func allFinite(values []float32) bool {
	return !slices.ContainsFunc(values, func(v float32) bool { return v-v != 0 })
}
