package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tessera/config"
	"tessera/train/checkpoint"
)

// readConfig reads the one model of a run's config.toml.
func readConfig(path string) (*config.Model, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, checkpoint.Errorf(path, "is missing")
	} else if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return parseConfig(path, text)
}

// parseConfig reads the one model of such a text; path stands for it in errors.
func parseConfig(path string, text []byte) (*config.Model, error) {
	f, err := config.Load(path, text)
	if err != nil {
		return nil, err
	}
	f.Trained = true
	names := f.Names()
	if len(names) != 1 {
		return nil, checkpoint.Errorf(path, "holds %d models, want the one that the run is of", len(names))
	}
	return f.Model(names[0])
}
