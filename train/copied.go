package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tessera/train/folder"
)

// open opens the run to resume. A process other than rank 0 gets a temporary copy of what rank 0 reads: it needs no common disk.
// The function done removes the copy.
func (p *processes) open(run string, disk folder.Disk) (held *folder.Folder, done func(), err error) {
	done = func() {}
	if p.leads() {
		if held, err = folder.Open(run, disk); err == nil {
			err = p.send(held)
		}
		if err != nil && held != nil {
			err = errors.Join(err, held.Close())
		}
		return held, done, err
	}
	copied, err := os.MkdirTemp("", "tessera-resume-")
	if err != nil {
		return nil, done, fmt.Errorf("run %s: %w", run, err)
	}
	done = func() { _ = os.RemoveAll(copied) }
	for _, name := range sent {
		text, err := p.share(nil)
		if err == nil && len(text) > 0 {
			err = os.WriteFile(filepath.Join(copied, name), text, 0o600)
		}
		if err != nil {
			return nil, done, fmt.Errorf("run %s: the copy of %s: %w", run, name, err)
		}
	}
	held, err = folder.Open(copied, disk)
	return held, done, err
}

// sent are the files that a process needs to resume.
var sent = []string{folder.Config, folder.State, folder.Environment}

// send sends the files of the run to the other processes; one that does not exist as an empty one.
func (p *processes) send(held *folder.Folder) error {
	if p.group == nil {
		return nil
	}
	for _, name := range sent {
		text, err := readRegular(held.Join(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := p.share(text); err != nil {
			return err
		}
	}
	return nil
}
