// Package regular opens and reads regular files only: opening a pipe would wait for a writer, and a device may have no end.
package regular

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNot is the error for the path of a pipe, a socket or a device.
var ErrNot = errors.New("is not a regular file")

// Check returns an [*fs.PathError] with [ErrNot] for a pipe, a socket or a device. It accepts a missing file and a
// folder, because the system reports them when they are opened or read.
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
	if err := Check(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // allocates the memory once, with the size of the file
}
