package page_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/apps/show/page"
	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// The numbers of tokens have no pictures and no mean: the page of a model of language has texts and words.
func TestPagesOfSequencesOfTokensHaveTexts(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	fatal.If(t, os.WriteFile(text, []byte(strings.Repeat("the cat sees a dog. a dog hears the cat. the dog sees a cat. ", 30)), 0o600))
	folder := declaredRun(t, fmt.Sprintf(`
dataset   = { file = %q, length = 8, tokens = "words", least = 1, validation = 0 }
encoder   = [{ kind = "embedding", vocabulary = 12, units = 8 }, { kind = "position" }, { kind = "transformer", heads = 2, causal = true }]
decoder   = []
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 12 }] }
loss      = [{ kind = "next_token", on = "next" }]
train     = { epochs = 2, batch = 8 }
`, text))
	r, err := page.ReadRun(t.Context(), folder, options)
	fatal.If(t, err)
	var b strings.Builder
	fatal.If(t, (&page.Report{Runs: []*page.Run{r}}).Write(&b))
	contains(t, b.String(), "Continuations", "beginning of a measured text", "nearest words", "perplexity", `aria-label="Attention"`)
	for _, never := range []string{"Each picture is", "Move the slider"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("the page of sequences of tokens says %q", never)
		}
	}
}

// In a causal model, the first token attends to itself alone, no token to later ones, and the weights of a token have the sum 1.
func TestAttentionOfTextsIsThatOfTheirTokens(t *testing.T) {
	r, err := tessera.Open(declaredRun(t, `
dataset   = { grammar = 40, length = 24, tokens = "words", validation = 0 }
encoder   = [{ kind = "embedding", vocabulary = 147, units = 8 }, { kind = "position" }, { kind = "transformer", heads = 2, causal = true }]
decoder   = []
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 147 }] }
loss      = [{ kind = "next_token", length = "length" }]
train     = { epochs = 1, batch = 8 }
`), tessera.Options{})
	fatal.If(t, err)
	defer r.Close()
	samples, err := r.Sample(t.Context(), data.TestSplit)
	fatal.If(t, err)
	list, err := figures.AttentionOfTexts(t.Context(), r, samples.Images.First(2))
	fatal.If(t, err)
	if len(list) != 2 || len(list[0].Heads) != 2 {
		t.Fatalf("got %d texts, want 2 with 2 heads: %v", len(list), list)
	}
	for _, a := range list {
		if end := len(a.Tokens) - 1; a.Tokens[end] != "<end>" || slices.Contains(a.Tokens[:end], "<pad>") {
			t.Errorf("got the tokens %q, want a text with its end", a.Tokens)
		}
		for h, weights := range a.Heads {
			for i, row := range weights {
				sum := lists.Sum(lists.Map(row[:i+1], func(w float32) float64 { return float64(w) }))
				if math.Abs(sum-1) > 1e-5 || slices.Max(append(row[i+1:], 0)) > 0 {
					t.Errorf("head %d, token %d: got %v, want the sum 1 and no later tokens", h, i, row)
				}
			}
		}
	}
}
