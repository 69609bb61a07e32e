package config

import (
	"fmt"
	"strings"
	"testing"
)

// Twice as many models take twice the work, not four times: each is merged and checked once.
func TestTheWorkGrowsWithTheNumberOfModels(t *testing.T) {
	for name, one := range map[string]func(i, n int) string{
		"models":          func(i, _ int) string { return "encoder = [{ kind = \"dense\", units = 3 }]\n" },
		"chain":           func(i, n int) string { return chained(i-1, i == 0) },
		"backwards chain": func(i, n int) string { return chained(i+1, i == n-1) },
		"pairs":           func(i, _ int) string { return chained(i^1, false) },
		"broken":          func(i, _ int) string { return "encoder = [{ kind = \"dense\", unitz = 3 }]\n" },
	} {
		work := func(n int) float64 {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "[model.m%d]\n%s", i, one(i, n))
			}
			return testing.AllocsPerRun(1, func() {
				f, err := Load("models.toml", []byte(b.String()))
				if err != nil {
					t.Fatal(err)
				}
				_ = f.Check()
			})
		}
		if few, many := work(250), work(500); many > 2.5*few {
			t.Errorf("%s: %g allocations for 250 models, %g for 500", name, few, many)
		}
	}
}

func chained(parent int, last bool) string {
	if last {
		return "encoder = [{ kind = \"dense\", units = 3 }]\n"
	}
	return fmt.Sprintf("extends = \"m%d\"\n", parent)
}
