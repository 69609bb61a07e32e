package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/regular"
)

// A pipe is written through, also by a link to it: a file never takes its place.
func TestAPipeIsWrittenThrough(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	link := filepath.Join(t.TempDir(), "link")
	fatal.If(t, errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	fatal.If(t, err)
	defer reader.Close()
	for _, path := range []string{pipe, link} {
		fatal.If(t, Write(path, text("through")))
		got := make([]byte, 100)
		if n, err := reader.Read(got); err != nil || string(got[:n]) != "through" {
			t.Errorf("%s: got %q, %v", path, got[:n], err)
		}
		cut := errors.New("cut")
		expect.Is(t, Write(path, func(w io.Writer) error { return cut }), cut, path)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v (%v)", info.Mode(), err)
	}
	onlyFile(t, pipe)
}

// The system's null device, under a name of this test, stays a device.
func TestADeviceIsWrittenThrough(t *testing.T) {
	device := filepath.Join(t.TempDir(), "null")
	if err := unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Logf("no device can be made (%v): TestAPipeIsWrittenThrough covers the path", err)
		return
	}
	if err := Write(device, text("through")); err != nil {
		// Some containers forbid opening devices; the device is still there.
		t.Logf("the device cannot be opened: %v", err)
	}
	if info, err := os.Lstat(device); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("the device is %v (%v)", info, err)
	}
	onlyFile(t, device)
}

func TestASocketIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	fatal.If(t, err)
	defer listener.Close()
	expect.Is(t, Write(path, text("a")), regular.ErrNot)
	onlyFile(t, path)
}
