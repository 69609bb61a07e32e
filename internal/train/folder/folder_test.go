package folder_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/regular"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

func files(text string) []folder.File {
	return []folder.File{
		{Name: folder.Config, Data: []byte("config " + text)},
		{Name: folder.State, Data: []byte("state " + text)},
		{Name: folder.Model, Data: []byte("model " + text)},
	}
}

// contents returns the text of a run's files. The test fails unless all files contain the same text.
func contents(t *testing.T, path string) string {
	t.Helper()
	text := read(t, filepath.Join(path, folder.State))
	text = strings.TrimPrefix(text, "state ")
	for _, f := range files(text) {
		if got := read(t, filepath.Join(path, f.Name)); got != string(f.Data) {
			t.Fatalf("%s holds %q, want %q", f.Name, got, f.Data)
		}
	}
	return text
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	fatal.If(t, err)
	return string(b)
}

func create(t *testing.T, path string, force bool, text string) *folder.Folder {
	t.Helper()
	f, err := folder.Create(path, force, folder.OS{}, files(text)...)
	fatal.If(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestCreateMakesOnlyTheFolder(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "deep", "run")
	create(t, path, false, "a")
	expect.Equal(t, contents(t, path), "a", "the run holds")
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("beside the run there is something: %v", entries)
	}
}

func TestCreateAcceptsAnEmptyFolderAndRefusesAFullOne(t *testing.T) {
	path := t.TempDir()
	_ = create(t, path, false, "a").Close()
	expect.Is(t, expect.Err(folder.Create(path, false, folder.OS{}, files("b")...)), folder.ErrExists, "a second run in the same place")
	expect.Equal(t, contents(t, path), "a", "the refused run changed the old one")
	file := filepath.Join(t.TempDir(), "file")
	fatal.If(t, os.WriteFile(file, nil, 0o600))
	for _, force := range []bool{false, true} {
		expect.Is(t, expect.Err(folder.Create(file, force, folder.OS{}, files("b")...)), folder.ErrExists, "a file in the place, force", force)
	}
}

func TestTheWorkingFolderAndThoseAboveItAreNeverReplaced(t *testing.T) {
	root := t.TempDir()
	run := filepath.Join(root, "run")
	below := filepath.Join(run, "below")
	fatal.If(t, os.MkdirAll(below, 0o777))
	t.Chdir(below)
	for _, place := range []string{".", "..", run, root, below} {
		for _, force := range []bool{false, true} {
			expect.Is(t, expect.Err(folder.Create(place, force, folder.OS{}, files("a")...)), folder.ErrWorkingFolder, place, "force", force)
		}
	}
	for _, place := range []string{"new", "../beside", "..."} {
		_ = create(t, place, false, "a").Close()
		expect.Equal(t, contents(t, place), "a", place, "holds")
	}
}

func TestForceReplacesARunButNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	_ = create(t, path, false, "a").Close()
	create(t, path, true, "b")
	expect.Equal(t, contents(t, path), "b", "after force the run holds")
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("the old run is still there: %v", entries)
	}
	home := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(home, "letters.txt"), []byte("dear"), 0o600))
	expect.Is(t, expect.Err(folder.Create(home, true, folder.OS{}, files("b")...)), folder.ErrNotRun, "force on a folder that is not a run")
	expect.Equal(t, read(t, filepath.Join(home, "letters.txt")), "dear", "force destroyed what is not a run")
}

func TestForceNeverDeletesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	_ = create(t, path, false, "a").Close()
	for name, data := range map[string]string{folder.Picture: "png", folder.Metrics + ".new": "{}"} { // its own
		fatal.If(t, os.WriteFile(filepath.Join(path, name), []byte(data), 0o600))
	}
	_ = create(t, path, true, "b").Close()
	fatal.If(t, os.WriteFile(filepath.Join(path, "my-notes.txt"), []byte("dear"), 0o600))
	_ = create(t, filepath.Join(path, "nested"), false, "n").Close()
	_, err := folder.Create(path, true, folder.OS{}, files("c")...)
	expect.Is(t, err, folder.ErrForeign)
	expect.Error(t, err, "my-notes.txt, nested/")
	if contents(t, path) != "b" || contents(t, filepath.Join(path, "nested")) != "n" || read(t, filepath.Join(path, "my-notes.txt")) != "dear" {
		t.Error("the refused force changed something")
	}
}

