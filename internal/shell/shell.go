// Package shell writes words for POSIX shells.
package shell

import "strings"

// Word returns a text as one word of a command line, in single quotes if it needs quotes.
func Word(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:,=+@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
