package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/internal/train/folder"
)

// firstModels is the file that init writes.
//
//go:embed init.toml
var firstModels []byte

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init [DIR]",
		Short:   "Write a first models.toml, which can be trained at once",
		Long:    "Write a commented " + tessera.ModelsFile + " into DIR (default: the current folder; created if there is none).\nAn existing file is never replaced.",
		Example: "  tessera init\n  tessera train my-bars",
		Args:    cobra.MaximumNArgs(1),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			path := filepath.Join(dir, tessera.ModelsFile)
			if err := writeNew(path, firstModels); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nnext: %stessera train my-bars\n", path, enter(dir))
			return nil
		}),
	}
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
