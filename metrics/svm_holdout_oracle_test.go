package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
)

// The expected accuracies are those of scikit-learn on the same codes and splits, computed by testdata/svm_holdout.py: with
// scaled units, a dead unit, the grid of C, and the accuracy on the held-out codes.
func TestHeldOutAccuracyEqualsScikitLearns(t *testing.T) {
	text, err := os.ReadFile("testdata/svm_holdout.json")
	fatal.If(t, err)
	var cases []struct {
		Units                       int
		Scale                       bool
		Codes                       []float32
		Labels                      []int
		Fitted, Held, Inner, Chosen []int
		Grid                        []float64
		Best                        int
		Accuracy                    float64
	}
	fatal.If(t, json.Unmarshal(text, &cases))
	for i, c := range cases {
		p, err := fit.Of("svm", c.Codes, c.Units, c.Labels)
		fatal.If(t, err)
		accuracy, onGrid, best, err := holdout{c.Fitted, c.Held, c.Inner, c.Chosen}.classify(context.Background(), p, c.Scale)
		fatal.If(t, err)
		for j, want := range c.Grid {
			within1e6(t, fmt.Sprintf("case %d: accuracy with C %g", i, holdoutGrid()[j]), onGrid[j], want)
		}
		expect.Equal(t, best, c.Best, "case", i, "the C of index")
		within1e6(t, fmt.Sprintf("case %d: accuracy", i), accuracy, c.Accuracy)
	}
}
