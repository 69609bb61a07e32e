package text

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// A vocabulary is known by all of its files: other merges give other tokens.
func TestTheMergesOfAVocabularyAreRecorded(t *testing.T) {
	var d struct {
		Model struct {
			Vocab  json.RawMessage
			Merges [][]string
		}
	}
	whole, err := os.ReadFile("../../internal/tokens/testdata/tokenizer.json")
	fatal.If(t, err)
	fatal.If(t, json.Unmarshal(whole, &d))
	dir := t.TempDir()
	write := func(name, text string) { fatal.If(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("t.txt", "the moon and the sun")
	write("vocab.json", string(d.Model.Vocab))
	s := &Sequences{Texts: Texts{File: filepath.Join(dir, "t.txt")}, Length: 8, Tokens: "bpe", Tokenizer: filepath.Join(dir, "vocab.json")}
	load := func(merges [][]string) *data.Set {
		write("merges.txt", strings.Join(lists.Map(merges, func(pair []string) string { return strings.Join(pair, " ") }), "\n"))
		set, err := s.Load(t.Context(), nil, data.Need{Train: true})
		fatal.If(t, err)
		return set
	}
	all, none := load(d.Model.Merges), load(nil)
	expect.Equal(t, len(all.Files), 3, all.Files)
	expect.Equal(t, none.Files[1], all.Files[1], "vocab.json")
	expect.Equal(t, none.Files[2].SHA256 != all.Files[2].SHA256, true, "merges.txt")
	expect.Equal(t, none.Train.Len() > all.Train.Len(), true, "a token for each byte")
}
