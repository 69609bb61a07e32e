package data

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Without noise, the rule of a sample follows from as many examples as values, and gives the other answers. The columns say where they are.
func TestLinearRulesFollowFromTheirExamples(t *testing.T) {
	const examples, d = 7, 3
	s := &LinearRules{Examples: examples, Values: d, Count: 300, Tests: 40, Seed: 3}
	set, err := s.Load(background, nil, Both)
	fatal.If(t, err)
	if set.Train.Len() != 300 || set.Test.Len() != 40 || !slices.Equal(set.Shape, []int{2 * examples, d}) {
		t.Fatalf("got %d and %d samples of shape %v", set.Train.Len(), set.Test.Len(), set.Shape)
	}
	squares := 0.0
	for _, of := range []*Images{set.Train, set.Test} {
		for i := range of.Len() {
			x, answers, asked := make([]float32, 2*examples*d), make([]float32, 2*examples), make([]float32, 2*examples)
			of.Batch(x, []int{i})
			of.column(ruleAnswers).copyRow(answers, i)
			of.column(ruleAsked).copyRow(asked, i)
			a, b, w := mat.NewDense(d, d, nil), mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
			for k := range examples {
				row := x[2*k*d : 2*k*d+d]
				y := x[(2*k+1)*d : (2*k+2)*d]
				if asked[2*k] != 1 || asked[2*k+1] != 0 || answers[2*k] != y[0] || answers[2*k+1] != 0 || y[1] != 0 || y[2] != 0 {
					t.Fatalf("sample %d, example %d: answer %v, columns %v and %v", i, k, y, answers[2*k:2*k+2], asked[2*k:2*k+2])
				}
				if k < d {
					for j, v := range row {
						a.Set(k, j, float64(v))
					}
					b.SetVec(k, float64(y[0]))
					continue
				}
				if k == d {
					fatal.If(t, w.SolveVec(a, b))
				}
				want := 0.0
				for j, v := range row {
					want += w.AtVec(j) * float64(v)
				}
				expect.Near(t, want, float64(y[0]), 1e-3*(1+mat.Norm(w, 2)), "sample", i, "example", k)
			}
			if of == set.Train {
				squares += float64(answers[0]*answers[0]) / 300
			}
		}
	}
	if squares < 0.7 || squares > 1.3 {
		t.Errorf("the mean square of first answers is %v, want about 1", squares)
	}
	s.Count = 5
	few, err := s.Load(background, nil, Both)
	fatal.If(t, err)
	if x := few.Train.Float32(); !slices.Equal(x, set.Train.Float32()[:len(x)]) {
		t.Error("a smaller set is not the beginning of a larger one")
	}
}
