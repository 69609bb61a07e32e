package train_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

func TestTheHistoryIsReadFromMetricsLines(t *testing.T) {
	dir := t.TempDir()
	if epochs, err := train.ReadHistory(dir); len(epochs) > 0 || err != nil {
		t.Errorf("without a file: got %v, %v", epochs, err)
	}
	write := func(text string) {
		t.Helper()
		fatal.If(t, os.WriteFile(filepath.Join(dir, folder.Metrics), []byte(text), 0o666))
	}
	write(`{"epoch":1,"step":4,"loss":0.5,"mse":0.5,"val_mse":null,"code_hoyer":0.1,"dead_units":3}
{"epoch":2,"loss":0.25,"val_mse":0.2,"code_hoyer":0.3,"dead_units":0}
`)
	epochs, err := train.ReadHistory(dir)
	fatal.If(t, err)
	text, err := json.Marshal(epochs)
	want := `[{"Epoch":1,"Values":{"epoch":1,"step":4,"loss":0.5,"mse":0.5,"val_mse":null,"code_hoyer":0.1,"dead_units":3}},` +
		`{"Epoch":2,"Values":{"epoch":2,"loss":0.25,"val_mse":0.2,"code_hoyer":0.3,"dead_units":0}}]`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for _, text := range []string{"{\"epoch\":1}\nno", "{\"loss\":1}"} {
		write(text)
		expect.As[*checkpoint.Error](t, expect.Err(train.ReadHistory(dir)), "line", text)
	}
}
