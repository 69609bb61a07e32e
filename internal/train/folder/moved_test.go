//go:build unix

package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The lock belongs to the folder that was opened. Another folder at the same path must not be written.
func TestAFolderThatTookThePlaceOfARunIsNotWritten(t *testing.T) {
	run, other := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "other")
	f, err := Create(run, false, OS{}, File{Name: Config, Data: []byte("mine")})
	fatal.If(t, err)
	defer f.Close()
	second, err := Create(other, false, OS{}, File{Name: Config, Data: []byte("foreign")})
	fatal.If(t, err)
	fatal.If(t, errors.Join(f.Write(File{Name: Model, Data: []byte("mine")}), second.Close(), os.Rename(run, run+"-away"), os.Rename(other, run)))
	for what, err := range map[string]error{"write": f.Write(File{Name: Model, Data: []byte("x")}), "append": f.Append([]byte("{}")), "remove": f.Remove(Config)} {
		expect.Is(t, err, ErrMoved, what)
		expect.As[*WriteError](t, err, "", what)
	}
	entries, err := os.ReadDir(run)
	if text, _ := os.ReadFile(filepath.Join(run, Config)); err != nil || len(entries) != 1 || string(text) != "foreign" {
		t.Errorf("the other folder holds %v, %q", entries, text)
	}
}
