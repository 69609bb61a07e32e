package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is an output in which control characters are spelled out: names and messages can hold what a file says, and a terminal would
// obey it. Its Write takes whole characters.
type visible struct{ io.Writer }

// Write implements [io.Writer].
func (v visible) Write(p []byte) (int, error) {
	text := string(p)
	if shown := spelled(text); shown != text {
		if _, err := io.WriteString(v.Writer, shown); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return v.Writer.Write(p)
}

// file is the file that an output writes to, nil where there is none: for live lines, which move the cursor. Their texts are [spelled].
func file(out io.Writer) *os.File {
	if v, ok := out.(visible); ok {
		out = v.Writer
	}
	f, _ := out.(*os.File)
	return f
}

// spelled writes control characters other than line feed and tab as \u001b, as TOML and JSON do, and bytes that are no UTF-8 as \x9b.
// Marks that turn the direction of writing count too.
func spelled(text string) string {
	harmless := func(r rune) bool { return r == '\n' || r == '\t' || !unicode.In(r, unicode.Cc, unicode.Bidi_Control) }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case harmless(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
