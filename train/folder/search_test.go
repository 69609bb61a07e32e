package folder

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestASearchGoesByNumbersAndLeavesHiddenFoldersOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"small-10", "small-2", "small", ".hidden", "x" + Unfinished + "-1", "sweep/trials/a", "a/b/c/d/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	Search(dir, func(path string) bool {
		name, _ := filepath.Rel(dir, path)
		seen = append(seen, filepath.ToSlash(name))
		return name == "sweep"
	})
	if want := []string{".", "a", "a/b", "a/b/c", "a/b/c/d", "small", "small-2", "small-10", "sweep"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
