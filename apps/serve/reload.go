package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tessera"
	"tessera/internal/regular"
	"tessera/train/folder"
)

// runFiles are the files of a run that determine its model.
func runFiles() []string { return []string{folder.Config, folder.Best, folder.Model, folder.State} }

// signature tells when files may have changed, without reading them.
type signature string

// signatureOf returns the signature of files, some of which may not exist.
func signatureOf(paths ...string) (s signature) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			s += signature(fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return s
}

// sign returns the signature of the files of a run's folder.
func sign(run string) signature {
	var paths []string
	for _, name := range runFiles() {
		paths = append(paths, filepath.Join(run, name))
	}
	return signatureOf(paths...)
}

// files are files that are read again when they change.
type files struct {
	paths []string
	seen  signature // when they were read
}

// newFiles returns files that are about to be read.
func newFiles(paths ...string) files { return files{paths, signatureOf(paths...)} }

// refresh reads the files if they have changed since, and reports whether it read them. Files that cannot be read are read again
// when they change again.
func (f *files) refresh(read func() error) (changed bool, err error) {
	now := signatureOf(f.paths...)
	if now == f.seen {
		return false, nil
	}
	f.seen = now
	return true, read()
}

// versionOf returns the beginning of the SHA-256 of the declaration and of the parameters of a run: equal files have equal
// versions on every machine.
func versionOf(run string) (string, error) {
	sum := sha256.New()
	parameters := false
	for _, name := range runFiles() {
		if parameters { // only the first file with parameters is read
			break
		}
		err := addFile(sum, filepath.Join(run, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		parameters = name != folder.Config
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

func addFile(w io.Writer, path string) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// open reads a run and compiles it. The files must not change meanwhile, so that version and model agree.
func (o *Options) open(path string, stats *modelStats) (*loaded, error) {
	before := sign(path)
	run, err := tessera.Open(path, o.Runs)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	version, err := versionOf(path)
	if err != nil {
		return nil, err
	}
	l, err := o.load(run, version, stats)
	if err != nil {
		return nil, err
	}
	l.files = before
	if sign(path) != before {
		return nil, errors.Join(fmt.Errorf("serve: %s: its files changed while they were read", path), l.close())
	}
	return l, nil
}

// watch reads runs, tokens and certificate again when their files have changed, until ctx ends. While a run is read, and if it cannot be read, its
// model serves the former one.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(s.options.Reload)
	defer tick.Stop()
	failed := map[string]signature{} // what could not be read is read again when it changes again
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.refresh()
		for _, m := range s.models {
			now := sign(m.folder)
			if m.folder == "" || now == m.current.files || now == failed[m.name] {
				continue
			}
			if err := s.reload(m, now); err != nil {
				failed[m.name] = now
				s.options.Log(fmt.Sprintf("model %s: reload: %v; the former run is served", m.name, err))
			}
		}
	}
}

// refresh reads tokens and certificate again when their files have changed. The former ones stay if that fails.
func (s *Server) refresh() {
	tell := func(what string, changed bool, err error) {
		if err != nil {
			s.options.Log(fmt.Sprintf("%s: reload: %v; the former one is used", what, err))
		} else if changed {
			s.options.Log(what + ": was read again")
		}
	}
	if t := s.options.Tokens; t != nil {
		changed, err := t.files.refresh(t.read)
		tell("file of tokens", changed, err)
	}
	if c := s.options.Certificate; c != nil {
		changed, err := c.files.refresh(c.read)
		tell("certificate", changed, err)
	}
}

// reload reads the run of a model again. Equal files under new times change nothing.
func (s *Server) reload(m *model, now signature) error {
	if version, err := versionOf(m.folder); err == nil && version == m.current.version {
		m.current.files = now // which only the caller of reload uses
		return nil
	}
	l, err := s.options.open(m.folder, m.stats)
	if err != nil {
		m.stats.reloads.WithLabelValues("error").Inc()
		return err
	}
	former := m.exchange(l)
	m.stats.reloads.WithLabelValues("ok").Inc()
	s.options.Log(fmt.Sprintf("model %s: version %s replaces %s", m.name, l.version, former.version))
	s.watching.Go(func() { // the watch does not wait for slow requests
		if err := former.close(); err != nil {
			s.options.Log(fmt.Sprintf("model %s: version %s: %v", m.name, former.version, err))
		}
	})
	return nil
}
