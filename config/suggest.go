package config

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Suggest returns what a name that is not among the valid ones was probably meant to be, in words: the nearest one, or all of them
// when none is near.
func Suggest(name string, valid []string) string { return suggest(name, valid) }

// suggest returns what a name that is not among the valid ones was probably meant to be: the nearest one, or all of
// them when none is near.
func suggest(name string, valid []string) string {
	if len(valid) == 0 {
		return ""
	}
	if near, ok := nearest(name, valid); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "valid: " + quoted(valid)
}

// nearest returns the valid name that a misspelt one is near to: at most one third of its letters differ, two swapped
// letters count as one, case and the choice of - or _ as none; or one of the two is the beginning of the other.
func nearest(name string, valid []string) (string, bool) {
	best, distance := "", 0
	for _, v := range valid {
		a, b := plainName(name), plainName(v)
		d, limit := editDistance(a, b), max(1, max(len(a), len(b))/3)
		if d > limit && min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = limit
		}
		if d <= limit && (best == "" || d < distance) {
			best, distance = v, d
		}
	}
	return best, best != ""
}

func plainName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// editDistance counts insertions, deletions and replacements, and one swap of neighbours as 1.
func editDistance(a, b string) int {
	if len(a) == len(b) {
		for i := 0; i+1 < len(a); i++ {
			if a[:i]+a[i+1:i+2]+a[i:i+1]+a[i+2:] == b {
				return min(1, levenshtein.ComputeDistance(a, b))
			}
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
