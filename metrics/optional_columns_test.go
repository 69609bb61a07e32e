package metrics

import (
	"fmt"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A glob that matches metrics of groups does not ask for groups that a data set lacks.
func TestMatchesOfAGlobReadColumnsThatThereAre(t *testing.T) {
	for _, c := range []struct{ name, credit, bars string }{{"selection_rate_g*", "[group]", "[]"}, {"fairness", "[group]", "[group]"}} {
		chosen, err := Select(c.name)
		fatal.If(t, err)
		expect.Equal(t, fmt.Sprint(ColumnsOf(chosen, &data.Credit{})), c.credit)
		expect.Equal(t, fmt.Sprint(ColumnsOf(chosen, &data.Bars{})), c.bars)
	}
}
