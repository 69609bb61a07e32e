package table_test

import (
	"testing"

	"tessera/config/part/table"
	"tessera/internal/expect"
)

// A third of the letters may differ, whatever their number of bytes; of one letter none remains.
func TestNamesOfOtherScriptsAreSimilarByTheirLetters(t *testing.T) {
	for name, want := range map[string]string{"🍎": "", "y": "", "面包屑": "面包", "étoiles": "étoile", "étoole": "étoile", "ночь": ""} {
		got, _ := table.Nearest(name, []string{"星", "x", "面包", "étoile", "день"})
		expect.Equal(t, got, want, "nearest to", name)
	}
}
