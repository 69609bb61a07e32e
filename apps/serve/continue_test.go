package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tessera"
	"tessera/internal/coder"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// talker returns a folder with a run of a small model of language over bytes.
func talker(t *testing.T) string {
	t.Helper()
	text, folder := filepath.Join(t.TempDir(), "text.txt"), filepath.Join(t.TempDir(), "talker")
	fatal.If(t, os.WriteFile(text, []byte(strings.Repeat("a bee, a bär; ", 60)), 0o600))
	trainRun(t, folder, fmt.Sprintf(`[model.m]
dataset   = { file = %q, length = 16, tokens = "bytes", validation = 0 }
encoder   = [{ kind = "embedding", vocabulary = 260, units = 16 }, { kind = "position" }, { kind = "transformer", causal = true }]
decoder   = []
head.next = { layers = [{ kind = "reshape", shape = [16, 16] }, { kind = "token_dense", units = 260 }] }
loss      = [{ kind = "next_token", on = "next" }]
train     = { epochs = 3, batch = 8 }
`, text))
	return folder
}

func TestTextsAreContinuedAtOnceAndInPieces(t *testing.T) {
	folder := talker(t)
	s, err := New([]Model{{Folder: folder}}, Options{Workers: 3})
	fatal.If(t, err)
	defer s.Close()
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	list := run.Tokens().Encode("a b")
	begin := len(run.Tokens().Decode(list))
	err = run.Continue(t.Context(), list, 30, coder.Sampling{Temperature: 0.7, TopP: 1, Seed: 3}, func(token int32) error {
		list = append(list, token)
		return nil
	})
	fatal.If(t, err)
	want, _ := json.Marshal(run.Tokens().Decode(list)[begin:])
	var wanted string
	_ = json.Unmarshal(want, &wanted) // bytes that are no text become the sign for them
	asked := `{"id":"7","text_input":"a b","parameters":{"max_tokens":30,"temperature":0.7,"seed":3}}`
	for range 2 {
		a := send(s, "POST", "/v2/models/talker/generate", []byte(asked))
		var got struct {
			ID   string `json:"id"`
			Text string `json:"text_output"`
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || got.ID != "7" || got.Text != wanted {
			t.Errorf("status %d: got %q (%v), want %q", a.status, a.body, err, wanted)
		}
	}
	var group sync.WaitGroup
	for range 4 { // texts that are continued at the same time do not disturb each other
		group.Go(func() {
			a := send(s, "POST", "/v2/models/talker/generate", []byte(asked))
			got := map[string]string{}
			if err := json.Unmarshal(a.body, &got); err != nil || got["text_output"] != wanted {
				t.Errorf("beside others: got %s (%v), want %q", a.body, err, wanted)
			}
			send(s, "POST", "/v2/models/talker/generate", []byte(`{"text_input":"bee bee","parameters":{"max_tokens":20}}`))
		})
	}
	group.Wait()
	letter := strings.IndexFunc(wanted, func(r rune) bool { return r >= 'A' && r <= 'z' && r != '\\' })
	stop := wanted[letter : letter+1]
	stopped := map[string]string{}
	fatal.If(t, json.Unmarshal(send(s, "POST", "/v2/models/talker/generate", []byte(strings.Replace(asked, `"seed"`, fmt.Sprintf(`"stop":[%q],"seed"`, stop), 1))).body, &stopped))
	before, _, _ := strings.Cut(wanted, stop)
	expect.Equal(t, stopped["text_output"], before, "up to", stop)
	a := send(s, "POST", "/v2/models/talker/generate_stream", []byte(asked))
	pieces, joined := 0, ""
	for event := range strings.SplitSeq(strings.TrimSpace(string(a.body)), "\n\n") {
		var got struct {
			Text string `json:"text_output"`
		}
		fatal.If(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &got), event)
		pieces, joined = pieces+1, joined+got.Text
	}
	if pieces < 2 || joined != wanted {
		t.Errorf("%d pieces %q, want %q", pieces, joined, wanted)
	}
}

func TestRequestsToContinueTextsAreChecked(t *testing.T) {
	s, err := New([]Model{{Folder: talker(t)}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	for body, want := range map[string]string{
		`{"text_input":""}`: "the prompt is empty",
		`{"text_input":"a","parameters":{"max_tokens":0}}`:   "max_tokens: got 0, want 1 to 16384",
		`{"text_input":"a","parameters":{"max_tokens":1e9}}`: "max_tokens",
		`{"text_input":"a","parameters":{"temperature":-1}}`: "temperature: got -1, want a number >= 0",
		`{"text_input":"a","parameters":{"top_p":0}}`:        "top_p: got 0, want a number in (0,1]",
		`{"text_input":"a","parameters":{"top_k":-1}}`:       "top_k",
		`{"text_input":"a","parameters":{"temprature":1}}`:   "temprature",
		`{"text_input":"a"} {}`:                              "more than one",
		`{"text_input":"a"`:                                  "body:",
		``:                                                   "body:",
		`{"text_input":["a"]}`:                               "text_input",
	} {
		for _, path := range []string{"generate", "generate_stream"} {
			if a := send(s, "POST", "/v2/models/talker/"+path, []byte(body)); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), want) {
				t.Errorf("%s of %s: status %d, %s, want %q", path, body, a.status, a.body, want)
			}
		}
	}
	other := newServer(t, Options{})
	if a := send(other, "POST", "/v2/models/small/generate", []byte(`{"text_input":"a"}`)); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), "continues no texts") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}
