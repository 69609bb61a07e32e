package fleet

import (
	"encoding/json"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// messages returns one valid message of each kind.
func messages() map[string]message {
	h := self(2)
	loss := 0.5
	h.Running = []running{{Trial: newID(), Epoch: 1, Epochs: 2, Step: 3, Steps: 4, Loss: &loss}}
	return map[string]message{
		"hello":   &h,
		"welcome": &welcome{Protocol: protocol, Sweep: newID(), State: stateRun, Lease: 1000},
		"task":    &task{Protocol: protocol, Trial: newID(), Declaration: "[model.m]", Split: "test", Fitted: []string{sum(nil)}, Tested: []string{}},
		"record":  &record{Tries: []try{{Worker: "w", Problem: "p"}}, Step: 7, Checkpoint: someRun()},
		"result":  &result{Protocol: protocol, Trial: newID(), Task: sum(nil), Worker: "w", Digest: sum(nil), Run: someRun()},
		"need":    &need{Trial: newID(), What: needStart},
		"supply":  &supply{Manifest: someRun()},
	}
}

// empty returns an empty message of a kind.
func empty(kind string) message {
	switch kind {
	case "hello":
		return &hello{}
	case "welcome":
		return &welcome{}
	case "task":
		return &task{}
	case "record":
		return &record{}
	case "result":
		return &result{}
	case "need":
		return &need{}
	}
	return &supply{}
}

// fuzz checks that every decoded message is valid, and stays the same when it is encoded and decoded again.
func fuzz(f *testing.F, kind string) {
	text, err := encode(messages()[kind])
	fatal.If(f, err)
	f.Add(text)
	f.Add([]byte("{}"))
	f.Add([]byte(`{"protocol":1} {}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := empty(kind)
		if decode(b, m) != nil {
			return
		}
		fatal.If(t, m.check(), "an invalid message was accepted")
		text, err := json.Marshal(m)
		fatal.If(t, err)
		again := empty(kind)
		if err := decode(text, again); err != nil && len(text) <= mostMessage {
			t.Fatalf("%s is not accepted again: %v", text, err)
		}
	})
}

func FuzzHello(f *testing.F)   { fuzz(f, "hello") }
func FuzzWelcome(f *testing.F) { fuzz(f, "welcome") }
func FuzzTask(f *testing.F)    { fuzz(f, "task") }
func FuzzRecord(f *testing.F)  { fuzz(f, "record") }
func FuzzResult(f *testing.F)  { fuzz(f, "result") }
func FuzzNeed(f *testing.F)    { fuzz(f, "need") }
func FuzzSupply(f *testing.F)  { fuzz(f, "supply") }

// FuzzManifest checks that a manifest yields only files of a run, each with its checksum, whatever bytes the store
// contains.
func FuzzManifest(f *testing.F) {
	text, err := json.Marshal(someRun())
	fatal.If(f, err)
	f.Add(text, []byte("x"))
	f.Add([]byte(`{"files":[{"name":"../../etc/passwd","size":1,"sha256":""}],"parts":[]}`), []byte("x"))
	f.Fuzz(func(t *testing.T, text, stored []byte) {
		var m manifest
		if json.Unmarshal(text, &m) != nil || m.check() != nil {
			return
		}
		files, err := m.split(stored)
		if err != nil {
			return
		}
		for i, file := range files {
			if sum(file.Data) != m.Files[i].SHA256 || !isKnown(file.Name) {
				t.Fatalf("file %q came out", file.Name)
			}
		}
	})
}

func isKnown(name string) bool {
	for _, k := range []string{"config.toml", "env.json", "metrics.jsonl", "state.safetensors", "model.safetensors", "best.safetensors", "eval.json", "set"} {
		if name == k {
			return true
		}
	}
	return false
}

func TestEveryKindOfMessageIsFuzzedFromAValidOne(t *testing.T) {
	for kind, m := range messages() {
		text, err := encode(m)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		expect.NoError(t, decode(text, empty(kind)), kind)
		for _, bad := range []string{string(text) + "x", string(text[:len(text)-1]) + `,"unknown":1}`, "", "null x"} {
			if decode([]byte(bad), empty(kind)) == nil {
				t.Errorf("%s: accepted %s", kind, bad)
			}
		}
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	for _, name := range []string{"../config.toml", "/etc/passwd", "a/b", "", ".", "test.json", "atoms.png", "CONFIG.TOML"} {
		m := someRun()
		m.Files[0].Name = name
		if m.check() == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	m := someRun()
	m.Files = append(m.Files, m.Files[0])
	m.Parts[0].Size = 2
	if m.check() == nil {
		t.Error("the same name twice was accepted")
	}
	m = someRun()
	m.Parts[0].Object = "../x"
	if m.check() == nil {
		t.Error("an object with a path was accepted")
	}
}
