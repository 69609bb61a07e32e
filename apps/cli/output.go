package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"tessera/internal/train/folder"
	"tessera/metrics"
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

// commandLines lists the sub-commands of a command.
func commandLines(cmd *cobra.Command, width int) string {
	var rows [][]string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			rows = append(rows, []string{"  " + sub.Name(), sub.Short})
		}
	}
	return inColumns(rows, width)
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
	p := &columnPrinter{width: width}
	begin := entry.FindString(line)
	p.write(begin)
	p.fold(line[len(begin):], len(begin))
	return p.b.String()
}

// visible is an output that writes control characters as visible text: names and messages can contain texts of files, and a terminal
// would execute control characters in them. Each call of Write must contain whole characters.
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

// file returns the file that an output writes to, nil if there is none. Live lines, which move the cursor, are written to it directly;
// their texts pass through [spelled].
func file(out io.Writer) *os.File {
	if v, ok := out.(visible); ok {
		out = v.Writer
	}
	f, _ := out.(*os.File)
	return f
}

// spelled writes control characters other than line feed and tab as \u001b, as TOML and JSON do, and bytes that are not UTF-8 as
// \x9b. Marks that change the direction of writing count as control characters.
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

// inLine spells out the line feeds and tabs of a name, which would break a line or a table.
func inLine(name string) string {
	return strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(name)
}

// valueText prints the named value, "-" if it is not applicable or was not measured.
func valueText(values metrics.Values, name string) string {
	v, ok := values.Number(name)
	if !ok {
		return "-"
	}
	if m, _ := metrics.MeasureOf(name); m.Count {
		return fmt.Sprint(int(v))
	}
	return number(v)
}

func digits(n int) int { return len(fmt.Sprint(n)) }

// number prints a value with four significant digits.
func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// longest is the duration above which durations are not printed exactly.
const longest = 100 * 365 * 24 * time.Hour

// duration formats a duration: whole seconds, or tenths of a second below ten seconds.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	if d >= longest {
		return "over 100 years"
	}
	return d.Round(time.Second).String()
}

// counted returns a number with a noun: "1 model", "2 models".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printJSON prints one document.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// shapeText prints a shape as 28x28.
func shapeText(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}

// thousands prints 157684 as 157,684.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

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

// cells joins lists of texts into a row.
func cells(lists ...[]string) []any {
	var row []any
	for _, text := range slices.Concat(lists...) {
		row = append(row, text)
	}
	return row
}
