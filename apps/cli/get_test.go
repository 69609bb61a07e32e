package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A packed run is the same model on another machine, from a folder and from a web server, and nothing but it is accepted.
func TestAReleaseIsTheModelsThatWerePacked(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.base]
dataset = { name = "bars", count = 120 }
encoder = [{ kind = "dense", units = 12, activation = "relu" }]
train   = { epochs = 3 }

[model.next]
extends = "base"
start   = "base"
`)
	b.must(0, "train", "base")
	pack := []string{"pack", "runs/base", "-o", "release", "--licence", "CC0-1.0", "--limits", "It knows bars only."}
	b.must(0, pack...)
	first := b.read("release/base.tar.gz")
	b.must(0, pack...)
	expect.Equal(t, b.read("release/base.tar.gz"), first, "the same run gave another archive")
	b.contains("the description", b.read("release/base.md"), "# base", "CC0-1.0", "It knows bars only.", "mse", "seed 1")
	b.contains("the list", b.must(0, "get", "--from", "release").stdout, "base")

	server := httptest.NewServer(http.FileServer(http.Dir(b.path("release"))))
	t.Cleanup(server.Close)
	b.must(0, "get", "base", "--from", server.URL, "-o", "fetched")
	for _, file := range []string{"model.safetensors", "config.toml"} {
		expect.Equal(t, b.read("fetched/"+file), b.read("runs/base/"+file), file)
	}
	if got, want := b.must(0, "eval", "fetched", "--json").stdout, b.must(0, "eval", "runs/base", "--json").stdout; field(got, `"mse"`) != field(want, `"mse"`) {
		t.Errorf("got %s, want %s", got, want)
	}
	b.contains("what resume says", b.must(6, "resume", "fetched").stderr, "state.safetensors")
	b.contains("an existing run", b.must(2, "get", "base", "--from", server.URL).stderr, "runs/base")
	fatal.If(t, os.RemoveAll(b.path("runs/base")))
	b.contains("without the run", b.must(3, "train", "next").stderr, "runs/base")
	b.must(0, "get", "base", "--from", "release")
	b.must(0, "train", "next")

	b.contains("a misspelt name", b.must(2, "get", "bsae", "--from", "release").stderr, `did you mean "base"?`)
	b.contains("no release", b.must(2, "get", "base").stderr, "TESSERA_MODELS")
	b.contains("a wrong address", b.must(4, "get", "base", "--from", server.URL+"/nothing").stderr, "404")
	b.contains("a wrong folder", b.must(4, "get", "--from", "nowhere").stderr, "nowhere", "tessera pack")
	sums := b.read("release/SHA256SUMS")
	for what, damage := range map[string]func(){
		"another archive": func() { b.write("release/base.tar.gz", first[:len(first)-1]+"x") },
		"no checksums":    func() { b.write("release/SHA256SUMS", "base.tar.gz\n") },
	} {
		damage()
		r := b.must(4, "get", "base", "--from", "release", "-o", "bad")
		b.contains(what, r.stderr, "release/")
		if left, _ := filepath.Glob(b.path("*bad*")); len(left) > 0 {
			t.Errorf("%s leaves %q", what, left)
		}
		b.write("release/base.tar.gz", first)
		b.write("release/SHA256SUMS", sums)
	}
}

// field returns the line of a JSON text that has a key.
func field(text, key string) string {
	_, after, _ := strings.Cut(text, key)
	line, _, _ := strings.Cut(after, "\n")
	return line
}
