package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"tessera/apps/show/doc"
)

type streams interface {
	OutOrStdout() io.Writer
	ErrOrStderr() io.Writer
}

// Show prints the document that a command reports: as JSON, or as text that fits the terminal. Hints and warnings go to the error output.
func (c *Call) Show(d *doc.Document, asJSON bool) error { return answer(c, d, asJSON) }

// answer prints the document that a command reports: as JSON, or as text that fits the terminal. Hints and warnings go to standard
// error, so that results can be piped.
func answer(to streams, d *doc.Document, asJSON bool) error {
	notes, rest := notes(d)
	out := to.OutOrStdout()
	err := error(nil)
	if asJSON {
		err = d.JSON(out)
	} else {
		on := screenOf(out)
		if on.Colour { // past the output that spells out control characters; a document does so itself
			out = terminalOf(out)
		}
		err = rest.Text(out, on)
	}
	for _, n := range notes {
		complain(to.ErrOrStderr(), n.Level, "tessera: "+string(n.Level)+": "+n.Text)
	}
	return err
}

// tell prints lines that a command reports.
func (c *Call) tell(lines ...string) error {
	d := &doc.Document{}
	for _, line := range lines {
		d.Add(doc.Remark("%s", line))
	}
	return c.Show(d, false)
}

// wrote prints the path of a file that the command has written.
func (c *Call) wrote(path string) error {
	_, err := fmt.Fprintln(c.OutOrStdout(), path) // in one line, also where that is longer than the screen
	return err
}

// say prints a message about what the command does to the error output.
func (c *Call) say(format string, args ...any) {
	complain(c.ErrOrStderr(), doc.Info, "tessera: "+fmt.Sprintf(format, args...))
}

// notes separates the hints and warnings of a document from what it reports.
func notes(d *doc.Document) (notes []*doc.Note, rest *doc.Document) {
	rest = &doc.Document{Title: d.Title}
	for _, b := range d.Blocks {
		if n, ok := b.(*doc.Note); ok && n.Level != doc.Info {
			notes = append(notes, n)
		} else {
			rest.Blocks = append(rest.Blocks, b)
		}
	}
	return notes, rest
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
	text = worded(text)
	if screenOf(out).Colour {
		out, text = terminalOf(out), marks.ReplaceAllStringFunc(spelled(text), func(mark string) string { return doc.Styled(level, mark, true) })
	}
	_, _ = io.WriteString(out, text+"\n") // where messages cannot be printed, no message can say so
}
