package config

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A data set may be a path: the file, or its name if it does not exist yet, says which data set reads it. The keys file and test are those
// of every data set of files, and equal declarations have equal text.
func TestADataSetIsAPath(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "genes.dat")
	fatal.If(t, os.WriteFile(table, []byte("a,b\n1,2\n3,5\n"), 0o600))
	for declared, want := range map[string]string{
		`"genes.csv"`:                               `{ name = "csv", file = "genes.csv" }`,
		`"acts/layer.npy"`:                          `{ name = "npy", images = "acts/layer.npy" }`,
		`"photos/"`:                                 `{ name = "images", images = "photos/" }`,
		`"cells.parquet"`:                           `{ name = "csv", file = "cells.parquet" }`,
		fmt.Sprintf("%q", table):                    fmt.Sprintf(`{ name = "csv", file = %q }`, table),
		`{ file = "a.npz", test = "b.npz" }`:        `{ name = "npz", file = "a.npz", test_images = "b.npz" }`,
		`{ file = "../docs/img" }`:                  `{ name = "images", images = "../docs/img" }`,
		`{ file = "a.npz", absent = "zero" }`:       `{ name = "triples", file = "a.npz", absent = "zero" }`,
		`{ name = "npy", file = "a.npy" }`:          `{ name = "npy", images = "a.npy" }`,
		`{ file = "a.csv.gz", labels = "y" }`:       `{ name = "csv", file = "a.csv.gz", labels = "y" }`,
		`{ name = "images", file = "p", size = 8 }`: `{ name = "images", images = "p", size = 8 }`,
	} {
		text := func(dataset string) string {
			f, err := Load("models.toml", []byte("[model.m]\nkind = \"pca\"\ncomponents = 1\ndataset = "+dataset+"\n"))
			fatal.If(t, err, dataset)
			m, err := f.Model("m")
			fatal.If(t, err, dataset)
			return string(m.Text())
		}
		expect.Equal(t, text(declared), text(want), declared)
	}
	f, err := Load("models.toml", []byte("[model.m]\nkind = \"pca\"\ndataset = \"swimer\"\n"))
	if err == nil {
		_, err = f.Model("m")
	}
	expect.Error(t, err, `"swimmer"`)
	expect.Equal(t, data.KindOf("genes.xyz"), "")
}
