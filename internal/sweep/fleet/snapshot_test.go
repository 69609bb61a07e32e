package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

func TestTheStepOfASnapshotIsThatOfItsBytes(t *testing.T) {
	run := t.TempDir()
	state, err := checkpoint.Encode(&checkpoint.File{Metadata: map[string]string{"step": "100"},
		Tensors: []checkpoint.Tensor{{Name: "weight", Shape: []int{2}, Data: []float32{1, 2}}}}, nil)
	fatal.If(t, err)
	write := func(name string, b []byte) {
		t.Helper()
		fatal.If(t, os.WriteFile(filepath.Join(run, name), b, 0o600))
	}
	write(folder.Config, nil)
	write(folder.State, state)
	if files, step, err := snapshot(run); err != nil || step != 100 || len(files) != 2 {
		t.Errorf("got %d files of step %d, error %v; want 2 of step 100", len(files), step, err)
	}
	state[len(state)-1] ^= 1
	write(folder.State, state)
	if _, _, err := snapshot(run); err == nil {
		t.Error("a damaged state: no error")
	}
}
