package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tessera"
	"tessera/internal/coder"
)

// continuation continues texts by a model of language, some at a time: each keeps what its tokens are computed from.
type continuation struct {
	run  *tessera.Run
	turn chan struct{}
}

// continues returns what continues n texts at a time by a run, nil if it is no model of language.
func continues(run *tessera.Run, n int) *continuation {
	if l := run.Language(); run.Tokens() == nil || l == nil || l.Shift != 1 {
		return nil
	}
	return &continuation{run, make(chan struct{}, n)}
}

// generateRequest is a request of Triton's generate extension.
type generateRequest struct {
	ID         string `json:"id"`
	Text       string `json:"text_input"`
	Parameters struct {
		Tokens      int      `json:"max_tokens"`
		Temperature float64  `json:"temperature"`
		TopK        int      `json:"top_k"`
		TopP        float64  `json:"top_p"`
		Seed        uint64   `json:"seed"`
		Stop        []string `json:"stop"`
	} `json:"parameters"`
}

// mostTokens is the number of tokens that a request may ask for.
const mostTokens = 1 << 14

func readGenerate(body []byte) (q generateRequest, err error) {
	q.Parameters.Tokens, q.Parameters.Temperature, q.Parameters.TopP, q.Parameters.Seed = 100, 1, 1, 1
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, fmt.Errorf("body: %w; want {\"text_input\": TEXT, \"parameters\": {\"max_tokens\", \"temperature\", \"top_k\", \"top_p\", \"seed\", \"stop\"}}", err)
	}
	if d.More() {
		return q, errors.New("body: got more than one JSON value")
	}
	p := q.Parameters
	within := func(name string, is bool, got any, want string) error {
		if is {
			return nil
		}
		return fmt.Errorf("parameters: %s: got %v, want %s", name, got, want)
	}
	return q, cmp.Or(within("max_tokens", p.Tokens > 0 && p.Tokens <= mostTokens, p.Tokens, fmt.Sprintf("1 to %d", mostTokens)),
		within("temperature", p.Temperature >= 0, p.Temperature, "a number >= 0"),
		within("top_k", p.TopK >= 0, p.TopK, "a whole number >= 0"),
		within("top_p", p.TopP > 0 && p.TopP <= 1, p.TopP, "a number in (0,1]"),
		within("stop", !slices.Contains(p.Stop, ""), p.Stop, "texts that are not empty"))
}

// write continues a text, and passes every piece of the continuation to do.
func (c *continuation) write(ctx context.Context, q generateRequest, do func(piece string) error) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p := q.Parameters
	how := coder.Sampling{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, Seed: p.Seed}
	_, err := c.run.ContinueText(ctx, c.run.Tokens().Encode(q.Text), p.Tokens, how, p.Stop, do)
	if errors.Is(err, tessera.ErrClosed) { // whose text has the path of the run
		return problemf(http.StatusServiceUnavailable, "the run of the model is closed")
	}
	return err
}

// generate returns a handler that continues a text: at once, or with server-sent events, one for every piece.
func (s *Server) generate(streams bool) http.HandlerFunc {
	return s.found(func(w http.ResponseWriter, r *http.Request, m *model, l *loaded) {
		began := time.Now()
		status, count := http.StatusOK, 0
		if err := s.continueText(w, r, m, l, streams); err != nil {
			status = fail(w, err)
		} else {
			count = 1
		}
		m.stats.answered(status, count, began)
		s.answers.Add(1)
	})
}

// continueText answers a request. An error comes before anything is written; a later one is an event.
func (s *Server) continueText(w http.ResponseWriter, r *http.Request, m *model, l *loaded, streams bool) error {
	if l.language == nil {
		return fmt.Errorf("generate: model %q continues no texts; send samples to infer", m.name)
	}
	b := s.borrow()
	defer b.giveBack()
	if err := b.read(w, r); err != nil {
		return err
	}
	q, err := readGenerate(b.body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	answer := map[string]any{"model_name": m.name, "model_version": l.version}
	if q.ID != "" {
		answer["id"] = q.ID
	}
	if !streams {
		text := ""
		if err := l.language.write(ctx, q, func(piece string) error { text += piece; return nil }); err != nil {
			return err
		}
		answer["text_output"] = text
		writeJSON(w, http.StatusOK, answer)
		return nil
	}
	flush, begun := http.NewResponseController(w).Flush, false
	event := func(name string, value any) error {
		begun = true
		answer[name] = value
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return err // the client is gone
		}
		return flush()
	}
	err = l.language.write(ctx, q, func(piece string) error { return event("text_output", piece) })
	if err != nil && begun && r.Context().Err() == nil {
		delete(answer, "text_output")
		err = event("error", err.Error())
	}
	if begun {
		return nil
	}
	return err
}
