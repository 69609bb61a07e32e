// Asmgen writes the assembly kernels of package kernel, with their Go declarations, into the folder that is its
// argument: one pair of files for each instruction set and family of kernels. asmgen -predict prints what is predicted for arm64 instead.
package main

import (
	"log"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: asmgen FOLDER, or asmgen -predict")
	}
	if os.Args[1] == "-predict" {
		if err := predict(); err != nil {
			log.Fatal(err)
		}
		return
	}
	files, err := generate()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
