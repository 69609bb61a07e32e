package laws_test

import (
	"math"
	"slices"
	"testing"

	"tessera/data"
	"tessera/laws"
)

// wrongScaling doubles values, and does what a test specifies.
type wrongScaling struct {
	Of    float32
	Says  bool // that it fits samples
	fit   func(s *wrongScaling, m *data.Images)
	apply func(s *wrongScaling, columns []int32, values []float32)
	undo  float32
	kept  float32 // is not stored
}

func (s *wrongScaling) Fits() bool { return s.Says }

func (s *wrongScaling) Fit(m *data.Images) (*data.Scaling, error) {
	fitted := *s
	if fitted.Of, fitted.kept = 2, 1; s.fit != nil {
		s.fit(&fitted, m)
	}
	return data.NewSteps(m.Pixels(), &fitted), nil
}

func (s *wrongScaling) FittedTo(int) bool { return s.Of > 0 }

func (s *wrongScaling) Apply(columns []int32, values []float32) {
	for i := range values {
		values[i] *= s.Of
	}
	if s.apply != nil {
		s.apply(s, columns, values)
	}
}

func (s *wrongScaling) Undo(values []float32) {
	for i := range values {
		values[i] = values[i]/s.Of + s.undo
	}
}

var wrongCalls float32

// For every law of scalings there is an incorrect part that breaks it, and a correct one breaks none.
func TestTheLawsOfScalingsAreBroken(t *testing.T) {
	data.Scalings.Register("wrong", "", func() data.Scaler { return &wrongScaling{} })
	for law, s := range map[string]wrongScaling{
		"scales every sample by itself": {apply: func(_ *wrongScaling, _ []int32, values []float32) { wrongCalls++; values[0] += wrongCalls }},
		"gives finite values": {apply: func(_ *wrongScaling, _ []int32, values []float32) {
			for i, v := range values {
				if v < 0 {
					values[i] = float32(math.Inf(-1))
				}
			}
		}},
		"scales rows of a sparse matrix as complete ones": {apply: func(_ *wrongScaling, columns []int32, values []float32) {
			for i := range columns {
				values[i]++
			}
		}},
		"leaves missing values missing, and does not read them": {apply: func(_ *wrongScaling, _ []int32, values []float32) {
			for i, v := range values {
				if v != v {
					values[i] = 0
				}
			}
		}},
		"is undone by its inverse": {undo: 1},
		"gives the same values for the same samples, which it leaves as they are": {fit: func(_ *wrongScaling, m *data.Images) { m.Float32()[0]++ }},
		"is that of any samples if it fits none":                                  {fit: func(s *wrongScaling, m *data.Images) { s.Of = 1 + m.Float32()[0] + m.Float32()[1] }},
		"is the same when it is read again": {apply: func(s *wrongScaling, _ []int32, values []float32) {
			for i := range values {
				values[i] *= 1 + s.kept
			}
		}, undo: 0},
	} {
		fresh := func() data.Scaler { other := s; return &other }
		if broken := laws.Broken(laws.Scaling, fresh); !slices.Contains(broken, law) {
			t.Errorf("%q is not broken, but %q", law, broken)
		}
	}
	if broken := laws.Broken(laws.Scaling, func() data.Scaler { return &wrongScaling{} }); len(broken) > 0 {
		t.Errorf("a correct scaling breaks %q", broken)
	}
}

func TestEveryScalingObeysItsLaws(t *testing.T) {
	for _, e := range data.Scalings.All() {
		if e.Name != "wrong" {
			t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Scaling, e.New) })
		}
	}
	laws.Check(t, laws.Scaling, func() data.Scaler { return &data.RowNorm{Norm: "l2"} })
	laws.Check(t, laws.Scaling, func() data.Scaler { return &data.TFIDF{Norm: "none", Sublinear: true} })
	laws.Check(t, laws.Scaling, func() data.Scaler { return &data.PPMI{Shift: 2, Smoothing: 0.75} })
	laws.Check(t, laws.Scaling, func() data.Scaler { return &data.Standardise{} })
}
