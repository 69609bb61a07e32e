package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePrefix is the prefix of the names of programs that replace the command tessera in tests. The rest of the name is their
// seed.
const fakePrefix = "fake-seed-"

// fakeSeedNone is the seed of a program that finds no data.
const fakeSeedNone = "none"

// fake simulates the command tessera for a tiny model, one without a decoder and one sweep, and returns the exit code. The results depend on the
// seed.
func fake(seed string, args []string) int {
	out := func() string { return args[slices.Index(args, "--out")+1] }
	switch args[0] {
	case "list":
		fmt.Printf(`{%q: [{"name": "tiny"}%s]}`, args[1], map[string]string{"models": `, {"name": "flat"}`}[args[1]])
	case "check":
		fmt.Printf("[model.tiny]\nabout = %q\n[model.tiny.dataset]\nname = \"bars\"\nlimit = 0\n[model.tiny.train]\nepochs = 5\n", seed)
	case "train":
		if seed == fakeSeedNone {
			fmt.Fprintln(os.Stderr, "tessera: bars: no such data")
			return exitNoData
		}
		write(out(), "config.toml", "[model.tiny]\n"+map[string]string{"flat": "decoder = []\n"}[args[1]])
		write(out(), "model.safetensors", string(safetensors(`{"encoder.0.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, seed)))
		write(out(), "metrics.jsonl", fmt.Sprintf(`{"loss":%s,"seconds":%d}`, seed, os.Getpid()))
	case "sweep":
		write(out(), "results.csv", fmt.Sprintf("trial,mse\n%d,%s\n", os.Getpid(), seed))
		write(out(), "summary.csv", "mse\n"+seed+"\n")
	case "eval":
		fmt.Printf(`{"mse": %s}`, seed)
	case "encode":
		weight, err := os.ReadFile(filepath.Join(args[1], "model.safetensors"))
		if err != nil {
			panic(err)
		}
		write("", out(), string(weight))
	case "decode":
		if text, err := os.ReadFile(filepath.Join(args[1], "config.toml")); err != nil || strings.Contains(string(text), "decoder = []") {
			return exitRefused
		}
		write("", out(), "the same for every code")
	}
	return 0
}

func write(folder, name, text string) {
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		panic(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		panic(err)
	}
}

// safetensors returns a file with the given header and data.
func safetensors(header, data string) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

// fakes returns a comparison of two simulated programs with the given seeds.
func fakes(t *testing.T, base, now string) *comparison {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	c := &comparison{cache: t.TempDir(), work: work, empty: work}
	for _, side := range []struct {
		p    *program
		seed string
	}{{&c.base, base}, {&c.now, now}} {
		side.p.threads = 1
		side.p.binary = filepath.Join(t.TempDir(), fakePrefix+side.seed)
		if err := os.Symlink(self, side.p.binary); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	return c
}
