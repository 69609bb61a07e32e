package data

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/fatal"
)

func TestDamagedFilesOfEveryFormatNeverPanic(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 12))
	dir := t.TempDir()
	refused := 0
	for _, name := range []string{"half.npy", "arrays.npz", "codes.npz", "tensors.safetensors", "birds.csv", "picture.png", "picture.bmp", "picture.gif", "turned6.jpg"} {
		whole, err := os.ReadFile(filepath.Join("testdata", name))
		fatal.If(t, err)
		for range 60 {
			b := slices.Clone(whole)
			for range 1 + r.IntN(3) {
				b[r.IntN(min(len(b), 400))] = byte(r.Uint32())
			}
			if r.IntN(3) == 0 {
				b = b[:r.IntN(len(b))]
			}
			for _, like := range []Source{nil, &Files{Kind: "npz", Tensor: "x"}, &Files{Kind: "safetensors", Tensor: "acts"}} {
				_, err := ReadRows(background, write(t, dir, name, b), nil, like)
				if _, ok := errors.AsType[*Error](err); err != nil && !ok {
					t.Fatalf("%s: %v is no *Error", name, err)
				}
				if err != nil {
					refused++
				}
			}
		}
	}
	if refused < 300 {
		t.Errorf("only %d damaged files were refused", refused)
	}
}
