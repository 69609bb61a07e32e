package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/internal/study"
	"tessera/config"
	"tessera/data"
	"tessera/metrics"
	"tessera/parallel/mpi"
	"tessera/part"
	"tessera/part/table"
	"tessera/sweep"
	"tessera/sweep/fleet"
	"tessera/train"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// The exit codes that scripts rely on.
const (
	exitInternal    = 1
	exitUsage       = 2 // also an unknown model
	exitConfig      = 3
	exitData        = 4 // missing, failing a checksum or of the wrong size
	exitDiverged    = 5
	exitCheckpoint  = 6  // damaged, not matching or not readable
	exitWrite       = 7  // disk full, permission
	exitSweep       = 8  // a sweep finished with failed trials
	exitLost        = 9  // processes that train together, or the connection to other machines, are lost for good
	exitPreempted   = 75 // stopped by a scheduler's signal, with a checkpoint: to be run again
	exitInterrupted = 130
)

// usageError is an error in the arguments of the command.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// workError is an error of a command's function; all other errors come from cobra, before the function is called.
type workError struct{ error }

// Unwrap gives the cause.
func (e workError) Unwrap() error { return e.error }

// work wraps the function of a command.
func work(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return workError{err}
		}
		return nil
	}
}

// explain prints the error and returns the exit code. run is the folder of a training, "" if unknown.
func explain(command *cobra.Command, err error, stderr io.Writer, run string) int {
	code := exitCode(err)
	var diagnostics *table.Diagnostics
	switch {
	case err == nil:
	case errors.As(err, &diagnostics): // they contain their positions
		fmt.Fprintln(stderr, err)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "tessera: interrupted")
	default:
		fmt.Fprintln(stderr, "tessera:", concise(err))
	}
	var damaged *checkpoint.Error
	if errors.As(err, &damaged) && damaged.Mismatch && filepath.Base(damaged.Path) == folder.State {
		fmt.Fprintln(stderr, "a run resumes only with the images and the config.toml that it was trained with: restore them, or train a new run")
	} else if errors.As(err, &damaged) && filepath.Base(damaged.Path) == folder.State {
		fmt.Fprintf(stderr, "a run cannot resume without its state: restore a copy, or train it again with `tessera train MODEL -f %s`\n",
			filepath.Join(filepath.Dir(damaged.Path), folder.Config))
	}
	if code == exitCheckpoint && errors.Is(err, fs.ErrPermission) {
		fmt.Fprintln(stderr, "all files of a run must be readable: give yourself the permission (chmod -R u+rX RUN), or ask their owner for a copy")
	}
	if code == exitUsage {
		hint(command, err, stderr)
	}
	if code == exitLost && !errors.Is(err, fleet.ErrLost) && !errors.Is(err, fleet.ErrNoServer) {
		afterLoss(stderr, run)
	}
	remedy(command, err, stderr)
	return code
}

// hint prints a remedy for a usage error without one.
func hint(command *cobra.Command, err error, stderr io.Writer) {
	var unknown *config.UnknownModel
	var unknownSweep *config.UnknownSweep
	var unknownTable *study.Unknown
	var place placeError
	var out outError
	switch {
	case errors.As(err, &place):
		if run := filepath.Join("runs", place.path); findFolder(run) == nil {
			fmt.Fprintf(stderr, "did you mean %q?\n", run)
		}
	case errors.As(err, &unknown):
		listModels(command, unknown, stderr)
	case errors.As(err, &unknownSweep), errors.As(err, &unknownTable), errors.Is(err, folder.ErrNotRun), errors.Is(err, folder.ErrLocked), errors.Is(err, fleet.ErrRefused), errors.Is(err, fleet.ErrAddress):
	case errors.Is(err, folder.ErrForeign):
		fmt.Fprintln(stderr, "nothing was replaced: move it away, or give another --out")
	case errors.Is(err, folder.ErrWorkingFolder), errors.Is(err, folder.ErrNotFolder):
		fmt.Fprintln(stderr, "give another --out")
	case errors.As(err, &out) && errors.Is(err, folder.ErrExists) && !folder.Replaceable(out.path):
		fmt.Fprintln(stderr, "give another --out: the folder contains files that tessera did not write, which are never replaced")
	case errors.Is(err, folder.ErrExists):
		fmt.Fprintln(stderr, "give another --out, or --force to replace that run")
	default:
		fmt.Fprintf(stderr, "see %q for the usage\n", command.CommandPath()+" --help")
	}
}

