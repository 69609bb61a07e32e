package ui

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"tessera/sweep"
	"tessera/train/folder"
)

// row is one run or sweep of the list.
type row struct {
	Path     string  `json:"path"` // relative to the served folder
	Link     string  `json:"link"`
	Kind     string  `json:"kind"` // run or sweep
	Model    string  `json:"model"`
	Dataset  string  `json:"dataset"`
	State    string  `json:"state"`
	Epoch    int     `json:"epoch"`
	Epochs   int     `json:"epochs"`
	Loss     float64 `json:"loss"`
	Error    float64 `json:"error"`    // val_mse
	Modified int64   `json:"modified"` // seconds since 1970
}

// lister lists a folder; it reads again only what has changed.
type lister struct {
	dir string

	mu    sync.Mutex
	known map[string]status
}

// place is a run or a sweep that was found.
type place struct {
	path, kind, stamp string
}

// rows lists all runs and sweeps, the latest first. Trials belong to the page of their sweep and are not listed.
func (l *lister) rows() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	places := find(l.dir)
	each := make([]status, len(places))
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(places); i += workers {
				each[i] = l.status(places[i])
			}
		})
	}
	wait.Wait()
	clear(l.known)
	var rows []row
	for i, p := range places {
		l.known[p.path] = each[i]
		rows = append(rows, each[i].row(l.dir, p))
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Modified, a.Modified), strings.Compare(a.Path, b.Path))
	})
	return rows
}

// status is what was read before if nothing has changed. Whether a process trains an unfinished run changes without its files.
func (l *lister) status(p place) status {
	if old, ok := l.known[p.path]; ok && old.stamp == p.stamp && old.State == finished {
		return old
	}
	var s status
	if p.kind == sweepKind {
		s = sweepStatus(p.path)
	} else {
		s = statusOf(p.path)
	}
	s.stamp = p.stamp
	return s
}

// The kinds of rows.
const (
	runKind   = "run"
	sweepKind = "sweep"
)

// find searches for runs and sweeps.
func find(dir string) (found []place) {
	folder.Search(dir, func(path string) bool {
		switch _, err := os.Stat(filepath.Join(path, folder.Config)); {
		case sweep.Is(path):
			found = append(found, place{path, sweepKind, stampOf(path, sweep.ResultsFile)})
		case err == nil:
			found = append(found, place{path, runKind, stampOf(path, folder.Config, folder.Metrics, folder.State)})
		default:
			return false
		}
		return true
	})
	return found
}

// row is a line of the list.
func (s status) row(dir string, p place) row {
	relative, err := filepath.Rel(dir, p.path)
	if err != nil {
		relative = p.path
	}
	r := row{Path: filepath.ToSlash(relative), Kind: p.kind, Link: link(p.kind, dir, p.path), Model: s.Model, Dataset: s.Dataset, State: string(s.State),
		Epoch: s.Epoch, Epochs: s.Epochs}
	r.Loss, _ = s.Metrics.Number("loss")
	r.Error, _ = s.Metrics.Number("val_mse")
	if !s.Modified.IsZero() {
		r.Modified = s.Modified.Unix()
	}
	return r
}
