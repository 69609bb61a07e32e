package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary simulate the command tessera if the name of the binary begins with fakePrefix.
func TestMain(m *testing.M) {
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), fakePrefix); ok {
		os.Exit(fake(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestFlagsThatCannotWork(t *testing.T) {
	good := options{base: "HEAD", jobs: 1, threads: 1}
	if err := good.check(nil); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*options) []string{
		"no base":    func(o *options) []string { o.base = ""; return nil },
		"no jobs":    func(o *options) []string { o.jobs = 0; return nil },
		"no threads": func(o *options) []string { o.threads = -1; return nil },
		"bad glob":   func(o *options) []string { o.only = "["; return nil },
		"argument":   func(*options) []string { return []string{"shallow"} },
	} {
		o := good
		if rest := change(&o); o.check(rest) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
