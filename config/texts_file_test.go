package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// A child of a model of sequences, and --set, name another text alone: it stays a model of sequences.
func TestAnotherTextKeepsTheKindOfADataSetOfTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.txt")
	fatal.If(t, os.WriteFile(path, []byte("a b c\n"), 0o600))
	const base = `[model.m]
dataset   = { grammar = 50, length = 4, tokens = "bytes", validation = 0 }
encoder   = [{ kind = "embedding", vocabulary = 260, units = 4 }]
decoder   = []
head.next = { from = "encoder.0", layers = [{ kind = "token_dense", units = 260 }] }
loss      = [{ kind = "next_token", on = "next" }]
`
	child := base + "[model.child]\nextends = \"m\"\ndataset = { file = \"" + path + "\" }\n"
	own := base + "[model.own]\nextends = \"m\"\ndataset = { file = \"" + path + "\", unit = \"line\" }\n[model.back]\nextends = \"own\"\ndataset = { grammar = 60 }\n"
	if m := model(t, load(t, own), "back"); m.Dataset.Name != "tokens" || strings.Contains(string(m.Text()), path) {
		t.Errorf("generated texts in place of a file: data set %s:\n%s", m.Dataset.Name, m.Text())
	}
	for name, set := range map[string]string{"m": "dataset.file=" + path, "child": "dataset.length=5"} {
		m := model(t, load(t, child), name, set)
		if text := string(m.Text()); m.Dataset.Name != "tokens" || !strings.Contains(text, path) || strings.Contains(text, "grammar = 50") {
			t.Errorf("%s with %s has the data set %s:\n%s", name, set, m.Dataset.Name, text)
		}
	}
	table := filepath.Join(t.TempDir(), "b.csv")
	fatal.If(t, os.WriteFile(table, []byte("review,kind\na b c,x\nb c,y\n"), 0o600))
	of := strings.Replace(base, `grammar = 50`, `file = "a.csv", text = "review"`, 1)
	if m := model(t, load(t, of), "m", "dataset.file="+table); m.Dataset.Name != "tokens" || !strings.Contains(string(m.Text()), "review") {
		t.Errorf("another table of texts: data set %s:\n%s", m.Dataset.Name, m.Text())
	}
}
