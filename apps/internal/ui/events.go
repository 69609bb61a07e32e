package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"tessera/show/page"
	"tessera/sweep"
	"tessera/train/folder"
)

// stream calls look until the reader leaves. What look gives is sent as the data of an event of that name; nothing is sent for "".
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
	path, err := s.find(r.PathValue("path"))
	if err != nil || statusOf(path).Model == "" {
		fail(w, errNotHere)
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
	path, err := s.find(r.PathValue("path"))
	if err != nil || !sweep.Is(path) {
		fail(w, errNotHere)
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

// listEvents sends all rows of the list, then those that have changed: a browser that connects again has missed some.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	var was map[string]row
	s.stream(w, r, func() (string, any, error) {
		var changed []row
		here := map[string]row{}
		for _, one := range s.list.rows() {
			here[one.Path] = one
			if one != was[one.Path] {
				changed = append(changed, one)
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

func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	rows := s.list.rows()
	if rows == nil {
		rows = []row{}
	}
	name, err := filepath.Abs(s.dir)
	if err != nil {
		name = s.dir
	}
	if err := page.WriteList(&b, name, rows); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // who left does not read it
}