// listModels suggests how to list all models if the error of an unknown name does not list them.
func listModels(command *cobra.Command, unknown *config.UnknownModel, stderr io.Writer) {
	if unknown.Suggests() {
		return
	}
	list := "tessera list models"
	if f := command.Flags().Lookup("file"); f != nil && f.Value.String() != "" {
		list += " -f " + f.Value.String()
	}
	fmt.Fprintf(stderr, "`%s` shows all %d\n", list, len(unknown.Names))
}

// exitCode maps errors to exit codes.
func exitCode(err error) int {
	var (
		fromWork     workError
		usage        usageError
		place        placeError
		unknown      *config.UnknownModel
		unknownSweep *config.UnknownSweep
		unknownTable *study.Unknown
		failed       *sweep.Failed
		diagnostics  *table.Diagnostics
		setting      part.KeyError
		missing      *data.Error
		diverged     *train.Diverged
		notFinite    *metrics.NotFinite
		damaged      *checkpoint.Error
		unwritten    *folder.WriteError
		unread       *fs.PathError
		elsewhere    *mpi.Failed
		unjoined     *mpi.SetupError
		different    *train.Different
		locked       lockedTrial
		halted       *train.Interruption
		unfinished   incomplete
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &elsewhere):
		return elsewhere.Code
	case lost(err):
		return exitLost
	case errors.As(err, &unwritten): // an interrupted run without a checkpoint is lost
		return exitWrite
	case errors.As(err, &halted) && halted.Preempted:
		return exitPreempted
	case errors.Is(err, train.ErrInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &locked):
		return exitPreempted
	case !errors.As(err, &fromWork), errors.As(err, &usage), errors.As(err, &unjoined), errors.As(err, &different), errors.As(err, &place), errors.As(err, &unknown), errors.As(err, &unknownSweep),
		errors.As(err, &unknownTable), errors.Is(err, folder.ErrExists), errors.Is(err, folder.ErrForeign), errors.Is(err, folder.ErrNotRun), errors.Is(err, folder.ErrLocked),
		errors.Is(err, folder.ErrWorkingFolder), errors.Is(err, tessera.ErrNoGradients):
		return exitUsage
	case errors.Is(err, fleet.ErrLost), errors.Is(err, fleet.ErrNoServer):
		return exitLost
	case errors.Is(err, fleet.ErrRefused), errors.Is(err, fleet.ErrAddress):
		return exitUsage
	case errors.As(err, &failed), errors.As(err, &unfinished):
		return exitSweep
	case errors.As(err, &diagnostics), errors.As(err, &setting):
		return exitConfig
	case errors.As(err, &missing):
		return exitData
	case errors.As(err, &diverged), errors.As(err, &notFinite):
		return exitDiverged
	case errors.As(err, &damaged), errors.As(err, &unread): // other input files have separate errors
		return exitCheckpoint
	}
	return exitInternal
}

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

// The errors of the command-line library whose words are not for users.
var (
	together = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	alone    = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set they must all be set; missing \[(.*)\]$`)
	unitless = regexp.MustCompile(`time: (missing unit in duration|unknown unit ".*" in duration|invalid duration) ".*"$`)
)

// plainly says an error of the command-line library in other words.
func plainly(err error) error {
	if err == nil || errors.As(err, new(workError)) {
		return err
	}
	text := err.Error()
	if found := together.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s cannot be given together; give one of them", flagNames(found[1]))
	}
	if found := alone.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s is missing: %s are given together", flagNames(found[2]), flagNames(found[1]))
	}
	return err
}

// flagNames are the names of flags as users give them: "--a, --b and --c".
func flagNames(list string) string {
	names := strings.Fields(list)
	for i, name := range names {
		names[i] = "--" + name
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
