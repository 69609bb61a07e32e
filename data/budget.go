package data

import (
	"fmt"

	"tessera/internal/numeral"
)

// Budget is the key memory: a number of bytes as text, such as "2GB", in units of 1000 (KB, MB, GB, TB) or 1024 (KiB, MiB, GiB, TiB).
// 0 is no budget.
type Budget int64

// LeastBudget is the smallest budget.
const LeastBudget = 1 << 16

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
	size, ok := numeral.ParseBytes(text)
	if !ok || size < 1 {
		return wrong
	}
	*b = Budget(size)
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
	return numeral.ExactBytes(int64(b))
}
