package main

import (
	"os/exec"
	"testing"
)

// The loop of the largest tile, in the model of every processor, and the loops of other kernels beside those of a compiler.
func TestLoopsForARMArePredictedToBeFast(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if mca, err := newest("LLVM_MCA", "llvm-mca"); err == nil {
		for _, tile := range []string{"tile32_neon_8x3", "tile64_neon_8x3"} {
			for _, p := range processors {
				got, peak, err := share(mca, p, tile, files)
				if err != nil {
					t.Fatal(err)
				}
				if got < 0.85*peak {
					t.Errorf("%s on %s: %.2f multiply-adds per cycle of %.2f", tile, p, got, peak)
				}
			}
		}
	} else {
		t.Log("left out: needs llvm-mca (Debian: llvm)")
	}
	clang, err := newest("CLANG", "clang")
	if err != nil || exec.Command(clang, "--target=aarch64-linux-gnu", "--version").Run() != nil {
		t.Skip("needs clang")
	}
	list, err := chains(clang, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.ours > c.compiled || c.compiled == 0 {
			t.Errorf("%s: %.2f instructions per element, %.2f by %s", c.name, c.ours, c.compiled, clang)
		}
	}
}
