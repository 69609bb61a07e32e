package comparison

import (
	"fmt"
	"strings"

	"tessera/config"
)

// Line is one line of a declaration with every default written out.
type Line struct {
	Text       string
	Key, Value string // "loss.0.weight" and its value as TOML; both "" in headers and empty lines
	Default    bool   // without the line, the declaration says the same
	Header     bool
}

// Declaration writes a model and marks the defaults.
func Declaration(m *config.Model) (list []Line) {
	lines := strings.SplitAfter(strings.TrimRight(string(config.Fill(m)), "\n"), "\n")
	same := func(text string) bool {
		file, err := config.Load(m.Name, []byte(text))
		if err != nil {
			return false
		}
		other, err := file.Model(m.Name)
		return err == nil && len(config.Differences(m, other)) == 0
	}
	readable := same(strings.Join(lines, "")) // not if the images came from a Go program
	model, table, counts := "", "", map[string]int{}
	for i, text := range lines {
		line := Line{Text: text, Header: strings.HasPrefix(text, "[")}
		key, value, assigns := strings.Cut(strings.TrimSpace(text), " = ")
		switch {
		case line.Header:
			table = strings.Trim(strings.TrimSpace(text), "[]") + "."
			if model == "" {
				model = table // the first header is that of the model
			}
			table = strings.TrimPrefix(table, model)
			if strings.HasPrefix(text, "[[") {
				counts[table]++
				table += fmt.Sprint(counts[table]-1) + "."
			}
		case assigns:
			line.Key, line.Value = table+strings.TrimSpace(key), strings.TrimSpace(value)
			line.Default = readable && same(strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""))
		}
		list = append(list, line)
	}
	return list
}
