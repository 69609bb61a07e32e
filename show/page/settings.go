package page

import (
	"strings"

	"tessera/config"
)

// SettingLine is one line of a declaration with every default written out.
type SettingLine struct {
	Text    string
	Default bool // without the line, the declaration says the same
	Header  bool
}

// settingsOf writes a declaration and marks the defaults: a line is one if the declaration without it is the same.
func settingsOf(m *config.Model) []SettingLine {
	text := string(config.Fill(m))
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	same := func(text string) bool {
		file, err := config.Load(m.Name, []byte(text))
		if err != nil {
			return false
		}
		other, err := file.Model(m.Name)
		return err == nil && len(config.Differences(m, other)) == 0
	}
	readable := same(text) // not if the images came from a Go program
	var list []SettingLine
	for i, line := range lines {
		one := SettingLine{Text: line, Header: strings.HasPrefix(line, "[")}
		if readable && !one.Header && strings.Contains(line, "=") {
			one.Default = same(strings.Join(lines[:i], "") + strings.Join(lines[i+1:], ""))
		}
		list = append(list, one)
	}
	return list
}
