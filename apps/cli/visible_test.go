package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

func TestControlCharactersAreSpelledOut(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\tβ 漢字\n":             "plain\n\tβ 漢字\n",
		"\x1b[2J\r\a\x00\x7f":         `\u001b[2J\u000d\u0007\u0000\u007f`,
		"C1 \u009b2J \x9b2J":          `C1 \u009b2J \x9b2J`,
		"bidi \u202etxt\u2066 \uFFFD": `bidi \u202etxt\u2066 ` + "\uFFFD",
	} {
		var out bytes.Buffer
		if n, err := (visible{&out}).Write([]byte(text)); err != nil || n != len(text) || out.String() != want {
			t.Errorf("%q: got %q, %d bytes, %v, want %q", text, out.String(), n, err, want)
		}
	}
}

// hostile is a name with control characters that move the cursor, ring the bell and clear the screen if a terminal gets them
// unescaped.
const hostile = "a\x1b[2J\u009b\x07\x7f"

const hostileModels = `
[model.a]
about = "about \u001b[2J\u009b\u0007\u007f"
encoder = [{ kind = "dense", units = 3 }]
train = { epochs = 1 }

[sweep.a]
about = "about \u001b[2J"
model = "a"
seeds = [1, 2]
set.encoder.0.units = [3]
`

func TestNothingThatTheCommandPrintsMovesTheCursor(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", hostileModels)
	b.write("wrong.toml", "[model.wrong]\nencoder = [{ kind = \"\\u001b[2J\" }]\n")
	b.write("binary.toml", "[model.x]\nabout = '\x1b[2J'\n\x00\x1b\x9b\x07")
	b.write("raw.toml", "[model.x]\nabout = 1\x1b[2J\u009b\n")
	for _, c := range []struct{ args, want string }{ // in this order: `resume` needs the run that `train` makes
		{"list models", `about \u001b[2J`},
		{"list models --json", `\u001b`},
		{"list sweeps", `\u001b[2J`},
		{"check", "1 model"},
		{"check binary.toml", "binary.toml:"},
		{"check raw.toml", "raw.toml:2"},
		{"check --fill a", `\u001B[2J`},
		{"summary " + hostile, ""},
		{"train wrong -f wrong.toml", `\x1b[2J`},
		{"train a --out run\x1b[2J", `run\u001b[2J`},
		{"eval run\x1b[2J", ""},
		{"eval none\x1b[2J", `none\u001b[2J`},
		{"sweep a --out s", "2 of 2"},
		{"train \x1b[2J", `\x1b[2J`},
		{"--flag\x1b[2J", `\u001b[2J`},
		{"resume run\x1b[2J", "is finished"},
	} {
		r := b.run(strings.Split(c.args, " ")...)
		text := r.stdout + r.stderr
		if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && c != '\t' && unicode.IsControl(c) }); i >= 0 {
			t.Errorf("tessera %q prints a control character: %q", c.args, text[i:min(i+40, len(text))])
		}
		b.contains("tessera "+c.args, text, c.want)
		if r.code == exitInternal {
			t.Errorf("tessera %q: exit code %d", c.args, r.code)
		}
	}
}
