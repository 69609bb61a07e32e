package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tessera/train/folder"
)

// apart is the disk of a system that cannot exchange folders. One of its renames, counted from 1, fails; 0 for none.
type apart struct {
	folder.OS
	fails, renames int
	away           string // where the old run was put
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
		if err := create(t, path, false, "old").Close(); err != nil {
			t.Fatal(err)
		}
		disk := &apart{fails: fails}
		f, err := folder.Create(path, true, disk, files("new")...)
		if err == nil {
			err = f.Close()
		}
		if (want == "new") != (err == nil) || err != nil && !errors.Is(err, syscall.EACCES) {
			t.Errorf("rename %d fails: %v", fails, err)
		}
		if got := contents(t, path); got != want {
			t.Errorf("rename %d fails: the run is the %s one, want the %s one", fails, got, want)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("rename %d fails: the folder holds %v, %v", fails, entries, err)
		}
		if !strings.HasPrefix(disk.away, filepath.Join(parent, ".a.new-run.old-")) {
			t.Errorf("the old run was put to %s", disk.away)
		}
	}
}
