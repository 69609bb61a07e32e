// Package lists makes lists of lists and numbers, and adds the numbers of a list.
package lists

import "slices"

// Map returns f of each element, in their order; nil for an empty list.
func Map[T, U any](list []T, f func(T) U) []U {
	if len(list) == 0 {
		return nil
	}
	all := make([]U, len(list))
	for i, v := range list {
		all[i] = f(v)
	}
	return all
}

// Of returns f of the numbers from 0 to n-1; nil for n = 0.
func Of[T any](n int, f func(i int) T) []T {
	if n == 0 {
		return nil
	}
	all := make([]T, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

// Range returns the numbers from from to to-1; nil if there are none.
func Range(from, to int) []int { return Of(max(0, to-from), func(i int) int { return from + i }) }

// Only returns the elements for which keep holds, in their order; nil if there are none.
func Only[T any](list []T, keep func(T) bool) []T {
	var kept []T
	for _, v := range list {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// Add appends those of more that the list does not have yet.
func Add[T comparable](list []T, more ...T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Sum returns the sum of the elements, added in their order: the bits of a sum of floats depend on it.
func Sum[T ~int | ~int64 | ~float64](list []T) (sum T) {
	for _, v := range list {
		sum += v
	}
	return sum
}
