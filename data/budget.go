package data

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Budget is the key memory: a number of bytes as text, such as "2GB", in units of 1000 (KB, MB, GB, TB) or 1024 (KiB, MiB, GiB, TiB).
// 0 is no budget.
type Budget int64

var budgetUnits = []struct {
	name string
	size float64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

const leastBudget = 1 << 16

func (b *Budget) FromTOML(value any) error {
	wrong := fmt.Errorf(`got %s, want bytes as a text, such as "2GB" or "500MiB", at least 64KiB`, valueText(value))
	text, ok := value.(string)
	if value == int64(0) {
		*b = 0
		return nil
	}
	if !ok {
		return wrong
	}
	number, unit := strings.ToUpper(strings.ReplaceAll(text, " ", "")), 0.0
	for _, u := range budgetUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = rest, u.size
			break
		}
	}
	n, ok := parseNumber(number, ".")
	if size := n * unit; !ok || !(size >= 1 && size < math.MaxInt64/2) {
		return wrong
	}
	*b = Budget(math.Round(n * unit))
	return nil
}

func (b Budget) TOML() any {
	if b == 0 {
		return 0
	}
	return b.String()
}

// String returns the largest unit that gives a number without loss.
func (b Budget) String() string {
	text := ""
	for _, u := range budgetUnits {
		n := float64(b) / u.size
		if short := strconv.FormatFloat(n, 'f', -1, 64) + strings.Replace(u.name, "I", "i", 1); n >= 1 && Budget(math.Round(n*u.size)) == b && (text == "" || len(short) < len(text)) {
			text = short
		}
	}
	return text
}
