//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	file, pipe, socket, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "s"), filepath.Join(dir, "link")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	fatal.If(t, errors.Join(os.WriteFile(file, []byte("text"), 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)))
	for _, path := range []string{pipe, socket, link, os.DevNull} {
		expect.Is(t, expect.Err(ReadFile(path)), ErrNot, path)
	}
	if b, err := ReadFile(file); string(b) != "text" || err != nil {
		t.Errorf("a file: got %q, %v", b, err)
	}
	expect.Is(t, expect.Err(ReadFile(filepath.Join(dir, "missing"))), fs.ErrNotExist, "a missing file")
	expect.AnyError(t, expect.Err(ReadFile(dir)), "a folder was read")
}

func TestReadingAFileAllocatesItsSizeOnce(t *testing.T) {
	const size = 3 << 20
	path := filepath.Join(t.TempDir(), "large")
	fatal.If(t, os.WriteFile(path, make([]byte, size), 0o600))
	b, err := ReadFile(path)
	if err != nil || len(b) != size || cap(b) > size+size/8 {
		t.Errorf("got %d bytes with a capacity of %d, %v; want %d with little more", len(b), cap(b), err, size)
	}
}
