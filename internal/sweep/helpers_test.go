package sweep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/samefiles"
	_ "tessera/internal/testheap"
	"tessera/internal/train/folder"
)

// declared declares a small sweep with noise, shuffling, a shorter last batch and a checkpoint after every epoch.
const declared = `
[model.small]
about = "a line for people"
dataset = { name = "bars", count = 100 }
encoder = [{ kind = "gaussian_noise" }, { kind = "dense", units = 6, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
train = { epochs = 3, batch = 32, checkpoint_seconds = 0 }

[sweep.s]
model = "small"
seeds = [1, 2]
set.loss.1.target = [0.1, 0.3]
`

// diverging declares a sweep in which two of the trials fail.
const diverging = `
[sweep.d]
model = "small"
seeds = [1, 2]
set.optimizer.learning_rate = [0.01, 1e30]
`

func spec(t testing.TB, text, name string, sets ...string) *config.Sweep {
	t.Helper()
	f, err := config.Load("models.toml", []byte(text))
	fatal.If(t, err)
	var changes []config.Set
	for _, argument := range sets {
		s, err := config.ParseSet(argument)
		fatal.If(t, err)
		changes = append(changes, s)
	}
	s, err := f.Sweep(name, changes...)
	fatal.If(t, err)
	return s
}

func open(t testing.TB, s *config.Sweep, o Options) *Sweep {
	t.Helper()
	opened, err := New(context.Background(), s, o)
	fatal.If(t, err)
	return opened
}

// run runs the sweep s in text and returns the results.
func run(t testing.TB, text string, o Options, sets ...string) *Results {
	t.Helper()
	r, err := open(t, spec(t, text, "s", sets...), o).Run(context.Background())
	fatal.If(t, err)
	return r
}

// files returns, by path, every file of a sweep that does not depend on times and machines.
func files(t testing.TB, path string) map[string]string {
	t.Helper()
	all, err := samefiles.Files(path)
	fatal.If(t, err)
	return all
}

// same fails the test unless two sweeps have the same files, except for unfinished ones.
func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	expect.NoError(t, samefiles.Differ(got, want, true), what)
}

// dying is a disk on which all operations fail from a given one on: as in a process that is killed, or on a full disk.
type dying struct {
	folder.OS
	mu    sync.Mutex
	count int
	at    int   // number of the first operation that fails, from 1; 0: none
	err   error // errDead, or the error of a full disk
}

var errDead = errors.New("the disk is dead")

func (d *dying) next() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count++; d.at > 0 && d.count >= d.at {
		return d.err
	}
	return nil
}

func (d *dying) Mkdir(path string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.OS.Mkdir(path)
}

func (d *dying) WriteFile(path string, write func(io.Writer) error) error {
	var whole bytes.Buffer
	if err := write(&whole); err != nil {
		return err
	}
	data, err := whole.Bytes(), d.next()
	if err != nil {
		data = data[:len(data)/2]
	}
	return errors.Join(err, d.OS.WriteFile(path, func(w io.Writer) error { _, err := w.Write(data); return err }))
}

func (d *dying) Append(path string, data []byte) error {
	if err := d.next(); err != nil {
		return errors.Join(err, d.OS.Append(path, data[:len(data)/2]))
	}
	return d.OS.Append(path, data)
}

func (d *dying) Rename(old, new string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.OS.Rename(old, new)
}

func (d *dying) Remove(path string) error {
	if d.next() != nil && errors.Is(d.err, errDead) {
		return d.err
	}
	return d.OS.Remove(path)
}

func (d *dying) RemoveAll(path string) error {
	if d.next() != nil && errors.Is(d.err, errDead) {
		return d.err
	}
	return d.OS.RemoveAll(path)
}
