package assignment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
)

// best returns the largest sum over all matchings. It tries all of them.
func best(rows, columns int, score func(row, column int) float64) float64 {
	if rows > columns {
		return best(columns, rows, func(i, j int) float64 { return score(j, i) })
	}
	taken := make([]bool, columns)
	var from func(row int) float64
	from = func(row int) float64 {
		if row == rows {
			return 0
		}
		most := math.Inf(-1)
		for j := range columns {
			if !taken[j] {
				taken[j] = true
				most = max(most, score(row, j)+from(row+1))
				taken[j] = false
			}
		}
		return most
	}
	return from(0)
}

func TestMaximiseFindsTheLargestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rows, columns, whole := r.IntN(6), r.IntN(6), r.IntN(2) == 0
		scores := make([]float64, rows*columns)
		for i := range scores {
			if scores[i] = r.NormFloat64(); whole { // whole numbers give many ties
				scores[i] = float64(r.IntN(3))
			}
		}
		score := func(i, j int) float64 { return scores[i*columns+j] }
		got, err := Maximise(rows, columns, score)
		if err != nil || len(got) != rows {
			t.Fatalf("%d x %d: %v %v", rows, columns, got, err)
		}
		sum, pairs, seen := 0.0, 0, map[int]bool{}
		for i, j := range got {
			if j == None {
				continue
			}
			if j < 0 || j >= columns || seen[j] {
				t.Fatalf("%d x %d: %v is no matching", rows, columns, got)
			}
			seen[j] = true
			pairs++
			sum += score(i, j)
		}
		if want := best(rows, columns, score); pairs != min(rows, columns) || math.Abs(sum-want) > 1e-12 {
			t.Errorf("%d x %d %v: %d pairs of sum %g, want %g", rows, columns, scores, pairs, sum, want)
		}
	}
}

// A greedy choice of the largest score would match row 0 to column 0.
func TestMaximiseIsNotGreedy(t *testing.T) {
	scores := [][]float64{{0.9, 0.8}, {0.85, 0.1}}
	got, err := Maximise(2, 2, func(i, j int) float64 { return scores[i][j] })
	if err != nil || !slices.Equal(got, []int{1, 0}) {
		t.Errorf("got %v %v, want [1 0]", got, err)
	}
}

func TestRowsThatAreLeftOverHaveNoColumn(t *testing.T) {
	got, err := Maximise(3, 1, func(i, _ int) float64 { return []float64{1, 3, 2}[i] })
	if err != nil || !slices.Equal(got, []int{None, 0, None}) {
		t.Errorf("got %v %v", got, err)
	}
}

func TestScoresThatAreNotFiniteAreRefused(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		expect.AnyError(t, expect.Err(Maximise(2, 3, func(i, j int) float64 { return bad * float64(i*j) })), "a score of", bad, "is accepted")
	}
	expect.AnyError(t, expect.Err(Maximise(-1, 2, nil)), "-1 rows are accepted")
}
