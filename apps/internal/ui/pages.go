package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tessera/show/comparison"
	"tessera/show/page"
	"tessera/sweep"
	"tessera/train/folder"
)

// cached answers with a page, made again only if its files have changed. Of readers who ask for the same page at once, the first
// one makes it for all.
func (s *Server) cached(w http.ResponseWriter, key, stamp string, make func(*bytes.Buffer) error) {
	text, ok := s.fresh(key, stamp)
	if !ok {
		var err error
		if text, err = s.made(key, stamp, make); err != nil {
			fail(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text) // who left does not read it
}

// made makes a page, unless another reader has made it meanwhile.
func (s *Server) made(key, stamp string, make func(*bytes.Buffer) error) ([]byte, error) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	if text, ok := s.fresh(key, stamp); ok {
		return text, nil
	}
	var b bytes.Buffer
	if err := make(&b); err != nil {
		return nil, err
	}
	s.keep(key, kept{stamp, b.Bytes()})
	return b.Bytes(), nil
}

// fresh returns a page that was made of files with that stamp.
func (s *Server) fresh(key, stamp string) (text []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, ok := s.pages[key]
	return have.page, ok && have.stamp == stamp
}

// keep keeps a page for the next reader.
func (s *Server) keep(key string, k kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) >= mostPages {
		clear(s.pages)
	}
	s.pages[key] = k
}

// mostPages bounds the pages in memory.
const mostPages = 32

func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	path, err := s.find(r.PathValue("path"))
	if err != nil {
		fail(w, err)
		return
	}
	at := statusOf(path)
	if at.Model == "" {
		if _, err = os.Stat(filepath.Join(path, folder.Config)); err == nil { // the list has it
			err = errors.New(at.Problem)
		}
		fail(w, err)
		return
	}
	o := s.options.Options
	o.Quick = at.State == training
	s.cached(w, r.URL.Path, fmt.Sprint(stampOf(path, folder.Config, folder.Model, folder.Best, folder.Metrics), o.Quick), func(b *bytes.Buffer) error {
		one, err := page.ReadRun(context.WithoutCancel(r.Context()), path, o) // for the next reader too
		if err != nil {
			return err
		}
		return (&page.Report{Runs: []*page.Run{one}, Live: "/events" + r.URL.EscapedPath()}).Write(b)
	})
}

func (s *Server) sweep(w http.ResponseWriter, r *http.Request) {
	path, err := s.find(r.PathValue("path"))
	if err != nil || !sweep.Is(path) {
		fail(w, errNotHere)
		return
	}
	s.cached(w, r.URL.Path, stampOf(path, sweep.ResultsFile), func(b *bytes.Buffer) error {
		one, err := page.ReadSweep(context.WithoutCancel(r.Context()), path, s.options.Options)
		if err != nil {
			return err
		}
		one.Live = "/events" + r.URL.EscapedPath()
		for i := range one.Trials {
			if trial := sweep.TrialPath(path, one.Trials[i].Name); statusOf(trial).Model != "" {
				one.Trials[i].Link = link("run", s.dir, trial)
			}
		}
		return one.Write(b)
	})
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	var paths []string
	stamp := ""
	for _, name := range r.URL.Query()["run"] {
		path, err := s.find(name)
		if err != nil || statusOf(path).Model == "" {
			fail(w, errNotHere)
			return
		}
		paths = append(paths, path)
		stamp += stampOf(path, folder.Config, folder.Model, folder.Best)
	}
	if len(paths) < 2 {
		http.Error(w, "choose two or more runs to compare", http.StatusBadRequest)
		return
	}
	s.cached(w, "compare?"+r.URL.RawQuery, stamp, func(b *bytes.Buffer) error {
		o := comparison.Options{Split: s.options.Split, Metrics: s.options.Metrics, Open: s.options.Open}
		t, err := comparison.Compare(context.WithoutCancel(r.Context()), paths, o)
		if err != nil {
			return refused{err}
		}
		return (&page.Comparison{Table: t, Live: true}).Write(b)
	})
}

// link is the address of a run or sweep.
func link(kind, dir, path string) string {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return ""
	}
	return (&url.URL{Path: "/" + kind + "/" + filepath.ToSlash(relative)}).EscapedPath()
}

// stampOf changes when one of the files changes.
func stampOf(path string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
