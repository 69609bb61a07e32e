package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const root = ".."

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	target  = regexp.MustCompile(`\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the anchors of the headings of a page, in GitHub's form.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(target.ReplaceAllString(h[1], "]")), "")
		name = strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
		unique := name
		for n := 1; found[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		found[unique] = true
	}
	return found
}

// broken returns the links of a page in the given folder whose file or heading does not exist.
func broken(folder, page string) []string {
	var wrong []string
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(name, "://") {
			continue
		}
		text := page
		if name != "" {
			path := filepath.Join(folder, filepath.FromSlash(name))
			info, err := os.Stat(path)
			if err != nil {
				wrong = append(wrong, m[1])
				continue
			}
			if info.IsDir() || anchor == "" {
				continue
			}
			read, err := os.ReadFile(path)
			if err != nil {
				wrong = append(wrong, m[1])
				continue
			}
			text = string(read)
		}
		if anchor != "" && !anchors(text)[anchor] {
			wrong = append(wrong, m[1])
		}
	}
	return wrong
}

// pages lists the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "runs" || base == "sweeps") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) == ".md" {
			files = append(files, name)
		}
		return nil
	})
	fatal.If(t, err)
	if len(files) < 20 {
		t.Fatalf("found only %d pages", len(files))
	}
	return files
}

func TestLinksLeadToFilesAndHeadings(t *testing.T) {
	for _, name := range pages(t) {
		text, err := os.ReadFile(name)
		fatal.If(t, err)
		for _, l := range broken(filepath.Dir(name), string(text)) {
			t.Errorf("%s: the link %s leads nowhere", filepath.ToSlash(strings.TrimPrefix(name, root+"/")), l)
		}
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	page := "# A page\n## `kl`: its *key*\n## A page\n[a](#a-page) [b](#a-page-1) [c](#kl-its-key) [d](docs.go) [e](https://go.dev/x)\n"
	expect.Equal(t, len(broken(".", page)), 0, "broken")
	page += "```\n# code\n[x](none.md)\n```\n[f](#a-page-2) [g](none.md) [h](#code)\n"
	expect.Equal(t, fmt.Sprint(broken(".", page)), "[#a-page-2 none.md #code]", "broken")
}
