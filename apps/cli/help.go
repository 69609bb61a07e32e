package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the largest length of a line of help.
const helpWidth = 100

// wrapHelp wraps the help of a command and of its sub-commands. Line breaks inside a paragraph have no meaning.
func wrapHelp(cmd *cobra.Command) {
	if cmd.Runnable() || cmd.HasSubCommands() { // topics are wrapped already
		cmd.Long = wrapped(cmd.Long, helpWidth)
	}
	for _, sub := range cmd.Commands() {
		wrapHelp(sub)
	}
}

// wrapped fills the paragraphs of a text. A line that begins with a space belongs to a table: it is not joined with others.
func wrapped(text string, width int) string {
	var out []string
	joins := false
	for line := range strings.SplitSeq(text, "\n") {
		if joins && line != "" && line[0] != ' ' {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		joins = line != "" && line[0] != ' '
	}
	for i, line := range out {
		out[i] = folded(line, width)
	}
	return strings.Join(out, "\n")
}

// entry matches the beginning of a line of a table, up to its last column.
var entry = regexp.MustCompile(`^ +(\S+ {2,})*`)

// folded breaks a line between words. What follows is indented like the last column of a table.
func folded(line string, width int) string {
	indent := "\n" + strings.Repeat(" ", len(entry.FindString(line)))
	begin := len(indent) - 1
	var b strings.Builder
	length := begin
	b.WriteString(line[:begin])
	for i, word := range strings.Fields(line[begin:]) {
		switch {
		case i == 0:
		case length+1+len(word) > width:
			b.WriteString(indent)
			length = begin
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String()
}
