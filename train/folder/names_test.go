package folder

import (
	"path/filepath"
	"strings"
	"testing"
)

// While a folder is made it has a longer name, which must not be too long for a file system.
func TestAFolderMayHaveTheLongestNameOfAFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	for _, force := range []bool{false, true} {
		f, err := Create(path, force, OS{}, File{Config, nil})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("%q is left over", left)
	}
}
