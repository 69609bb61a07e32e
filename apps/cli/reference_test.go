package cli

import (
	"fmt"
	"strings"

	"tessera/config/part/table"
)

// reference returns the part of docs/command.md that follows from the tags: each command with its arguments and flags.
func reference() string {
	var b strings.Builder
	for _, e := range Commands.All() {
		flags, args := fieldsOf(e.New())
		fmt.Fprintf(&b, "### %s\n\n`tessera %s%s`: %s.\n", e.Name, e.Name, usageOf(flags, args), e.About)
		if len(flags)+len(args) > 0 {
			b.WriteString("\n| | value | default | meaning |\n| --- | --- | --- | --- |\n")
		}
		for _, f := range args {
			fmt.Fprintf(&b, "| `%s` | %s | | %s |\n", f.Key, wantText(f), inCell(f.Doc))
		}
		for _, f := range flags {
			name := "`--" + flagName(f) + "`"
			if _, letter, ok := strings.Cut(f.Tag.Get("flag"), ","); ok {
				name += ", `-" + letter + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, wantText(f), defaultText(f), inCell(f.Doc))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// wantText describes the values of a flag or an argument: "int > 0", or its choices.
func wantText(f table.Field) string {
	switch c := f.Choices(); {
	case c != nil:
		return "`" + strings.Join(c, "`, `") + "`"
	case kindOf(f) == "bool":
		return ""
	}
	return strings.TrimSuffix(kindOf(f)+" "+f.Want, " ")
}

// defaultText returns the default of a flag, "" if the flag is off or empty without it.
func defaultText(f table.Field) string {
	switch standard := f.Tag.Get("default"); {
	case f.Required:
		return "required"
	case standard != "":
		return inCell(standard)
	case f.Value.IsZero():
		return ""
	}
	return "`" + strings.Join(texts(f), ",") + "`"
}

// inCell returns a text for a cell of a table.
func inCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
