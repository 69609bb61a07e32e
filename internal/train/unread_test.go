package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// A file on disk that changes while a model is fitted is an error of the file, whatever reads it.
func TestAFileThatChangesWhileItIsFittedIsNamed(t *testing.T) {
	for name, text := range map[string]string{
		"network":    `encoder = [{ kind = "dense", units = 4 }]` + "\ntrain = { epochs = 50, batch = 64 }",
		"kmeans":     `kind = "kmeans"` + "\ncomponents = 4\nbatch = 64\niterations = 50\ntolerance = 0.0",
		"nmf":        `kind = "nmf"` + "\ncomponents = 4\nbatch = 64\niterations = 50\ntolerance = 0.0",
		"dictionary": `kind = "dictionary"` + "\ncomponents = 4\nbatch = 64\niterations = 50\ntolerance = 0.0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := lists.Of(4000*64, func(i int) float32 { return float32(i*7919%101) / 101 })
			file := filepath.Join(t.TempDir(), "samples.npy")
			fatal.If(t, data.WriteImages(file, []int{64}, values))
			m := model(t, fmt.Sprintf("[model.m]\ndataset = { file = %q, memory = \"250KB\" }\n%s", filepath.ToSlash(file), text))
			cut := func(Progress) {
				expect.NoError(t, os.Truncate(file, 100_000))
			}
			_, err := Run(t.Context(), m, Options{Backend: engine.Backend{}, Out: place(t), Report: cut})
			if _, ok := errors.AsType[*data.Error](err); !ok || !strings.Contains(err.Error(), "has changed while it was read") || strings.Contains(err.Error(), "panicked") {
				t.Errorf("got %v", err)
			}
		})
	}
}
