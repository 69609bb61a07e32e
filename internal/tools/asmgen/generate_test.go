package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

const kernels = "../../engine/kernel" // folder of the generated files

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(kernels, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what asmgen writes (%v): run go generate ./kernel", name, err)
		}
	}
	marked, err := filepath.Glob(filepath.Join(kernels, "*_avx*_amd64.*"))
	if err != nil || len(marked) != len(files) {
		t.Errorf("%d generated files in the folder, asmgen writes %d (%v)", len(marked), len(files), err)
	}
}

// AVX2 has sixteen vector registers and no mask registers. The assembler would accept other registers without an error.
func TestAVX2KernelsUseAVX2RegistersOnly(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	beyond := regexp.MustCompile(`\b([XY](1[6-9]|2\d|3[01])|Z\d+|K[0-7])\b`)
	for name, text := range files {
		if filepath.Ext(name) != ".s" || !bytes.Contains([]byte(name), []byte("avx2")) {
			continue
		}
		if found := beyond.Find(text); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
		if bytes.Count(text, []byte("VZEROUPPER")) < bytes.Count(text, []byte("TEXT")) {
			t.Errorf("%s: a kernel leaves the upper halves of its registers dirty", name)
		}
	}
}
