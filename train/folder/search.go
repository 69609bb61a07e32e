package folder

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// searchDepth bounds [Search]: DIR/SWEEP/trials/ID has depth 3.
const searchDepth = 4

// Search calls leaf for a folder and for its sub-folders, in the order of their names, numbers by their size. It does not enter
// folders for which leaf is true, hidden ones, and those that are being created.
func Search(dir string, leaf func(path string) bool) { search(dir, searchDepth, leaf) }

func search(dir string, depth int, leaf func(path string) bool) {
	if leaf(dir) || depth == 0 {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return byNumber(a.Name(), b.Name()) })
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.Contains(e.Name(), Unfinished) {
			search(filepath.Join(dir, e.Name()), depth-1, leaf)
		}
	}
}

// byNumber compares names: small, small-2, small-10.
func byNumber(a, b string) int {
	nameA, a1 := Numbered(a)
	nameB, b1 := Numbered(b)
	return cmp.Or(strings.Compare(nameA, nameB), cmp.Compare(a1, b1), strings.Compare(a, b))
}

// Numbered splits the name of a further run of a model, such as small-2, into the name and the number; 0 of other names.
func Numbered(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i], n
		}
	}
	return name, 0
}
