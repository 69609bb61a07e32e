// Package assignment solves the linear assignment problem: a one-to-one matching of rows and columns with the largest sum
// of scores.
package assignment

import (
	"errors"
	"fmt"
	"math"
)

// None is the column of an unmatched row.
const None = -1

// Maximise returns the column that is matched to each row, in a matching with the largest sum of score(row, column).
// The matching is one-to-one and has min(rows, columns) pairs. If there are more rows than columns, the unmatched rows
// have the column [None]. The work is O(min² max), with one call of score for each pair. Maximise returns an error if a
// score is not finite.
//
// The method uses shortest augmenting paths with potentials: H. W. Kuhn, The Hungarian method for the assignment
// problem, Naval Research Logistics Quarterly 2, 1955; R. Jonker, A. Volgenant, A shortest augmenting path algorithm
// for dense and sparse linear assignment problems, Computing 38, 1987.
func Maximise(rows, columns int, score func(row, column int) float64) ([]int, error) {
	if rows < 0 || columns < 0 {
		return nil, fmt.Errorf("assignment: got %d rows and %d columns, want >= 0", rows, columns)
	}
	swapped := rows > columns
	s := solver{n: min(rows, columns), m: max(rows, columns)}
	s.costs = make([]float64, s.n*s.m)
	for i := range s.n {
		for j := range s.m {
			row, column := i, j
			if swapped {
				row, column = j, i
			}
			v := score(row, column)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, errors.New("assignment: a score is not finite")
			}
			s.costs[i*s.m+j] = -v
		}
	}
	return s.matching(swapped), nil
}

// solver matches n sources to n of m >= n targets with the smallest sum of costs.
type solver struct {
	n, m   int
	costs  []float64 // costs of all pairs, n x m
	source []int     // source of every target, None if unmatched
	u, v   []float64 // potentials of sources and targets: u + v <= cost, with equality for matched pairs
}

// matching matches one source after the other. It returns the column of each row. swapped means that the targets are
// the rows.
func (s *solver) matching(swapped bool) []int {
	s.u, s.v, s.source = make([]float64, s.n), make([]float64, s.m), make([]int, s.m)
	for j := range s.source {
		s.source[j] = None
	}
	for i := range s.n {
		s.augment(i)
	}
	if swapped { // the targets are the rows, so source contains the columns
		return s.source
	}
	columns := make([]int, s.n)
	for j, i := range s.source {
		if i != None {
			columns[i] = j
		}
	}
	return columns
}

// augment matches the source first along the shortest alternating path from it to a free target.
func (s *solver) augment(first int) {
	distance, before, done := make([]float64, s.m), make([]int, s.m), make([]bool, s.m)
	for j := range distance {
		distance[j], before[j] = math.Inf(1), None
	}
	at, last, reached := first, None, 0.0
	for {
		next, nearest := None, math.Inf(1)
		for j := range s.m {
			if done[j] {
				continue
			}
			if d := reached + s.costs[at*s.m+j] - s.u[at] - s.v[j]; d < distance[j] {
				distance[j], before[j] = d, last
			}
			if distance[j] < nearest {
				next, nearest = j, distance[j]
			}
		}
		last, reached = next, nearest
		if s.source[last] == None {
			break
		}
		done[last], at = true, s.source[last]
	}
	s.u[first] += reached
	for j := range s.m {
		if done[j] {
			s.u[s.source[j]] += reached - distance[j]
			s.v[j] -= reached - distance[j]
		}
	}
	for j := last; j != None; j = before[j] {
		if before[j] == None {
			s.source[j] = first
		} else {
			s.source[j] = s.source[before[j]]
		}
	}
}
