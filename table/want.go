package table

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// bounds are the values that a `want` tag describes: "> 0", ">= 0", "< 1", "<= 1", "in (0,1)" and the same with square
// brackets for ends that are included. The empty tag takes every number but NaN. Infinities satisfy no tag.
type bounds struct {
	low, high         float64
	openLow, openHigh bool
	infinite          bool
	malformed         error
}

var wants = regexp.MustCompile(`^(>|>=|<|<=) (\S+)$|^in ([\[(])([^,]+),([^,]+)([\])])$`)

func boundsOf(want string) bounds {
	b := bounds{low: math.Inf(-1), high: math.Inf(1), infinite: want == ""}
	m := wants.FindStringSubmatch(want)
	switch {
	case b.infinite:
		return b
	case m == nil:
		b.malformed = fmt.Errorf("malformed want %q", want)
		return b
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			b.malformed = fmt.Errorf("malformed want %q", want)
		}
		return v
	}
	switch m[1] {
	case ">", ">=":
		b.low, b.openLow = number(m[2]), m[1] == ">"
	case "<", "<=":
		b.high, b.openHigh = number(m[2]), m[1] == "<"
	default:
		b.low, b.openLow, b.high, b.openHigh = number(m[4]), m[3] == "(", number(m[5]), m[6] == ")"
	}
	return b
}

// hold reports whether v is among the values.
func (b bounds) hold(v float64) bool {
	return (v > b.low || v == b.low && !b.openLow) && (v < b.high || v == b.high && !b.openHigh) && (b.infinite || !math.IsInf(v, 0)) && b.malformed == nil
}