func TestForceFollowsALinkToTheRun(t *testing.T) {
	root := t.TempDir()
	path, link := filepath.Join(root, "run"), filepath.Join(root, "latest")
	_ = create(t, path, false, "a").Close()
	fatal.If(t, os.Symlink(path, link))
	create(t, link, true, "b")
	expect.Equal(t, contents(t, path), "b", "the linked run holds")
}

func TestCreateNextTakesTheFirstFreePlaceEvenInARace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs", "model")
	const n = 8
	var wait sync.WaitGroup
	paths := make([]string, n)
	for i := range n {
		wait.Go(func() {
			f, err := folder.CreateNext(path, folder.OS{}, files("a")...)
			if err != nil {
				t.Error(err)
				return
			}
			paths[i] = f.Path()
			_ = f.Close()
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	for _, path := range paths {
		contents(t, path)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != n {
		t.Fatalf("%d runs made %v (%v)", n, entries, err)
	}
	for _, e := range entries {
		if e.Name() != "model" && !strings.HasPrefix(e.Name(), "model-") {
			t.Errorf("unexpected name %s", e.Name())
		}
	}
}

// A file with streamed content is written and compared like a file with bytes.
func TestAStreamedFileIsComparedByItsBytes(t *testing.T) {
	content := func(text string) folder.File {
		return folder.File{Name: folder.Model, Content: strings.NewReader(text)}
	}
	f, err := folder.Create(filepath.Join(t.TempDir(), "run"), false, folder.OS{}, folder.File{Name: folder.Config}, content("parameters"))
	fatal.If(t, err)
	defer f.Close()
	for text, want := range map[string]bool{"parameters": true, "parameter": false, "parameters.": false, "Parameters": false, "": false} {
		expect.Equal(t, f.Holds(content(text)), want, text)
		expect.Equal(t, f.Holds(folder.File{Name: folder.Model, Data: []byte(text)}), want, text, "as bytes")
	}
}

func TestOneProcessAtATimeHoldsARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	held := create(t, path, false, "a")
	expect.Is(t, expect.Err(folder.Open(path, folder.OS{})), folder.ErrLocked, "opening a held run")
	expect.Is(t, expect.Err(folder.Create(path, true, folder.OS{}, files("b")...)), folder.ErrLocked, "replacing a held run")
	fatal.If(t, held.Close())
	f, err := folder.Open(path, folder.OS{})
	fatal.If(t, err)
	_ = f.Close()
	expect.Is(t, expect.Err(folder.Open(t.TempDir(), folder.OS{})), folder.ErrNotRun, "opening an empty folder")
}

// Create is stopped before each operation on the disk, and in the middle of each write.
func TestARunExistsWholeOrNotAtAll(t *testing.T) {
	for _, force := range []bool{false, true} {
		for at := 1; ; at++ {
			root := t.TempDir()
			path := filepath.Join(root, "run")
			if force {
				_ = create(t, path, false, "old").Close()
			}
			disk := &faulty.Disk{DieAt: at}
			f, err := folder.Create(path, force, disk, files("new")...)
			if err == nil {
				_ = f.Close()
				break
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !force {
				continue
			}
			if got := contents(t, path); !force && got != "new" {
				t.Errorf("stopped before operation %d: the run holds %q", at, got)
			}
		}
	}
}

// Without an atomic exchange of folders, a process that is killed between two renames leaves the old run under a temporary
// name.
func TestForceNeverLosesTheOldRun(t *testing.T) {
	for at := 1; ; at++ {
		root := t.TempDir()
		path := filepath.Join(root, "run")
		_ = create(t, path, false, "old").Close()
		f, err := folder.Create(path, true, &faulty.Disk{DieAt: at, Apart: true}, files("new")...)
		if _, missing := os.Stat(path); missing != nil {
			saved, err := filepath.Glob(filepath.Join(root, ".run.old-*"))
			if err != nil || len(saved) != 1 {
				t.Fatalf("stopped before operation %d: the old run is lost (%v)", at, err)
			}
			path = saved[0]
		}
		got := contents(t, path)
		if err == nil {
			_ = f.Close()
			expect.Equal(t, got, "new", "replaced, but the run holds")
			break
		}
	}
}

func TestWriteReplacesAllFilesOrNone(t *testing.T) {
	for at := 1; ; at++ {
		path := filepath.Join(t.TempDir(), "run")
		_ = create(t, path, false, "old").Close()
		disk := &faulty.Disk{FullAt: at}
		f, err := folder.Open(path, disk)
		fatal.If(t, err)
		err = f.Write(files("new")...)
		_ = f.Close()
		if err == nil {
			expect.Equal(t, contents(t, path), "new", "written, but the run holds")
			break
		}
		expect.As[*folder.WriteError](t, err, "", "full at operation", at)
		expect.Is(t, err, syscall.ENOSPC, "full at operation", at)
		expect.Equal(t, contents(t, path), "old", "full at operation", at, "the run holds")
		if entries, _ := os.ReadDir(path); len(entries) != 3 {
			t.Errorf("full at operation %d: half a file keeps its space: %v", at, entries)
		}
	}
}

// After a killed Write every file is complete, with its old or its new contents; new files precede old ones.
func TestWriteLeavesWholeFilesWhenItDies(t *testing.T) {
	for at := 1; ; at++ {
		path := filepath.Join(t.TempDir(), "run")
		_ = create(t, path, false, "old").Close()
		f, err := folder.Open(path, &faulty.Disk{DieAt: at})
		fatal.If(t, err)
		err = f.Write(files("new")...)
		_ = f.Close()
		if err == nil {
			break
		}
		before := "new"
		for _, file := range files("") {
			got := strings.TrimPrefix(read(t, filepath.Join(path, file.Name)), string(file.Data))
			if got != "old" && got != "new" || before == "old" && got == "new" {
				t.Errorf("stopped before operation %d: %s holds %q after one that holds %q", at, file.Name, got, before)
			}
			before = got
		}
	}
}

func TestMetricsAreCutBackToWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	f := create(t, path, false, "a")
	expect.NoError(t, f.SyncMetrics(), "syncing before the first line")
	expect.NoError(t, f.CutMetrics(3), "cutting before the first line")
	for _, line := range []string{"one", "two", "three"} {
		fatal.If(t, f.Append([]byte(line)))
	}
	fatal.If(t, (folder.OS{}).Append(f.Join(folder.Metrics), []byte("fo")))
	for _, c := range []struct {
		lines int
		want  string
	}{{4, "one\ntwo\nthree\n"}, {3, "one\ntwo\nthree\n"}, {2, "one\ntwo\n"}, {0, ""}} {
		fatal.If(t, f.CutMetrics(c.lines))
		expect.Equal(t, read(t, f.Join(folder.Metrics)), c.want, "cut to", c.lines, "lines")
	}
}

func TestTemporaryFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	root := t.TempDir()
	left, used := filepath.Join(root, ".run.new-aaaa"), filepath.Join(root, ".run.new-bbbb")
	for _, dir := range []string{left, used} {
		fatal.If(t, os.Mkdir(dir, 0o700))
	}
	held, err := folder.Hold(used, folder.OS{})
	fatal.If(t, err)
	defer held.Close()
	create(t, filepath.Join(root, "run"), false, "a")
	expect.Is(t, expect.Err(os.Stat(left)), fs.ErrNotExist, "the folder of a killed process is still there")
	expect.NoError(t, expect.Err(os.Stat(used)), "a folder that a process has locked was removed")
}

func TestWithoutPermissionNothingIsWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("running as root, which ignores permissions: the error is checked on a path below a file")
	}
	file := filepath.Join(t.TempDir(), "file")
	fatal.If(t, os.WriteFile(file, nil, 0o400))
	expect.As[*folder.WriteError](t, expect.Err(folder.Create(filepath.Join(file, "run"), false, folder.OS{}, files("a")...)), "")
}

