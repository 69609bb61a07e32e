package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"tessera/apps/show/doc"
	"tessera/internal/train/folder"
)

// Limits of the line width in characters. If the width of the terminal is unknown, lines have the largest width.
const (
	widest    = 100
	narrowest = 40 // minimum width of lines; narrower terminals wrap them
)

// lineWidth returns the width of a terminal, at most [widest]: the value of $COLUMNS, else the width of the output, else
// widest.
func lineWidth(out io.Writer) int {
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || width < 1 {
		width = pageWidth(out)
	}
	if width < 1 {
		return widest
	}
	return max(narrowest, min(width, widest))
}

// wrapHelp wraps the help of a command and of its sub-commands. Line breaks inside a paragraph have no meaning.
func wrapHelp(cmd *cobra.Command, width int) {
	cmd.Long = wrapped(cmd.Long, width)
	for _, sub := range cmd.Commands() {
		wrapHelp(sub, width)
	}
	if !cmd.HasParent() {
		cobra.AddTemplateFunc("commands", func(cmd *cobra.Command) string { return commandLines(cmd, width) })
		usage := strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", width))
		list := regexp.MustCompile(`(?s)\{\{range \$cmds\}\}\{\{if \(or \.IsAvailableCommand.*?\{\{end\}\}\{\{end\}\}`)
		cmd.SetUsageTemplate(list.ReplaceAllString(usage, "\n{{commands . | trimTrailingWhitespaces}}"))
	}
}

func commandLines(cmd *cobra.Command, width int) string {
	t := &doc.Table{Columns: []doc.Column{{}, {Wrap: true}}}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			t.Row("  "+sub.Name(), sub.Short)
		}
	}
	var b strings.Builder
	_ = (&doc.Document{Blocks: []doc.Block{t}}).Text(&b, doc.Screen{Width: width}) // a builder takes everything
	return b.String()
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
var entry = regexp.MustCompile(`^ +(\S+( \S+)* {2,})*`)

// folded breaks a line between words. Continuation lines are indented like the last column of a table.
func folded(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	begin := entry.FindString(line)
	if utf8.RuneCountInString(begin) > width/2 { // no room for the last column
		begin = line[:len(line)-len(strings.TrimLeft(line, " "))]
	}
	n := utf8.RuneCountInString(begin)
	return begin + strings.Join(doc.Wrap(line[len(begin):], width-n), "\n"+strings.Repeat(" ", n))
}

// visible is an output that writes control characters as visible text: names and messages can contain texts of files, and a terminal
// would execute control characters in them. Each call of Write must contain whole characters.
type visible struct{ io.Writer }

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

// file returns the file that an output writes to, nil if there is none. Live lines, which move the cursor, are written to it directly;
// their texts pass through [spelled].
func file(out io.Writer) *os.File {
	if v, ok := out.(visible); ok {
		out = v.Writer
	}
	f, _ := out.(*os.File)
	return f
}

// spelled spells out what would command a terminal; line feeds and tabs stay.
func spelled(text string) string { return doc.Spelled(text, "\n\t") }

// inLine also spells out the line feeds and tabs of a name, which would break a line.
func inLine(name string) string { return doc.Spelled(name, "") }

func digits(n int) int { return len(fmt.Sprint(n)) }

// terminalOf returns the terminal of an output, nil if the output is not a terminal.
func terminalOf(out io.Writer) *os.File {
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	if f := file(out); f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// pageWidth returns the number of characters in a line of the terminal, 0 if the output is not a terminal.
func pageWidth(out io.Writer) int {
	screen := terminalOf(out)
	if screen == nil {
		return 0
	}
	width, _, err := term.GetSize(int(screen.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// standardOutput is the path of standard output in errors.
const standardOutput = "standard output"

// output is standard output. It stores the first write error, because not every print call checks for errors.
type output struct {
	io.Writer
	err error
}

// Write implements [io.Writer]; its error is a [*folder.WriteError].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &folder.WriteError{Path: standardOutput, Err: err}
		o.err = err
	}
	return n, err
}
