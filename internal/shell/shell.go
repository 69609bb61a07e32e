// Package shell quotes words for POSIX shells.
package shell

import "tessera/internal/lists"
import "strings"

// Word returns text as one word of a command line. It is in single quotes if necessary.
func Word(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:,=+@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Line returns words as a command line.
func Line(words []string) string {
	quoted := lists.Map(words, Word)
	return strings.Join(quoted, " ")
}
