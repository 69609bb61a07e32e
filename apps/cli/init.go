package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tessera"
	"tessera/internal/train/folder"
)

// firstModels is the file that init writes.
//
//go:embed init.toml
var firstModels []byte

func init() {
	Commands.Register("init", "Write a first models.toml, which can be trained at once", func() Command { return &initCommand{Dir: "."} })
}

// initCommand is the command init.
type initCommand struct {
	Dir string `arg:"DIR" optional:"true" is:"place" doc:"the folder of the file"`
}

// Help implements [Command].
func (f *initCommand) Help() Help {
	return Help{
		Long:     "Write a commented " + tessera.ModelsFile + " into DIR (default: the current folder; created if there is none).\nAn existing file is never replaced.",
		Examples: []string{"tessera init", "tessera train my-bars"},
	}
}

// Do implements [Command].
func (f *initCommand) Do(cmd *Call) error {
	path := filepath.Join(f.Dir, tessera.ModelsFile)
	if err := writeNew(path, firstModels); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nnext: %stessera train my-bars\n", path, enter(f.Dir))
	return err
}

// enter returns the shell command that changes to a folder, "" for the current one.
func enter(dir string) string {
	if filepath.Clean(dir) == "." {
		return ""
	}
	return "cd " + dir + " && "
}

// writeNew creates a file, and its folder if necessary. If the file cannot be written completely, it is removed.
func writeNew(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("init: %s exists already and is not replaced; give another folder: tessera init DIR", path)
	}
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}
