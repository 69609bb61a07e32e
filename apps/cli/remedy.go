package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config"
	"tessera/train/folder"
)

// remedy prints what to do about an error whose message does not say it: a wrong folder, a missing file, a full disk.
func remedy(command *cobra.Command, err error, stderr io.Writer) {
	var place placeError
	var unknown *config.UnknownModel
	var unwritten *folder.WriteError
	switch {
	case errors.As(err, &unwritten) && unwritten.Path != standardOutput:
		fmt.Fprintln(stderr, afterWriting(unwritten, isDistributed(command)))
	case errors.As(err, &place) && place.problem == noSuchFolder && findFolder(filepath.Join("runs", place.path)) != nil:
		fmt.Fprintln(stderr, whereRunsAre())
	case errors.As(err, &unknown) && !unknown.Suggests() && missingFile(tessera.ModelsFile) && unknown.File != "":
		fmt.Fprintf(stderr, "there is no %s in %s: change to the folder of yours, or name it with --file\n", tessera.ModelsFile, here())
	}
}

// afterWriting says how to continue when a file can be written again.
func afterWriting(unwritten *folder.WriteError, distributed bool) string {
	run := filepath.Dir(unwritten.Path)
	if missingFile(filepath.Join(run, folder.State)) {
		return "free space or get the permission, then run the command again; or write to another place with --out"
	}
	return fmt.Sprintf("the last checkpoint is kept: free space or get the permission, then `%s` continues", resumption(run, distributed))
}

// isDistributed reports whether a command, which may be nil, was given --distributed.
func isDistributed(command *cobra.Command) bool {
	if command == nil {
		return false
	}
	f := command.Flags().Lookup("distributed")
	return f != nil && f.Value.String() == "true"
}

// whereRunsAre says how to find a run.
func whereRunsAre() string {
	if findFolder("runs") != nil {
		return fmt.Sprintf("the current directory, %s, has no runs: change to the folder where the run was trained, or write its whole path", here())
	}
	return "`tessera runs` lists the runs of the current directory"
}

func missingFile(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// here is the current directory.
func here() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}