// unsynced is a disk on which the parent folder of a run cannot be flushed.
type unsynced struct {
	folder.OS
	parent string
	apart  bool // the disk does not support the atomic exchange of folders
}

func (d unsynced) Sync(path string) error {
	if path == d.parent {
		return syscall.EIO
	}
	return d.OS.Sync(path)
}

func (d unsynced) Exchange(a, b string) error {
	if d.apart {
		return errors.ErrUnsupported
	}
	return d.OS.Exchange(a, b)
}

func TestAFailedCreateLeavesThePathAsItWas(t *testing.T) {
	for _, force := range []bool{false, true} {
		for _, apart := range []bool{false, true} {
			root := t.TempDir()
			path := filepath.Join(root, "run")
			if force {
				_ = create(t, path, false, "old").Close()
			}
			_, err := folder.Create(path, force, unsynced{parent: root, apart: apart}, files("new")...)
			expect.As[*folder.WriteError](t, err, "")
			expect.Is(t, err, syscall.EIO)
			entries, err := os.ReadDir(root)
			fatal.If(t, err)
			switch {
			case !force && len(entries) > 0, force && len(entries) != 1:
				t.Errorf("force %v, apart %v: the parent folder holds %v", force, apart, entries)
			case force && contents(t, path) != "old":
				t.Errorf("apart %v: the old run is lost", apart)
			}
		}
	}
}

