package tokens

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// tokens.json has what @huggingface/tokenizers 0.2.0 (npm) makes of texts with tokenizer.json: the first 40 merges of GPT-2, the tokens in another order.
func TestTokenizersOfHuggingFaceAreRead(t *testing.T) {
	b, err := os.ReadFile("testdata/tokenizer.json")
	fatal.If(t, err)
	var d declared
	fatal.If(t, json.Unmarshal(b, &d))
	pairs, err := d.pairs()
	fatal.If(t, err)
	dir, merges := t.TempDir(), "#version: 0.2\n"
	for _, p := range pairs {
		merges += p[0] + " " + p[1] + "\n"
	}
	vocab, err := json.Marshal(d.Model.Vocab)
	fatal.If(t, err)
	fatal.If(t, os.WriteFile(filepath.Join(dir, "vocab.json"), vocab, 0o600))
	fatal.If(t, os.WriteFile(filepath.Join(dir, "merges.txt"), []byte(merges), 0o600))
	var cases []struct {
		Text   string
		Tokens []int32
	}
	b, err = os.ReadFile("testdata/tokens.json")
	fatal.If(t, err)
	fatal.If(t, json.Unmarshal(b, &cases))
	for _, path := range []string{"testdata/tokenizer.json", filepath.Join(dir, "vocab.json")} {
		read, err := Read(path)
		fatal.If(t, err)
		b, err := json.Marshal(read)
		fatal.If(t, err)
		kept := &Tokenizer{} // in a run
		fatal.If(t, json.Unmarshal(b, kept))
		for _, c := range cases {
			expect.Slice(t, kept.Encode(c.Text), c.Tokens, path, c.Text)
			expect.Equal(t, read.Decode(c.Tokens), c.Text, path)
		}
		if read.Name(1) != "<|endoftext|>" || read.Texts() != 299 || !read.Exact() {
			t.Errorf("%s: got %d tokens, token 1 is %q", path, read.Texts(), read.Name(1))
		}
	}
	for text := range strings.SplitSeq("\xff\xfe a\x80|\xc3|a \xf0\x9f b", "|") {
		if read, _ := Read("testdata/tokenizer.json"); read.Decode(read.Encode(text)) != text {
			t.Errorf("%q is not given back", text)
		}
	}
}

func TestTokenizersThatAreNotReadAreRefused(t *testing.T) {
	b, err := os.ReadFile("testdata/tokenizer.json")
	fatal.If(t, err)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	for _, c := range [][3]string{
		{`"type":"BPE"`, `"type":"Unigram"`, "want BPE"},
		{`"use_regex":true},"post`, `"use_regex":false},"post`, "pattern of GPT-2"},
		{`"add_prefix_space":false`, `"add_prefix_space":true`, "add_prefix_space"},
		{`"normalizer":null`, `"normalizer":{"type":"NFC"}`, "normalizer"},
		{`"merges":[`, `"merges":[["zz","q"],`, "the vocabulary lacks"},
		{`"merges":[`, `"merges":[["q","z"],`, `merge 0: the vocabulary lacks the token "qz"`},
		{`"merges":[`, `"merges":["q",`, "merge 0"},
		{`"!":`, `"qq":`, "the byte 0x21 has no token"},
		{`"id":1,`, `"id":999999999,`, "got the number 999999999"},
		{`{"version"`, `"version"`, "invalid"},
	} {
		changed := strings.Replace(string(b), c[0], c[1], 1)
		if changed == string(b) {
			t.Fatalf("testdata lacks %s", c[0])
		}
		fatal.If(t, os.WriteFile(path, []byte(changed), 0o600))
		expect.Error(t, expect.Err(Read(path)), c[2], c[1])
	}
}
