package cli

import (
	"io"
	"os"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
	"tessera/apps/show/doc"
)

// show prints the document that a command reports: as JSON, or as text that fits the terminal.
func show(cmd *cobra.Command, d *doc.Document, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return d.JSON(out)
	}
	on := screenOf(out)
	if on.Colour { // past the output that spells out control characters; a document does so itself
		out = terminalOf(out)
	}
	return d.Text(out, on)
}

// screenOf describes an output: the width of a terminal, or of $COLUMNS there, and whether it shows colours. Files and pipes have
// neither. https://no-color.org
func screenOf(out io.Writer) doc.Screen {
	screen := terminalOf(out)
	if screen == nil {
		return doc.Screen{}
	}
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || width < 1 {
		width = pageWidth(out)
	}
	if width > 0 {
		width = max(width, narrowest)
	}
	return doc.Screen{Width: width, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// marks matches what is coloured in a message: its beginning and the carets below a line of a file.
var marks = regexp.MustCompile(`(?m)^(tessera: warning:|tessera: hint:|tessera:|[^ \n]*:\d+:\d+:|[ \t]*\^+)`)

// complain prints an error, a warning or a hint to standard error, in colours on a terminal.
func complain(out io.Writer, level doc.Level, text string) {
	if screenOf(out).Colour {
		out, text = terminalOf(out), marks.ReplaceAllStringFunc(spelled(text), func(mark string) string { return doc.Styled(level, mark, true) })
	}
	_, _ = io.WriteString(out, text+"\n") // where messages cannot be printed, no message can say so
}