// apart is a disk that does not support the exchange of folders. One of its renames fails: the one with the given number,
// counted from 1; 0 for none.
type apart struct {
	folder.OS
	fails, renames int
	away           string // path to which the old run was moved
}

func (*apart) Exchange(string, string) error { return errors.ErrUnsupported }

func (d *apart) Rename(from, to string) error {
	if d.renames++; d.renames == 1 {
		d.away = to
	}
	if d.renames == d.fails {
		return syscall.EACCES
	}
	return d.OS.Rename(from, to)
}

func TestWithoutAnExchangeAnOldRunStaysIfItCannotBeReplaced(t *testing.T) {
	for fails, want := range []string{"new", "old", "old"} {
		parent := filepath.Join(t.TempDir(), "runs.new-month")
		path := filepath.Join(parent, "a.new-run")
		fatal.If(t, create(t, path, false, "old").Close())
		disk := &apart{fails: fails}
		f, err := folder.Create(path, true, disk, files("new")...)
		if err == nil {
			err = f.Close()
		}
		if (want == "new") != (err == nil) || err != nil && !errors.Is(err, syscall.EACCES) {
			t.Errorf("rename %d fails: %v", fails, err)
		}
		expect.Equal(t, contents(t, path), want, "rename", fails, "fails: the run is the")
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("rename %d fails: the folder holds %v, %v", fails, entries, err)
		}
		if !strings.HasPrefix(disk.away, filepath.Join(parent, ".a.new-run.old-")) {
			t.Errorf("the old run was put to %s", disk.away)
		}
	}
}

// A run may come from somebody else: no link in it leads a write, or a read, to another file.
func TestALinkInTheFolderOfARunIsRefused(t *testing.T) {
	for _, name := range []string{folder.Config, folder.Environment, folder.Metrics, folder.State, folder.Model, folder.Best, folder.Picture, folder.PostHoc, folder.Restarts} {
		path, victim := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "victim")
		f := create(t, path, false, "a")
		fatal.If(t, os.WriteFile(victim, []byte("one line\n"), 0o600))
		_ = os.Remove(f.Join(name))
		fatal.If(t, errors.Join(os.Symlink(victim, f.Join(name)), os.Symlink(victim, f.Join(name)+folder.Unfinished)))
		if err := f.Append([]byte("{}")); name == folder.Metrics && !errors.Is(err, regular.ErrLink) {
			t.Errorf("%s: a line was appended: %v", name, err)
		}
		expect.AnyError(t, (folder.OS{}).Append(f.Join(name), []byte("{}")), name, "the disk followed the link")
		expect.NoError(t, f.Write(folder.File{Name: name, Data: []byte("new")}), name)
		fatal.If(t, errors.Join(os.Remove(f.Join(name)), os.Symlink(victim, f.Join(name)), f.Close()))
		expect.Is(t, expect.Err(folder.Open(path, folder.OS{})), regular.ErrLink, name, "the run was opened")
		expect.Is(t, expect.Err(regular.ReadUnlinked(filepath.Join(path, name))), regular.ErrLink, name, "the file was read")
		if got, _ := os.ReadFile(victim); string(got) != "one line\n" {
			t.Errorf("%s: the victim holds %q", name, got)
		}
	}
}

func TestOwnedNamesTheRunOfAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run")
	fatal.If(t, errors.Join(create(t, path, false, "a").Close(), os.Symlink(filepath.Join(path, folder.Config), filepath.Join(dir, "link"))))
	for file, want := range map[string]string{
		filepath.Join(path, folder.Model):            path, // does not exist yet
		filepath.Join(path, folder.Metrics) + ".new": path,
		filepath.Join(dir, "link"):                   path,
		filepath.Join(path, "other.npz"):             "",
		filepath.Join(dir, folder.Model):             "",
	} {
		expect.Equal(t, folder.Owned(file), want, file)
	}
}

// A path that is no run says what it is.
func TestWhatIsNotARunIsNamed(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "model.txt")
	fatal.If(t, os.WriteFile(file, nil, 0o666))
	for path, want := range map[string]string{home: "it contains no config.toml", file: "is a file, not the folder of a run", filepath.Join(home, "none"): "no such folder", "": "got no path, want the folder of a run"} {
		err := folder.NotRun(path)
		expect.Is(t, err, folder.ErrNotRun)
		expect.Error(t, err, want)
	}
}
