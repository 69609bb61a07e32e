//go:build unix

package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The lock belongs to the folder that was opened. Another folder at the same path must not be written.
func TestAFolderThatTookThePlaceOfARunIsNotWritten(t *testing.T) {
	run, other := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "other")
	f, err := Create(run, false, OS{}, File{Name: Config, Data: []byte("mine")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second, err := Create(other, false, OS{}, File{Name: Config, Data: []byte("foreign")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(File{Name: Model, Data: []byte("mine")}), second.Close(), os.Rename(run, run+"-away"), os.Rename(other, run)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"write": f.Write(File{Name: Model, Data: []byte("x")}), "append": f.Append([]byte("{}")), "remove": f.Remove(Config)} {
		var unwritten *WriteError
		if !errors.Is(err, ErrMoved) || !errors.As(err, &unwritten) {
			t.Errorf("%s: got %v, want ErrMoved", what, err)
		}
	}
	entries, err := os.ReadDir(run)
	if text, _ := os.ReadFile(filepath.Join(run, Config)); err != nil || len(entries) != 1 || string(text) != "foreign" {
		t.Errorf("the other folder holds %v, %q", entries, text)
	}
}
