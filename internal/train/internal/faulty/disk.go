// Package faulty provides a disk for tests. At a chosen operation it becomes full, or stops working as if the process had been
// killed.
package faulty

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"tessera/internal/train/folder"
)

// ErrDead is the error of every operation on a disk that has stopped working.
var ErrDead = errors.New("the disk is dead")

// Disk is the operating system's disk up to the operation DieAt or FullAt. Count is the number of requested operations. A
// write counts as two operations, so that it can be interrupted in the middle. Written data remain as if the process had been
// killed, but are not flushed.
type Disk struct {
	folder.OS
	mu     sync.Mutex
	DieAt  int // number of the operation, from 1, before which the disk stops working; 0 for never
	FullAt int // number of the operation, from 1, at which the disk becomes full; 0 for never
	Count  int
	Apart  bool // the disk does not support the exchange of folders
}

// next counts an operation and returns its error, if any.
func (d *Disk) next(writes bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Count++
	switch {
	case d.DieAt > 0 && d.Count >= d.DieAt:
		return ErrDead
	case writes && d.FullAt > 0 && d.Count >= d.FullAt:
		return syscall.ENOSPC
	}
	return nil
}

func (d *Disk) Mkdir(path string) error {
	if err := d.next(true); err != nil {
		return err
	}
	return d.OS.Mkdir(path)
}

// WriteFile implements [folder.Disk].
func (d *Disk) WriteFile(path string, write func(io.Writer) error) error {
	var whole bytes.Buffer
	if err := write(&whole); err != nil {
		return err
	}
	return d.write(path, whole.Bytes(), func(path string, data []byte) error { return os.WriteFile(path, data, 0o666) })
}

func (d *Disk) Append(path string, data []byte) error { return d.write(path, data, d.OS.Append) }

// write writes only half of the data if the disk stops working or fills up in the middle.
func (d *Disk) write(path string, data []byte, write func(string, []byte) error) error {
	if err := d.next(true); err != nil {
		return err
	}
	if err := d.next(true); err != nil {
		return errors.Join(err, write(path, data[:len(data)/2]))
	}
	return write(path, data)
}

// Sync implements [folder.Disk].
func (d *Disk) Sync(string) error { return d.next(false) }

// Rename implements [folder.Disk].
func (d *Disk) Rename(old, new string) error {
	if err := d.next(false); err != nil {
		return err
	}
	return d.OS.Rename(old, new)
}

func (d *Disk) Exchange(a, b string) error {
	if err := d.next(false); err != nil {
		return err
	}
	if d.Apart {
		return errors.ErrUnsupported
	}
	return d.OS.Exchange(a, b)
}

// Remove implements [folder.Disk].
func (d *Disk) Remove(path string) error {
	if err := d.next(false); err != nil {
		return err
	}
	return d.OS.Remove(path)
}

func (d *Disk) RemoveAll(path string) error {
	if err := d.next(false); err != nil {
		return err
	}
	return d.OS.RemoveAll(path)
}
