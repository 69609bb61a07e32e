package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/apps/show/page"
	"tessera/internal/fatal"
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
	contains(t, b.String(), "Continuations", "begin of a measured text", "nearest words", "perplexity")
	for _, never := range []string{"Each picture is", "Move the slider"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("the page of sequences of tokens says %q", never)
		}
	}
}
