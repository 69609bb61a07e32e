package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, text := range []string{"a longer first text", "short"} {
		if err := Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("the file holds %q, want %q", got, text)
		}
	}
	onlyFile(t, path)
}

func TestAFailedWriteLeavesTheOldFileAndNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut")
	err := Write(path, func(w io.Writer) error { io.WriteString(w, "new"); return cut })
	if !errors.Is(err, cut) {
		t.Errorf("got %v, want the writer's error", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the file holds %q, want the old text", got)
	}
	onlyFile(t, path)
}

func TestALinkKeepsPointingWhereItDoes(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "a"), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := Write(link, text("new")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file that the link names holds %q, want the new text", got)
	}
	if to, err := os.Readlink(link); to != path {
		t.Errorf("the link points to %q (%v)", to, err)
	}
	onlyFile(t, path)
	onlyFile(t, link)
}

func TestTheLongestNameThatAFileSystemTakesIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	if err := Write(path, text("a")); err != nil {
		t.Error(err)
	}
	onlyFile(t, path)
}

func TestFilesThatCannotAllBeWrittenStayAsTheyAre(t *testing.T) {
	folder := t.TempDir()
	var files []File
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(folder, name)
		files = append(files, File{Path: path, Temporary: path + ".new", Write: text(name)})
	}
	if path, err := Replace(OS{}, files...); err != nil {
		t.Fatal(path, err)
	}
	cut := errors.New("cut")
	for i := range files {
		files[i].Write = text("other")
	}
	files[1].Write = func(io.Writer) error { return cut }
	if path, err := Replace(OS{}, files...); !errors.Is(err, cut) || path != files[1].Path {
		t.Errorf("got %q, %v, want the path and the error of the second file", path, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if got, _ := os.ReadFile(filepath.Join(folder, name)); string(got) != name {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if entries, _ := os.ReadDir(folder); len(entries) != len(files) {
		t.Errorf("beside the files there is something: %v", entries)
	}
}

func TestAFolderInThePlaceLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("a")); err == nil {
		t.Error("a file took the place of a folder")
	}
	onlyFile(t, path)
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want only the file", entries, err)
	}
}

func TestAWriterThatPanicsLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := Write(path, text("old")); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_ = Write(path, func(io.Writer) error { panic("on purpose") })
	}()
	onlyFile(t, path)
}

func TestTidyRemovesOldHalvesOfTheNamedFilesOnly(t *testing.T) {
	folder := t.TempDir()
	long := strings.Repeat("n", 255)
	for name, stays := range map[string]bool{
		".a.png.abcdefghij.tmp":              false,
		"." + long[:200] + ".abcdefghij.tmp": false,
		".b.png.abcdefghij.tmp":              true, // temporary file of another file
		".a.png.tmp":                         true,
		".a.png.abcdefghi.tmp":               true,
		"a.png":                              true,
		".a.png.0123456789.tmp":              true, // recent: another process may be writing it
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if old := time.Now().Add(-2 * stale); name != ".a.png.0123456789.tmp" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if _, err := os.Stat(path); (err == nil) != stays {
				t.Errorf("%s stays: %v, want %v", name, err == nil, stays)
			}
		}()
	}
	Tidy(OS{}, folder, "a.png", long)
	Tidy(OS{}, filepath.Join(folder, "missing"), "a.png")
}

// noSecond is a disk that renames only one file.
type noSecond struct {
	OS
	renamed int
}

func (d *noSecond) Rename(old, new string) error {
	if d.renamed++; d.renamed > 1 {
		return os.ErrPermission
	}
	return d.OS.Rename(old, new)
}

// The files together are not replaced atomically: the files before the failed rename are new.
func TestAFailedRenameLeavesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	var files []File
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		files = append(files, File{Path: path, Temporary: path + ".new", Write: text("new")})
	}
	path, err := Replace(&noSecond{}, files...)
	if !errors.Is(err, os.ErrPermission) || path != files[1].Path {
		t.Errorf("got %s, %v; want %s and the error of its rename", path, err, files[1].Path)
	}
	for i, want := range []string{"new", "old", "old"} {
		if got, err := os.ReadFile(files[i].Path); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", files[i].Path, got, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(files) {
		t.Errorf("temporary files were left: %v, %v", entries, err)
	}
}
