// Package regular opens and reads regular files only: opening a pipe would wait for a writer, and a device may have no end.
package regular

import (
	"errors"
	"io/fs"
	"os"
)

var (
	// ErrNot is the error for the path of a pipe, a socket or a device.
	ErrNot = errors.New("is not a regular file")
	// ErrLink is the error for a symbolic link in the folder of a run.
	ErrLink = errors.New("is a symbolic link, which is not followed in the folder of a run; put the file itself there")
)

// Check returns an [*fs.PathError] with [ErrNot] for a pipe, a socket or a device. It accepts a missing file and a
// folder, because the system reports them when they are opened or read.
func Check(path string) error {
	info, err := os.Stat(path)
	return check(path, info, err)
}

// CheckUnlinked is like [Check], with [ErrLink] for a symbolic link. It protects the files of a folder that may come from somebody
// else: a link in it could lead to any file.
func CheckUnlinked(path string) error {
	info, err := os.Lstat(path)
	return check(path, info, err)
}

func check(path string, info fs.FileInfo, err error) error {
	switch {
	case err != nil || info.Mode().IsRegular() || info.IsDir():
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	}
	return &fs.PathError{Op: "open", Path: path, Err: ErrNot}
}

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return checked(Check, path, os.Open) }

// OpenUnlinked opens a file for reading that [CheckUnlinked] accepts.
func OpenUnlinked(path string) (*os.File, error) { return checked(CheckUnlinked, path, os.Open) }

// ReadFile reads a whole file. It allocates the memory once, with the size of the file.
func ReadFile(path string) ([]byte, error) { return checked(Check, path, os.ReadFile) }

// ReadUnlinked reads a whole file that [CheckUnlinked] accepts.
func ReadUnlinked(path string) ([]byte, error) { return checked(CheckUnlinked, path, os.ReadFile) }

func checked[T any](check func(string) error, path string, open func(string) (T, error)) (opened T, err error) {
	if err := check(path); err != nil {
		return opened, err
	}
	return open(path)
}
