package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tessera/apps/show/page"
	"tessera/internal/numeral"
	"tessera/internal/parallel/team"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// row is one run or sweep of the list.
type row struct {
	Path     string  `json:"path"` // path relative to the served folder
	Link     string  `json:"link"`
	Kind     string  `json:"kind"` // "run" or "sweep"
	Model    string  `json:"model"`
	Dataset  string  `json:"dataset"`
	State    string  `json:"state"`
	Epoch    int     `json:"epoch"`
	Epochs   int     `json:"epochs"`
	Loss     float64 `json:"loss"`
	Metric   string  `json:"metric"`   // name of Value, "" if there is none
	Value    float64 `json:"value"`    // value of a run; for a sweep, that of its best trial
	Modified int64   `json:"modified"` // seconds since 1970
}

// lister lists a folder. It reads only changed files again.
type lister struct {
	dir     string
	folders []string // sub-folders that are searched; nil for all

	mu    sync.Mutex
	known map[string]status
}

// place is a run or a sweep in the folder.
type place struct {
	path, kind, stamp string
}

// rows lists all runs and sweeps, the latest first. Trials belong to the page of their sweep and are not listed.
func (l *lister) rows() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	places := l.places()
	all := make([]status, len(places))
	team.For(len(places), 1, func(from, to int) {
		for i := from; i < to; i++ {
			all[i] = l.status(places[i])
		}
	})
	clear(l.known)
	var rows []row
	for i, p := range places {
		l.known[p.path] = all[i]
		rows = append(rows, all[i].row(l.dir, p))
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Modified, a.Modified), strings.Compare(a.Path, b.Path))
	})
	return rows
}

// status returns the status of a place. It is cached while a finished place has unchanged files. For an unfinished run it is
// read again, because whether a process trains the run does not show in its files.
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

