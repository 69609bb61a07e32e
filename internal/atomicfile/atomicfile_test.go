package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, text := range []string{"a longer first text", "short"} {
		fatal.If(t, Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("the file holds %q, want %q", got, text)
		}
	}
	onlyFile(t, path)
}

func TestAFailedWriteLeavesTheOldFileAndNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	fatal.If(t, os.WriteFile(path, []byte("old"), 0o644))
	cut := errors.New("cut")
	err := Write(path, func(w io.Writer) error { io.WriteString(w, "new"); return cut })
	expect.Is(t, err, cut)
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the file holds %q, want the old text", got)
	}
	onlyFile(t, path)
}

func TestALinkKeepsPointingWhereItDoes(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "a"), filepath.Join(t.TempDir(), "link")
	fatal.If(t, os.WriteFile(path, []byte("old"), 0o644))
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	fatal.If(t, Write(link, text("new")))
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
	expect.NoError(t, Write(path, text("a")))
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
	fatal.If(t, os.Mkdir(path, 0o777))
	expect.AnyError(t, Write(path, text("a")), "a file took the place of a folder")
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
	fatal.If(t, Write(path, text("old")))
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

func TestALinkToNothingLeadsToANewFile(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	fatal.If(t, os.Symlink(filepath.Join(folder, "new"), link))
	fatal.If(t, Write(link, text("a")))
	if got, _ := os.ReadFile(filepath.Join(folder, "new")); string(got) != "a" {
		t.Errorf("the new file holds %q", got)
	}
	expect.NoError(t, expect.Err(os.Readlink(link)))
}

func TestWriteRemovesWhatKilledProcessesLeft(t *testing.T) {
	folder := t.TempDir()
	long := strings.Repeat("n", 255)
	const used = ".a.png.zzzzzzzzzz.tmp"
	stays := map[string]bool{
		".a.png.abcdefghij.tmp":              false,
		"." + long[:200] + ".abcdefghij.tmp": false,
		used:                                 true, // another process is writing it
		".b.png.abcdefghij.tmp":              true, // temporary file of another file
		".a.png.tmp":                         true,
		".a.png.abcdefghi.tmp":               true,
		".a.png.abcdefgh.j.tmp":              true,
		".a.png.ABCDEFGHIJ.tmp":              true,
	}
	for name := range stays {
		fatal.If(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	left := filepath.Join(folder, ".drawn.abcdefghij.tmp")
	fatal.If(t, errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "0.png"), nil, 0o600)))
	held := Abandoned(filepath.Join(folder, used))
	defer held.Close()
	for _, name := range []string{"a.png", long} {
		fatal.If(t, Write(filepath.Join(folder, name), text("a")))
	}
	err := WriteFolder(filepath.Join(folder, "drawn"), func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "0.png"), nil, 0o600)
	})
	fatal.If(t, err)
	for name, want := range stays {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s stays: %v, want %v", name, err == nil, want)
		}
	}
	expect.AnyError(t, expect.Err(os.Stat(left)), "the folder of a killed process is still there")
	Tidy(filepath.Join(folder, "missing"), "a.png")
}

func TestAFolderIsCompleteOrMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	cut := errors.New("cut")
	write := func(fails error) error {
		return WriteFolder(path, func(dir string) error { return errors.Join(os.WriteFile(filepath.Join(dir, "0"), nil, 0o600), fails) })
	}
	expect.Is(t, write(cut), cut)
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("a failure left %v", entries)
	}
	if err := errors.Join(os.Mkdir(path, 0o700), write(nil)); err != nil { // an empty folder is replaced
		t.Fatal(err)
	}
	expect.AnyError(t, write(nil), "a folder with files was replaced")
	onlyFile(t, path)
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
		fatal.If(t, os.WriteFile(path, []byte("old"), 0o666))
		files = append(files, File{Path: path, Temporary: path + ".new", Write: text("new")})
	}
	path, err := Replace(&noSecond{}, files...)
	expect.Is(t, err, os.ErrPermission)
	expect.Equal(t, path, files[1].Path)
	for i, want := range []string{"new", "old", "old"} {
		if got, err := os.ReadFile(files[i].Path); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", files[i].Path, got, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(files) {
		t.Errorf("temporary files were left: %v, %v", entries, err)
	}
}
