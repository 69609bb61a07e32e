package tessera_test

import (
	"os"
	"slices"
	"testing"

	"tessera"
)

func TestARunIsReadFromAFileSystemOrFromBytes(t *testing.T) {
	run := bars(t, "2")
	images := randomImages(run, 3, 1)
	want, err := run.Encode(images)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(run.Path + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*tessera.Run, error){
		"a file system": func() (*tessera.Run, error) {
			return tessera.OpenFS(os.DirFS(run.Path), ".", tessera.Options{Threads: 1})
		},
		"bytes": func() (*tessera.Run, error) { return tessera.ReadModel(file, tessera.Options{Threads: 1}) },
	} {
		opened, err := open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := opened.Encode(images)
		if err != nil || !slices.Equal(got, want) || opened.Epoch != 2 || opened.Model.Name != "bars" {
			t.Errorf("%s: other codes, epoch %d, model %q, error %v", name, opened.Epoch, opened.Model.Name, err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}
