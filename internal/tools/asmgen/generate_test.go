package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	arm, _ := filepath.Glob(filepath.Join(kernels, "*_neon_arm64.*"))
	if err != nil || len(marked)+len(arm) != len(files) {
		t.Errorf("%d generated files in the folder, asmgen writes %d (%v)", len(marked)+len(arm), len(files), err)
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

var (
	asWord = regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.*)`)
	// Registers that belong to the system or to Go.
	reserved = regexp.MustCompile(`\bR(18|2[6-9]|3[01])\b|\b[xw](18|2[6-9]|3[01])\b`)
)

// Go's assembler does not see what words are.
func TestWordsAreTheInstructionsOfTheirComments(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	var words []uint32
	var text strings.Builder
	for name, file := range files {
		if !strings.HasSuffix(name, "_arm64.s") {
			continue
		}
		if found := reserved.Find(file); found != nil {
			t.Errorf("%s uses %s", name, found)
		}
		for _, m := range asWord.FindAllSubmatch(file, -1) {
			word, err := strconv.ParseUint(string(m[1]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, uint32(word))
			text.WriteString(string(m[2]) + "\n")
		}
	}
	assembler, err := exec.LookPath("aarch64-linux-gnu-as")
	if err != nil {
		t.Skip("needs aarch64-linux-gnu-as (Debian: binutils-aarch64-linux-gnu)")
	}
	object := filepath.Join(t.TempDir(), "words.o")
	c := exec.Command(assembler, "-o", object, "-")
	c.Stdin = strings.NewReader(text.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil || len(code) != 4*len(words) {
		t.Fatalf("%d bytes for %d words: %v", len(code), len(words), err)
	}
	comments := strings.Split(text.String(), "\n")
	for i, word := range words {
		if got := binary.LittleEndian.Uint32(code[4*i:]); got != word {
			t.Errorf("%q is %#08x, the word is %#08x", comments[i], got, word)
		}
	}
}
