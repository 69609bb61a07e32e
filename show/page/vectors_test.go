package page_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tessera/show/page"
	"tessera/sweep"
)

// sweptVectors runs a small sweep on vectors of a file, with labels.
func sweptVectors(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "class,a,b,c,d\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%g,%g,%g,%g\n", i%2, float64(i%2), float64(i%3)/2, float64(i%5)/4, float64(i%7)/6)
	}
	if err := os.WriteFile(filepath.Join(dir, "v.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ran(t, fmt.Sprintf(`
[model.table]
dataset = { name = "csv", images = %q, labels = "class" }
encoder = [{ kind = "dense", units = 3, activation = "sigmoid" }]
head.class = { from = "code", layers = [{ kind = "dense", units = 2 }] }
loss = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train = { epochs = 2, batch = 20 }
[sweep.tables]
model = "table"
`, filepath.Join(dir, "v.csv")), "tables")
}

// quoted are texts about images and vectors alike: definitions of metrics and terms, settings, scripts and pictures.
var quoted = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<dl class="terms">.*?</dl>|<td class="about">.*?</td>|` +
	`<p class="note">(?:In the formulas |x is ).*?</p>|<pre.*?</pre>|title="[^"]*"|data:image/png|images per second:`)

func TestPagesOfVectorsSpeakOfSamples(t *testing.T) {
	path := sweptVectors(t)
	swept, sweepText := sweepPage(t, path)
	one, err := page.ReadRun(context.Background(), sweep.TrialPath(path, swept.Trials[0].Name), options)
	if err != nil {
		t.Fatal(err)
	}
	var runPage bytes.Buffer
	if err := (&page.Report{Runs: []*page.Run{one}}).Write(&runPage); err != nil {
		t.Fatal(err)
	}
	contains(t, sweepText, "turns a sample into a code", "4 samples of csv that the training held out")
	contains(t, runPage.String(), "turns a sample of 4 values into a code", "Move the slider to see other samples", "4 labelled samples", "by share of samples that use it")
	for what, text := range map[string]string{"sweep": sweepText, "run": runPage.String()} {
		for line := range strings.Lines(quoted.ReplaceAllString(text, "")) {
			if strings.Contains(strings.ToLower(line), "image") {
				t.Errorf("the page of a %s of vectors says %q", what, line)
			}
		}
	}
}
