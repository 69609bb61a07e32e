package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// While a folder is created, its temporary name is longer. The temporary name must not exceed the limit of the file system.
func TestAFolderMayHaveTheLongestNameOfAFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	for _, force := range []bool{false, true} {
		f, err := Create(path, force, OS{}, File{Name: Config})
		fatal.If(t, err)
		fatal.If(t, f.Close())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("%q is left over", left)
	}
}

func TestASearchGoesByNumbersAndLeavesHiddenFoldersOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"small-10", "small-2", "small", ".hidden", "x" + Unfinished + "-1", "sweep/trials/a", "a/b/c/d/deep"} {
		fatal.If(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	var seen []string
	Search(dir, func(path string) bool {
		name, _ := filepath.Rel(dir, path)
		seen = append(seen, filepath.ToSlash(name))
		return name == "sweep"
	})
	expect.Slice(t, seen, []string{".", "a", "a/b", "a/b/c", "a/b/c/d", "small", "small-2", "small-10", "sweep"})
}
