// Package language checks that the project's texts use the terms of the field.
package language

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// word is an expression that readers stumble over, and what to write instead.
type word struct {
	found   *regexp.Regexp
	instead string
}

func avoid(pattern, instead string) word {
	return word{regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead}
}

// words are checked in every text: documents, declarations, comments, messages and names of Go files.
var words = []word{
	avoid(`mistakes?`, "error, invalid value"),
	avoid(`anew`, "again, from scratch"),
	avoid(`(?-i:go(es)? on|going on|went on)`, "resumes, continues"),
	avoid(`(is|are|be|been|was|were) told`, "is reported, is given"),
	avoid(`so many`, "the number itself: n images, k epochs"),
	avoid(`of (its|their|our|your|ours|one's) own|of ours`, "its own X, or leave it out"),
	avoid(`would else|should else`, "would otherwise"),
	avoid(`looks? (at|in) all (the )?(images|codes)|from look to look|at every look|looks in one iteration`, "evaluates the full-batch objective; evaluation"),
	avoid(`says? nothing`, "is empty, is silent; name what is missing"),
	avoid(`slip of the keyboard`, "typo"),
	avoid(`houses?|treat(y|ies)|rooms?`, "package, folder, rule"),
	avoid(`front door`, "root package"),
	avoid(`to be had`, "available"),
	avoid(`length and rhythm`, "training schedule"),
	avoid(`in (the )?hands? of|in hand`, "owned by; current"),
	avoid(`who stands`, "a process in that directory"),
}

// texts lists the files that people read, relative to the root. Reference texts of other authors are left out.
func texts(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "runs" || base == "sweeps") {
				return filepath.SkipDir
			}
			return nil
		}
		slash := filepath.ToSlash(name)
		if skipped(slash) {
			return nil
		}
		if slices.Contains([]string{".go", ".md", ".toml"}, filepath.Ext(base)) || base == "Makefile" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("found only %d files", len(files))
	}
	return files
}

// skipped reports whether a file is not checked: this one, the tests of table, whose example language has houses and rooms,
// and generated pages.
func skipped(name string) bool {
	return name == root+"/internal/language/words_test.go" ||
		strings.HasPrefix(name, root+"/table/") && strings.HasSuffix(name, "_test.go") ||
		strings.HasPrefix(name, root+"/docs/reproduction/") && strings.HasSuffix(name, "/README.md")
}

func TestTextsUseTheTermsOfTheField(t *testing.T) {
	for _, name := range texts(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, w := range words {
				if found := w.found.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: write %s\n\t%s", filepath.ToSlash(strings.TrimPrefix(name, root+"/")), i+1, found, w.instead, strings.TrimSpace(line))
				}
			}
		}
	}
}

// A merge that was not finished leaves lines that begin with such marks.
func TestNoTextHasMarksOfAMerge(t *testing.T) {
	for _, name := range texts(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, strings.Repeat("<", 7)) || strings.HasPrefix(line, strings.Repeat(">", 7)) {
				t.Errorf("%s:%d: %s", filepath.ToSlash(strings.TrimPrefix(name, root+"/")), i+1, line)
			}
		}
	}
}

func TestWordsAreFound(t *testing.T) {
	for _, line := range []string{"all Mistakes of a file", "the run goes on", "it is told", "written anew", "so many epochs", "an op of its own",
		"most looks in one iteration", "probably a slip of the keyboard", "the front door"} {
		if !slices.ContainsFunc(words, func(w word) bool { return w.found.MatchString(line) }) {
			t.Errorf("%q is not found", line)
		}
	}
	for _, line := range []string{"an error of the file", "the run resumes", "such as these", "roommate"} {
		for _, w := range words {
			if found := w.found.FindString(line); found != "" {
				t.Errorf("%q: %q is found", line, found)
			}
		}
	}
}
