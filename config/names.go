package config

import (
	"fmt"
	"strings"
	"unicode"

	"tessera/part/table"
)

// longestName is the greatest length of a model's or sweep's name in bytes: file systems limit the name of a folder to 255
// bytes, and the second run of a model is in runs/NAME-2.
const longestName = 240

// misnamed reports a name of a model or sweep that cannot be the name of a folder in runs or sweeps. Separators are
// replaced, but some names would lead out of the folder, and others are too long.
func misnamed(what, folder, name string, n *table.Node) []table.Diagnostic {
	d := table.Diagnostic{At: n.Key, Subject: table.Subject(what, name)}
	switch {
	case name == "", name == ".", name == "..":
		d.Suggestion, d.Problem = "give it another name", fmt.Sprintf("invalid name %[2]q of a %[1]s: its folder is %[3]s/NAME", what, name, folder)
	case strings.ContainsFunc(name, unicode.IsControl):
		d.Suggestion, d.Problem = "give it another name", fmt.Sprintf("invalid name %q of a %s: it contains a control character", name, what)
	case len(name) > longestName:
		d.Suggestion, d.Problem = "give it a shorter name", fmt.Sprintf("the name of the %s is too long (got %d bytes, want at most %d): its folder is %s/NAME", what, len(name), longestName, folder)
	default:
		return nil
	}
	return []table.Diagnostic{d.In(n)}
}
