//go:build unix

package train

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/regular"
	"tessera/internal/train/folder"
)

// Opening a named pipe would block until another process opens it for writing.
func TestAPipeInTheFolderOfARunIsRefused(t *testing.T) {
	for _, name := range []string{folder.Config, folder.Best, folder.State} {
		run := trained(t, model(t, everything), Options{}).Run
		path := filepath.Join(run, name)
		fatal.If(t, errors.Join(os.RemoveAll(path), syscall.Mkfifo(path, 0o600)))
		open := func() error { _, err := resumed(run); return err }
		if name == folder.Best { // resume replaces it
			open = func() error { _, err := Open(run); return err }
		}
		err := open()
		if unread, ok := errors.AsType[*fs.PathError](err); !errors.Is(err, regular.ErrNot) || !ok || unread.Path != path {
			t.Errorf("%s: got %v", name, err)
		}
		if name == folder.Best {
			expect.NoError(t, expect.Err(resumed(run)), "resume with a pipe at", name)
		}
	}
}
