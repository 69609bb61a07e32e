package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// satisfies reports whether v is among the values that a `want` tag describes: "> 0", ">= 0", "< 1", "<= 1", "in (0,1)"
// and the same with square brackets for ends that are included. The empty tag takes every number but NaN. Infinities
// satisfy no tag.
func satisfies(want string, v float64) (bool, error) {
	if want == "" {
		return !math.IsNaN(v), nil
	}
	if math.IsInf(v, 0) {
		return false, nil
	}
	operator, rest, ok := strings.Cut(want, " ")
	if !ok {
		return false, fmt.Errorf("malformed want %q", want)
	}
	if operator == "in" {
		return within(rest, v)
	}
	limit, err := strconv.ParseFloat(rest, 64)
	if err != nil {
		return false, fmt.Errorf("malformed want %q", want)
	}
	switch operator {
	case ">":
		return v > limit, nil
	case ">=":
		return v >= limit, nil
	case "<":
		return v < limit, nil
	case "<=":
		return v <= limit, nil
	}
	return false, fmt.Errorf("malformed want %q", want)
}

// within reports whether v lies in an interval such as "[0,1)".
func within(interval string, v float64) (bool, error) {
	malformed := fmt.Errorf("malformed want \"in %s\"", interval)
	if len(interval) < 2 {
		return false, malformed
	}
	open, end := interval[0], interval[len(interval)-1]
	low, high, ok := strings.Cut(interval[1:len(interval)-1], ",")
	if !ok || !strings.ContainsRune("([", rune(open)) || !strings.ContainsRune(")]", rune(end)) {
		return false, malformed
	}
	a, errA := strconv.ParseFloat(strings.TrimSpace(low), 64)
	b, errB := strconv.ParseFloat(strings.TrimSpace(high), 64)
	if errA != nil || errB != nil {
		return false, malformed
	}
	return (v > a || open == '[' && v == a) && (v < b || end == ']' && v == b), nil
}
