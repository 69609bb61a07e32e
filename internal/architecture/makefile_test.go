package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// go test says little about a pattern without tests, and a target of the Makefile then runs nothing.
func TestEveryTestThatTheMakefileNamesIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	fatal.If(t, err)
	tests := map[string]string{} // by folder, the names of its tests and benchmarks, each in a line
	paths, err := filepath.Glob(filepath.Join(root, "*", "*", "*_test.go"))
	fatal.If(t, err)
	deeper, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "*_test.go"))
	fatal.If(t, err)
	for _, path := range append(paths, deeper...) {
		source, err := os.ReadFile(path)
		fatal.If(t, err)
		for _, f := range regexp.MustCompile(`(?m)^func (Test|Benchmark)\w+`).FindAll(source, -1) {
			tests[filepath.Dir(path)] += strings.TrimPrefix(string(f), "func ") + "\n"
		}
	}
	checked := 0
	for _, line := range regexp.MustCompile(`\$\(GO\) test [^;\n]*`).FindAllString(string(text), -1) {
		folder := regexp.MustCompile(` (\./\S*|\.)( |$)`).FindStringSubmatch(line)
		for _, m := range regexp.MustCompile(` -(?:run|bench) '?([^' ]+)`).FindAllStringSubmatch(line, -1) {
			for _, name := range strings.Split(m[1], "|") {
				name, _, _ = strings.Cut(strings.ReplaceAll(name, "$$", "$"), "/")
				if name == "^$" || name == "." {
					continue
				}
				checked++
				if !regexp.MustCompile("(?m)" + name).MatchString(tests[filepath.Join(root, folder[1])]) {
					t.Errorf("%s: no test of %s matches %q", line, folder[1], name)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names are checked", checked)
	}
}
