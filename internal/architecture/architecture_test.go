// Package architecture checks the import rules of docs/dev/architecture.md.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const (
	module = "tessera"
	root   = "../.."
)

// layout lists the folders from the lowest level to the highest; "." is the root package. A package belongs to the
// longest listed folder that its path begins with. It may import only packages of its own folder and of the lines
// above. Folders on the same line must not import each other.
var layout = [][]string{
	{"internal", "internal/engine/kernel", "docs"},
	{"config/part", "internal/parallel"},
	{"internal/engine"},
	{"data", "attack", "posthoc"},
	{"graph/ops", "internal/fit"},
	{"layers", "losses", "constraints", "optim", "metrics", "data/augment"},
	{"hooks", "classical"},
	{"config"},
	{"graph"},
	{"internal/train"},
	{"laws"},
	{"internal/sweep"},
	{"apps/export", "internal/coder"},
	{"."},
	{"classical/generate", "posthoc/refit", "attack/runs"},
	{"apps/show"},
	{"apps"},
}

// levels maps a folder to its line in layout.
var levels = map[string]int{}

func init() {
	for level, folders := range layout {
		for _, name := range folders {
			levels[name] = level
		}
	}
}

// seesGorgonia lists the folders that may import Gorgonia.
var seesGorgonia = []string{"internal/engine/ir/fromgraph", "graph/ops", "layers", "losses", "graph", "graph/tape", "laws/gradcheck", "laws"}

// goFile is a parsed Go file other than a test.
type goFile struct {
	path   string // "layers/dense.go"
	folder string // "layers"
	syntax *ast.File
	tokens *token.FileSet
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	tokens := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && (base == "testdata" || strings.HasPrefix(base, ".") && name != root) {
			return filepath.SkipDir
		}
		if d.IsDir() && name != root {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return filepath.SkipDir // the folder is another module
			}
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		syntax, err := parser.ParseFile(tokens, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		relative = filepath.ToSlash(relative)
		files = append(files, goFile{relative, path.Dir(relative), syntax, tokens})
		return err
	})
	fatal.If(t, err)
	if len(files) < 50 {
		t.Fatalf("found only %d files", len(files))
	}
	return files
}

// owner returns the listed folder that contains a folder, "" if there is none.
func owner(folder string) string {
	for name := folder; ; name = path.Dir(name) {
		if _, ok := levels[name]; ok && (name != "." || folder == ".") {
			return name
		}
		if name == "." {
			return ""
		}
	}
}

// forbidden returns the reason why a folder must not import a package, "" if it may.
func forbidden(folder, imported string) string {
	if strings.HasPrefix(imported, "gorgonia.org/") {
		if !slices.Contains(seesGorgonia, folder) {
			return "only the vocabulary and graph see Gorgonia"
		}
		return ""
	}
	target, inside := strings.CutPrefix(imported, module+"/")
	switch {
	case imported == module:
		target = "."
	case !inside:
		return ""
	}
	from, to := owner(folder), owner(target)
	switch {
	case from == "" || to == "":
		return "the package has no level: give it one here and in docs/dev/architecture.md"
	case from == to:
		return "" // packages of one folder: the compiler excludes import cycles
	case levels[to] >= levels[from]:
		return "imports point down: " + from + " is on level " + strconv.Itoa(levels[from]) + ", " + to + " on level " + strconv.Itoa(levels[to])
	}
	return ""
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, spec := range f.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			fatal.If(t, err)
			expect.Equal(t, forbidden(f.folder, imported), "", f.path, "imports", imported)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for folder, imported := range map[string]string{
		"layers":             "tessera/losses",
		"losses":             "tessera/config",
		"config":             "tessera/graph",
		"internal/engine/ir": "tessera/graph",
		"internal/engine":    "gorgonia.org/gorgonia",
		"graph/tape":         "tessera/internal/train",
		"metrics":            "gorgonia.org/gorgonia",
		"internal/train":     "gorgonia.org/tensor",
		"apps/export":        "tessera/apps/cli",
		".":                  "tessera/apps/internal/study",
		"internal/x":         "tessera/apps/cli",
		"config/part":        "tessera/data",
		"optim":              "tessera/laws/gradcheck",
		"newpackage":         "tessera/data",
	} {
		if forbidden(folder, imported) == "" {
			t.Errorf("%s may import %s", folder, imported)
		}
	}
}

func TestEveryListedFolderExists(t *testing.T) {
	folders := map[string]bool{}
	for _, f := range goFiles(t) {
		folders[owner(f.folder)] = true
		if owner(f.folder) == "" {
			t.Errorf("%s is in no listed folder", f.path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if !folders[name] {
			t.Errorf("the folder %s is empty", name)
		}
	}
}

// A method that an interface declares is documented there: a comment "X implements Y" would only repeat its name.
func TestEveryExportedNameHasADocComment(t *testing.T) {
	files := goFiles(t)
	declared := map[string]map[string]bool{} // by folder, the methods of its interfaces
	for _, f := range files {
		if declared[f.folder] == nil {
			declared[f.folder] = map[string]bool{ // of the standard library, and of package table
				"Error": true, "String": true, "Unwrap": true, "WriteTo": true,
				"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
				"TOML": true, "FromTOML": true, "Choices": true, "Check": true,
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						declared[f.folder][name.Name] = true
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		seen := []string{f.folder}
		for _, spec := range f.syntax.Imports {
			seen = append(seen, strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"))
		}
		for _, d := range f.syntax.Decls {
			for name, at := range undocumented(d) {
				fn, ok := d.(*ast.FuncDecl)
				if ok && fn.Recv != nil && slices.ContainsFunc(seen, func(folder string) bool { return declared[folder][name] }) {
					continue
				}
				t.Errorf("%s: %s has no doc comment", f.tokens.Position(at), name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that have no comment.
func undocumented(d ast.Decl) map[string]token.Pos {
	names := map[string]token.Pos{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
			names[d.Name.Name] = d.Pos()
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names[s.Name.Name] = s.Pos()
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names[n.Name] = n.Pos()
					}
				}
			}
		}
	}
	return names
}

// exportedReceiver reports whether a function is not a method, or is a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
