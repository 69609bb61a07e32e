package table

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Suggest says in words which of the valid names was probably meant by one that is not among them: the nearest, or all where
// none is near.
func Suggest(name string, valid []string) string {
	if len(valid) == 0 {
		return ""
	}
	if near, ok := Nearest(name, valid); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if more := len(valid) - mostListed; more > 0 {
		return fmt.Sprintf("valid: %s and %d more", Quoted(valid[:mostListed]), more)
	}
	return "valid: " + Quoted(valid)
}

const (
	mostListed   = 100 // names that are listed: a file may have any number of them
	mostCompared = 100 // bytes of a name that others are compared with: that takes time with the product of their lengths
)

// Nearest returns the valid name that a misspelt one is near to: at most one third of its letters differ, two swapped
// letters count as one, case and the choice of - or _ as none; or one of the two is the beginning of the other.
func Nearest(name string, valid []string) (string, bool) {
	best, distance := "", 0
	if len(name) > mostCompared {
		return "", false
	}
	a := plainName(name)
	for _, v := range valid {
		if len(v) > mostCompared {
			continue
		}
		b := plainName(v)
		limit := max(1, max(len(a), len(b))/3)
		d := editDistance(a, b)
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
			if a[:i] == b[:i] && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
				return min(1, levenshtein.ComputeDistance(a, b))
			}
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

// Quoted lists names in double quotes.
func Quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
