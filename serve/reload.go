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

// signature tells when the files of a run may have changed, without reading them.
type signature string

// sign returns the signature of the files of a run's folder.
func sign(run string) (s signature) {
	for _, name := range runFiles() {
		if info, err := os.Stat(filepath.Join(run, name)); err == nil {
			s += signature(fmt.Sprintln(name, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return s
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

// watch reads runs again when their files have changed, until ctx ends. While a run is read, and if it cannot be read, its
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
	former := m.current.version
	m.stats.reloads.WithLabelValues("ok").Inc()
	s.options.Log(fmt.Sprintf("model %s: version %s replaces %s", m.name, l.version, former))
	return m.exchange(l)
}
