package tessera_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// A run that was begun on one thread is resumed on one, whatever has become of its env.json: the state records the threads.
func TestResumeTakesThreadsAndBackEndFromTheState(t *testing.T) {
	parameters := func(damage func(path string) error) []byte {
		r := bars(t, "2")
		if err := errors.Join(r.Close(), damage(filepath.Join(r.Path, folder.Environment))); err != nil {
			t.Fatal(err)
		}
		var warned string
		resumed, err := tessera.Resume(context.Background(), r.Path, tessera.Options{Epochs: 4, Warn: func(text string) { warned += text }})
		if err != nil || strings.Contains(warned, "threads") {
			t.Fatalf("warned %q, %v", warned, err)
		}
		b, err := os.ReadFile(filepath.Join(r.Path, folder.Model))
		if err := errors.Join(err, resumed.Close()); err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := parameters(func(string) error { return nil })
	for what, damage := range map[string]func(path string) error{
		"removed":     os.Remove,
		"empty":       func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"other lines": func(path string) error { return os.WriteFile(path, []byte(`{"threads": 7, "backend": "tape"}`), 0o600) },
		"a folder":    func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if !bytes.Equal(parameters(damage), want) {
			t.Errorf("env.json %s: other parameters", what)
		}
	}
}

// The state of an earlier version does not record the threads: without env.json nobody knows them.
func TestAnOldRunWithoutItsRecordIsNotResumedOnOtherThreads(t *testing.T) {
	r := bars(t, "2")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(r.Path, folder.State)
	f, err := checkpoint.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	delete(f.Metadata, "arithmetic")
	b, err := checkpoint.Encode(f, nil)
	if err := errors.Join(err, os.WriteFile(state, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(r.Path, folder.Environment)
	resume := func(o tessera.Options) error {
		resumed, err := tessera.Resume(context.Background(), r.Path, o)
		return errors.Join(err, resumed.Close())
	}
	if err := resume(tessera.Options{}); err != nil {
		t.Fatal("with its record: ", err)
	}
	for _, text := range []string{"", "{}", `{"threads": 0, "backend": "engine"}`} {
		if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *checkpoint.Error
		if err := resume(tessera.Options{}); !errors.As(err, &damaged) || damaged.Path != record {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if err := resume(tessera.Options{Threads: 1, Backend: tessera.Engine}); err != nil {
		t.Error("with threads and back end given: ", err)
	}
}
