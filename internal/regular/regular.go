// Package regular opens regular files only: opening a pipe would wait for a writer, and a device may have no end.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNot says that a path names a pipe, a socket or a device.
var ErrNot = errors.New("is not a regular file")

// Check returns an [*fs.PathError] of [ErrNot] for a path that names a pipe, a socket or a device. What is missing or a
// folder is reported by the system when it is opened or read.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: ErrNot}
	}
	return nil
}

// Open opens a file for reading.
func Open(path string) (*os.File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ReadFile reads a whole file.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
