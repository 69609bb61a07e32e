package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	declared "tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// ends are the smallest and the largest numbers of a column.
type ends struct{ low, high end }

// ends returns those of each value of a sample of a column with values in memory, missing entries left out.
func (v *Values) ends() []ends {
	list := lists.Of(v.Size(), func(int) ends { return newEnds() })
	for i := range max(len(v.floats), len(v.whole)) {
		if x := v.at(i); x == x {
			list[i%len(list)].add(float64(x))
		}
	}
	return list
}

// end is an end of a column: its value and the next one; of the largest values the negative.
type end struct {
	value, next float64
	times       int // of value
}

func newEnds() ends {
	last := end{value: math.Inf(1), next: math.Inf(1)}
	return ends{last, last}
}

func (e *ends) add(v float64) {
	e.low.add(v)
	e.high.add(-v)
}

func (e *end) add(v float64) {
	switch {
	case v < e.value:
		*e = end{v, e.value, 1}
	case v == e.value:
		e.times++
	case v < e.next:
		e.next = v
	}
}

// far reports whether the value has the digit 9 alone, or is negative unlike all others, is repeated, and farther from the next one than all others, up to
// top, are from each other.
func (e end) far(top float64) bool {
	nines := strings.Trim(numberText(e.value), "-9.") == ""
	alone := nines && e.value <= -99 && e.next >= 0 // one cell suffices
	return (e.times >= 3 || alone) && (nines || e.value < 0 && e.next >= 0) && top > e.next && e.next-e.value > top-e.next
}

// sentinels returns the values that may mean a missing one, and the range of the others: -1 beside numbers >= 0 that are no classes, and repeated values
// far from all others.
func (e ends) sentinels() (values []float64, low, high float64) {
	low, high = e.low.value, -e.high.value
	if e.high.far(-e.low.value) || e.low.far(-e.high.next) && e.high.far(-e.low.next) {
		values, high = append(values, high), -e.high.next
	}
	if e.low.far(high) || e.low.value == -1 && e.low.times >= 3 && e.low.next >= 0 && high > mostClasses {
		values, low = append(values, low), e.low.next
	}
	return values, low, high
}

// sentinelNote returns a warning about the values of columns that may mean a missing one, beside those declared as missing; "" without any.
func sentinelNote(names []string, all []ends, missing Missing) string {
	var found []string
	keys := without(missing, []string{missingNaN})
	for i, e := range all {
		values, low, high := e.sentinels()
		for _, v := range values {
			times := e.low.times
			if v > high {
				times = e.high.times
			}
			text := numberText(v)
			if found = append(found, fmt.Sprintf("%.60q has %s %s, the others are %s to %s", names[i], text, numeral.Of(times, "time"), numeral.Float(low), numeral.Float(high))); !slices.Contains(keys, text) {
				keys = append(keys, text)
			}
		}
	}
	if found == nil {
		return ""
	}
	for i, key := range keys {
		keys[i] = declared.StringText(key)
	}
	if more := len(found) - 3; more > 0 {
		found = append(found[:3], strconv.Itoa(more)+" more")
	}
	return fmt.Sprintf("column %s; if that means a missing entry, write missing = [%s]", strings.Join(found, "; "), strings.Join(keys, ", "))
}
