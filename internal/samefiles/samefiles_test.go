package samefiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestFilesLeavesOutTimes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"results.csv", "timings.csv", "trials/a/metrics.jsonl", "trials/a/env.json", "trials/a/model.safetensors"} {
		path := filepath.Join(dir, name)
		fatal.If(t, os.MkdirAll(filepath.Dir(path), 0o777))
		fatal.If(t, os.WriteFile(path, []byte(name), 0o666))
	}
	got, err := Files(dir)
	fatal.If(t, err)
	want := map[string]string{"results.csv": "results.csv", filepath.Join("trials", "a", "model.safetensors"): "trials/a/model.safetensors"}
	expect.NoError(t, Differ(got, want, false))
	expect.AnyError(t, expect.Err(Files(filepath.Join(dir, "missing"))), "a folder that is not there")
}

func TestDifferNamesEveryFile(t *testing.T) {
	err := Differ(map[string]string{"a": "1", "b": "2", "d": "", "e.new": ""}, map[string]string{"a": "1", "b": "3", "c": ""}, true)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"b differs", "c is missing", "d should not be there"} {
		expect.Contains(t, err.Error(), want, err, "does not say")
	}
	for _, other := range []string{"a differs", "e.new"} {
		if strings.Contains(err.Error(), other) {
			t.Errorf("%v: says %q", err, other)
		}
	}
	if Differ(map[string]string{"e.new": ""}, nil, false) == nil {
		t.Error("an unfinished file is no difference")
	}
}
