package data

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// A table in Latin-1 is an error with the line and the byte, in the line of names as in others.
func TestATableOfAnotherEncodingIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"a,class\n1,x\n2,gro\xdf\n": "a line after line 2: has another encoding than UTF-8: got the byte 0xdf",
		"a,gro\xdf\n1,x\n":          "the first line: has another encoding than UTF-8: got the byte 0xdf",
	} {
		path := filepath.Join(t.TempDir(), "a.csv")
		write(t, "", path, text)
		f := &Files{Kind: "csv", File: path, Labels: "class", Columns: ColumnNames{ImagesColumn: {"a"}}}
		if _, err := Load(context.Background(), f, Dirs{}, f.need()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "iconv") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