// places finds the runs and sweeps.
func (l *lister) places() (found []place) {
	folders := l.folders
	if folders == nil {
		folders = []string{""}
	}
	for _, sub := range folders {
		folder.Search(filepath.Join(l.dir, sub), func(path string) bool {
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
	}
	return found
}

// row returns the line of a run or sweep in the list.
func (s status) row(dir string, p place) row {
	relative, err := filepath.Rel(dir, p.path)
	if err != nil {
		relative = p.path
	}
	r := row{Path: filepath.ToSlash(relative), Kind: p.kind, Link: link(p.kind, dir, p.path), Model: s.Model, Dataset: s.Dataset, State: string(s.State),
		Epoch: s.Epoch, Epochs: s.Epochs}
	r.Loss, _ = s.Metrics.Number("loss")
	r.Metric, r.Value = s.measure()
	if !s.Modified.IsZero() {
		r.Modified = s.Modified.Unix()
	}
	return r
}

// status describes the status of a run or a sweep.
type status struct {
	train.Status
	Dataset string
	stamp   string // stamp of the files from which the status was read
}

// The states that pages treat differently.
const (
	training = train.Training
	finished = train.Finished
)

// statusOf returns the status of a run. Its Model is empty if there is no run.
func statusOf(path string) status {
	s := status{Status: train.StatusOf(path)}
	if name, err := strconv.Unquote(s.Settings["dataset.name"]); err == nil {
		s.Dataset = name
	}
	return s
}

// sweepStatus returns the status of a sweep; its epochs are trials.
func sweepStatus(path string) status {
	r, err := sweep.Read(path)
	if err != nil {
		return status{Status: train.Status{Run: path, State: train.Damaged, Problem: err.Error()}}
	}
	s := status{Status: train.Status{Run: path, Model: r.Sweep, State: finished, Epochs: len(r.Trials)}}
	for _, t := range r.Trials {
		if t.Metrics == nil {
			s.State = train.Interrupted
			continue
		}
		s.Epoch++
		s.Dataset = t.Metrics.Dataset
		s.take(t.Metrics.Values)
	}
	if s.State == train.Interrupted && folder.Held(path) {
		s.State = training
	}
	s.Modified = modified(path, sweep.ResultsFile)
	return s
}

// take stores the measure of a trial if it is better than the stored one.
func (s *status) take(of metrics.Values) {
	for _, v := range of {
		m, known := metrics.MeasureOf(v.Name)
		if !known || v.Missing != "" || m.Better == metrics.Neither {
			continue
		}
		if was, ok := s.Metrics.Number(v.Name); !ok || (v.Number > was) == (m.Better == metrics.Higher) {
			s.Metrics.Set(v.Name, v.Number)
		}
		return
	}
}

// measure returns the value by which a run or a sweep is judged first. name is "" if there is none.
func (s status) measure() (name string, value float64) {
	keys := train.Judging(s.Metrics)
	if _, run := s.Metrics.Number("loss"); !run { // a sweep
		for _, v := range s.Metrics.Shown() {
			keys = append(keys, v.Name)
		}
	}
	for _, key := range keys {
		if value, ok := s.Metrics.Number(key); ok {
			return key, value
		}
	}
	return "", 0
}

// text returns a description of the state in one line.
func (s status) text() string {
	text := fmt.Sprintf("%s: epoch %d of %d", s.State, s.Epoch, s.Epochs)
	if loss, ok := s.Metrics.Number("loss"); ok {
		text += ", loss " + numeral.Float(loss)
	}
	if name, value := s.measure(); name != "" {
		text += fmt.Sprintf(", %s %s", name, numeral.Float(value))
	}
	return text
}

// modified returns when a file was last written, the zero time if it is missing.
func modified(path, name string) (t time.Time) {
	if info, err := os.Stat(filepath.Join(path, name)); err == nil {
		t = info.ModTime()
	}
	return t
}

// stream calls look until the client disconnects, and sends each result as an event with data. It sends nothing if event is
// "".
func (s *Server) stream(w http.ResponseWriter, r *http.Request, look func() (event string, data any, err error)) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, ": connected\n\n")
	_ = control.Flush()
	timer := time.NewTicker(s.options.Every)
	defer timer.Stop()
	for {
		event, data, err := look()
		if err != nil { // the files are being replaced or are gone: the next look decides
			event = ""
		}
		if event != "" {
			text, err := json.Marshal(data)
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
	}
}

// runEvents sends the curves of a run whenever it has a new epoch, and the end of its training.
func (s *Server) runEvents(w http.ResponseWriter, r *http.Request) {
	path, err := s.findKind(r, func(path string) bool { return statusOf(path).Model != "" })
	if err != nil {
		fail(w, err)
		return
	}
	was := ""
	var before status
	s.stream(w, r, func() (string, any, error) {
		at := statusOf(path)
		stamp := fmt.Sprint(stampOf(path, folder.Metrics), at.State)
		if stamp == was {
			return "", nil, nil
		}
		charts, err := page.ChartsOf(path)
		if err != nil {
			return "", nil, err
		}
		was = stamp
		ended := before.State == training && at.State != training
		before = at
		return "run", map[string]any{"charts": charts, "text": at.text(), "ended": ended}, nil
	})
}

// sweepEvents reports that a sweep has new results.
func (s *Server) sweepEvents(w http.ResponseWriter, r *http.Request) {
	path, err := s.findKind(r, sweep.Is)
	if err != nil {
		fail(w, err)
		return
	}
	was := stampOf(path, sweep.ResultsFile)
	s.stream(w, r, func() (string, any, error) {
		stamp := stampOf(path, sweep.ResultsFile)
		if stamp == was {
			return "", nil, nil
		}
		was = stamp
		return "sweep", map[string]any{}, nil
	})
}

// listEvents first sends all rows of the list, and then the rows that have changed: after a reconnect a browser needs all
// rows.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	var was map[string]row
	s.stream(w, r, func() (string, any, error) {
		var changed []row
		here := map[string]row{}
		for _, r := range s.list.rows() {
			here[r.Path] = r
			if r != was[r.Path] {
				changed = append(changed, r)
			}
		}
		var gone []string
		for path := range was {
			if _, ok := here[path]; !ok {
				gone = append(gone, path)
			}
		}
		first := was == nil
		was = here
		if len(changed) == 0 && len(gone) == 0 && !first {
			return "", nil, nil
		}
		return "list", map[string]any{"rows": changed, "gone": gone, "whole": first}, nil
	})
}
