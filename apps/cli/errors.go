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
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/serve"
	"tessera/apps/show/doc"
	"tessera/attack/runs"
	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/parallel/mpi"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// The exit codes that scripts rely on.
const (
	exitInternal    = 1
	exitUsage       = 2 // an invalid command line; also an unknown model
	exitConfig      = 3
	exitData        = 4 // a data file is missing, does not match its checksum or has the wrong size
	exitDiverged    = 5
	exitCheckpoint  = 6  // a file of a run is damaged, does not match or is not readable
	exitWrite       = 7  // a file cannot be written: disk full, no permission
	exitSweep       = 8  // a sweep finished with failed trials
	exitLost        = 9  // the processes that train together, or the connection to other machines, are lost permanently
	exitPreempted   = 75 // a scheduler's signal stopped the command after a checkpoint; run the command again
	exitInterrupted = 130
)

// failure is the error of a command, with the values on which its advice depends.
type failure struct {
	err     error
	command *cobra.Command
	run     string // folder of the training, "" if unknown
}

// outcome contains the exit code for some errors, and advice for the user. Errors of libraries do not contain such advice,
// because libraries do not know the sub-commands.
type outcome struct {
	matches func(error) bool
	code    int
	advice  func(failure) string // returns lines of advice, "" for none; nil if there is never any
}

// outcomes lists all errors with an exit code other than [exitInternal]. The first match applies.
var outcomes = []outcome{
	{lost, exitLost, afterLoss},
	{of[*folder.WriteError](), exitWrite, afterWriting}, // an interrupted run without a checkpoint is lost
	{preempts, exitPreempted, afterInterruption},
	{is(train.ErrInterrupted, context.Canceled), exitInterrupted, afterInterruption},
	{of[lockedTrial](), exitPreempted, nil},
	{of[placeError](), exitUsage, whereRunsAre},
	{of[*config.UnknownModel](), exitUsage, whereModelsAre},
	{beforeWork, exitUsage, seeHelp},
	{of[*serve.OptionError](), exitUsage, seeHelp},
	{is(fleet.ErrNoToken), exitUsage, says("give --token-file, or listen on 127.0.0.1")},
	{of[usageError](), exitUsage, seeHelp},
	{of[config.Undecodable](), exitUsage, nil},
	{of[*config.UnknownSweep](), exitUsage, nil},
	{of[metrics.UnknownClass](), exitUsage, nil},
	{of[*study.Unknown](), exitUsage, nil},
	{is(folder.ErrNotRun, folder.ErrLocked, tessera.ErrNoClasses, tessera.ErrNoSampler, metrics.ErrNoSteps, metrics.ErrGiven), exitUsage, nil},
	{is(fleet.ErrRefused), exitUsage, aboutRefusal},
	{is(fleet.ErrAddress), exitUsage, says("give another address")},
	{is(fleet.ErrUnequal), exitCheckpoint, says("use --same-kernels, and test the memory of both machines")},
	{of[*sweep.Dropping](), exitUsage, says("nothing was replaced: --clean removes these trials; or give another --out")},
	{is(folder.ErrForeign), exitUsage, says("nothing was replaced: move it away, or give another --out")},
	{is(folder.ErrWorkingFolder, folder.ErrNotFolder), exitUsage, says("give another --out")},
	{is(folder.ErrExists), exitUsage, anotherOut},
	{is(runs.ErrNoGradients), exitUsage, seeHelp},
	{of[*mpi.SetupError](), exitUsage, seeHelp},
	{of[*train.Different](), exitUsage, seeHelp},
	{is(fleet.ErrLost), exitLost, nil},
	{is(fleet.ErrNoServer), exitLost, says("start the server or `tessera sweep NAME --listen`, and check address and firewall")},
	{of[*sweep.Failed](), exitSweep, nil},
	{of[incomplete](), exitSweep, nil},
	{of[*table.Diagnostics](), exitConfig, nil},
	{of[part.KeyError](), exitConfig, nil},
	{of[*sweep.Unlabelled](), exitData, says("leave the metric out: --svm=false, or other --metrics")},
	{of[*data.Error](), exitData, nil},
	{of[*train.Diverged](), exitDiverged, nil},
	{of[*metrics.NotFinite](), exitDiverged, nil},
	{of[*train.FormatError](), exitCheckpoint, nil},
	{of[*checkpoint.Error](), exitCheckpoint, aboutCheckpoint},
	{of[*fs.PathError](), exitCheckpoint, aboutCheckpoint}, // other input files have separate errors
}

// of returns a matcher for errors of a type.
func of[E error]() func(error) bool {
	return func(err error) bool { return errors.As(err, new(E)) }
}

// is returns a matcher for the given errors.
func is(these ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(these, func(this error) bool { return errors.Is(err, this) })
	}
}

// lost matches the errors that end a group of processes: a process died or hangs, or the weights of the processes differ.
func lost(err error) bool {
	return of[*mpi.Lost]()(err) || of[*mpi.CallError]()(err) || of[*train.Unequal]()(err)
}

// preempts matches the interruption by a scheduler's signal.
func preempts(err error) bool {
	var halted *train.Interruption
	return errors.As(err, &halted) && halted.Preempted
}

// beforeWork matches errors that cobra returned before the function of a command was called.
func beforeWork(err error) bool { return !of[workError]()(err) }

func outcomeOf(err error) outcome {
	if elsewhere, ok := errors.AsType[*mpi.Failed](err); ok {
		o := outcome{code: elsewhere.Code}
		if o.code == exitLost {
			o.advice = afterLoss
		}
		return o
	}
	for _, o := range outcomes {
		if o.matches(err) {
			return o
		}
	}
	return outcome{code: exitInternal}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	return outcomeOf(err).code
}

// explain prints an error and advice, and returns the exit code.
func explain(f failure, stderr io.Writer) int {
	switch {
	case f.err == nil:
		return 0
	case of[*table.Diagnostics]()(f.err), of[*unreadable]()(f.err): // they contain their positions
		complain(stderr, doc.Failure, f.err.Error())
	case errors.Is(f.err, context.Canceled):
		fmt.Fprintln(stderr, "tessera: interrupted")
	default:
		complain(stderr, doc.Failure, "tessera: "+concise(f.err).Error())
	}
	o := outcomeOf(f.err)
	if o.advice != nil {
		if advice := o.advice(f); advice != "" {
			fmt.Fprintln(stderr, advice)
		}
	}
	return o.code
}

// optionOf is how libraries name a setting of a call; as a command line has it, it is a flag.
var optionOf = regexp.MustCompile(`the option ([a-z_]+)`)

// worded returns the message of a library with the flags that its options have.
func worded(text string) string {
	return optionOf.ReplaceAllStringFunc(text, func(option string) string { return "--" + dashed(option[len("the option "):]) })
}

// concise returns the error without the name of the operation during which a process was lost.
func concise(err error) error {
	if unanswered, ok := errors.AsType[*mpi.Lost](err); ok {
		return unanswered
	}
	return err
}

// says returns a function that always gives the same advice.
func says(text string) func(failure) string { return func(failure) string { return text } }

func seeHelp(f failure) string {
	return fmt.Sprintf("see %q for the usage", f.command.CommandPath()+" --help")
}

// afterLoss advises how to continue after the loss of a process.
func afterLoss(f failure) string {
	continued := afterGroup(f)
	if of[*mpi.Lost]()(f.err) {
		return "see its machine, or give a longer --deadline; " + continued
	}
	return continued
}

// afterGroup returns advice on how to continue a training whose group of processes has ended.
func afterGroup(f failure) string {
	l, ok := mpi.Launched()
	switch {
	case !ok:
		return "the last checkpoint is kept: resume the run with as many processes and --distributed"
	case f.run == "":
		return fmt.Sprintf("the last checkpoint is kept: resume the run with `%s` and --distributed", l.Again)
	}
	return fmt.Sprintf("the last checkpoint is kept: `%s` continues from there", resumption(f.run, true))
}

// afterInterruption returns advice on how to continue an interrupted training.
func afterInterruption(f failure) string {
	var halted *train.Interruption
	if !errors.As(f.err, &halted) {
		if of[*sweep.Interrupted]()(f.err) {
			return "run the same command again to resume"
		}
		return ""
	}
	if f.command != nil && f.command.Flags().Changed("chain") { // a resumed run would not train the models after it
		return "run the same command again to continue the chain"
	}
	again := "tessera resume " + halted.Run
	if halted.Launcher != "" {
		again = halted.Launcher + " " + again + " --distributed"
	}
	return fmt.Sprintf("`%s` continues from there", again)
}

// refusals maps reasons for which the queue of a sweep refuses a connection to remedies.
var refusals = map[fleet.Reason]string{
	fleet.BadToken:      "give the coordinator's --token-file",
	fleet.NoTLS:         "start the coordinator with --tls-cert and --tls-key",
	fleet.TLSDemanded:   "give --tls-ca",
	fleet.OtherHost:     "connect by a name or address that the certificate has, or make one with a subjectAltName",
	fleet.NotTrusted:    "give the --tls-ca that signed it, and check the clock of this machine if the certificate seems to have expired",
	fleet.TLSFailed:     "give --tls-ca, and --tls-cert and --tls-key if the server wants a certificate",
	fleet.NoPersistence: "start the server with -js",
}

// aboutRefusal advises what to change so that the queue of a sweep accepts a connection.
func aboutRefusal(f failure) string {
	if refused, ok := errors.AsType[*fleet.Refusal](f.err); ok {
		return refusals[refused.Reason]
	}
	return ""
}

// afterWriting returns advice on how to continue when the file can be written again.
func afterWriting(f failure) string {
	var unwritten *folder.WriteError
	if !errors.As(f.err, &unwritten) || unwritten.Path == standardOutput {
		return ""
	}
	run := filepath.Dir(unwritten.Path)
	if errors.Is(f.err, fs.ErrNotExist) {
		return fmt.Sprintf("create the folder %s, or write to another place with --out", run)
	}
	info, err := os.Stat(filepath.Join(run, folder.State))
	if err != nil || !info.Mode().IsRegular() || filepath.Base(unwritten.Path) == folder.PostHoc { // no checkpoint, or resume does not write the file
		return "free space or get the permission, then run the command again; or write to another place with --out"
	}
	distributed := false
	if f.command != nil {
		flag := f.command.Flags().Lookup("distributed")
		distributed = flag != nil && flag.Value.String() == "true"
	}
	return fmt.Sprintf("the last checkpoint is kept: free space or get the permission, then `%s` continues", resumption(run, distributed))
}

// resumption returns the command that resumes a run, with the launcher of this process if the training is distributed.
func resumption(run string, distributed bool) string {
	if l, ok := mpi.Launched(); ok && distributed {
		return fmt.Sprintf("%s tessera resume %s --distributed", l.Again, run)
	}
	return "tessera resume " + run
}

// aboutCheckpoint advises how to obtain a readable run.
func aboutCheckpoint(f failure) string {
	var damaged *checkpoint.Error
	var lines []string
	if errors.As(f.err, &damaged) && filepath.Base(damaged.Path) == folder.State {
		if damaged.Mismatch {
			lines = append(lines, "a run resumes only with the images and the config.toml that it was trained with: restore them, or train a new run")
		} else {
			lines = append(lines, fmt.Sprintf("a run cannot resume without its state: restore a copy, or train it again with `tessera train MODEL -f %s`",
				filepath.Join(filepath.Dir(damaged.Path), folder.Config)))
		}
	}
	if isPostHoc(f.err) {
		lines = append(lines, "fit it again with `tessera calibrate RUN`, or remove it with `tessera calibrate RUN --remove`")
	}
	if errors.As(f.err, &damaged) && filepath.Base(damaged.Path) == sweep.ManifestFile {
		if damaged.Mismatch {
			lines = append(lines, "restore the data, or write the manifest again with `tessera sweep NAME --emit` into another folder")
		} else {
			lines = append(lines, "copy the manifest again, or write it again with `tessera sweep NAME --emit`")
		}
	}
	if errors.Is(f.err, fs.ErrPermission) {
		lines = append(lines, "all files of a run must be readable: give yourself the permission (chmod -R u+rX RUN), or ask their owner for a copy")
	}
	return strings.Join(lines, "\n")
}

// isPostHoc reports whether the error concerns the file of the procedures that were fitted after the training.
func isPostHoc(err error) bool {
	var damaged *checkpoint.Error
	return errors.As(err, &damaged) && filepath.Base(damaged.Path) == folder.PostHoc
}

// anotherOut returns advice on what to do about an existing folder.
func anotherOut(f failure) string {
	if out, ok := errors.AsType[outError](f.err); ok && !folder.Replaceable(out.path) {
		return "give another --out: the folder contains files that tessera did not write, which are never replaced"
	}
	return "give another --out, or --force to replace that run"
}

// whereRunsAre returns advice on how to find a run.
func whereRunsAre(f failure) string {
	var place placeError
	if errors.As(f.err, &place); findFolder(filepath.Join("runs", place.path)) == nil {
		return fmt.Sprintf("did you mean %q?", filepath.Join("runs", place.path))
	}
	switch {
	case place.problem != noSuchFolder:
		return ""
	case findFolder("runs") != nil:
		return fmt.Sprintf("the current directory, %s, has no runs: change to the folder where the run was trained, or write its whole path", here())
	}
	return "`tessera runs` lists the runs of the current directory"
}

// whereModelsAre returns advice on how to find a model with an unknown name, if the error neither suggests a name nor lists
// all names.
func whereModelsAre(f failure) string {
	var unknown *config.UnknownModel
	if errors.As(f.err, &unknown); unknown.Suggests() {
		return ""
	}
	if strings.HasSuffix(unknown.Name, ".toml") {
		return fmt.Sprintf("%s looks like a file: name a model, as in `%s MODEL -f %s`", unknown.Name, f.command.CommandPath(), unknown.Name)
	}
	list := "tessera list models"
	if file := f.command.Flags().Lookup("file"); file != nil && file.Value.String() != "" {
		list += " -f " + file.Value.String()
	}
	text := fmt.Sprintf("`%s` shows all %d", list, len(unknown.Names))
	if missingFile(tessera.ModelsFile) && unknown.File != "" {
		text += fmt.Sprintf("\nthere is no %s in %s: change to the folder of yours, or name it with --file", tessera.ModelsFile, here())
	}
	return text
}

func missingFile(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func here() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

// usageError is an error in the arguments of the command.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// workError is an error of a command's function; all other errors come from cobra, before the function is called.
type workError struct{ error }

func (e workError) Unwrap() error { return e.error }

// work wraps the function of a command.
func work(f func(cmd *Call, args []string) error) func(*cobra.Command, []string) error {
	guarded := func(cmd *Call, args []string) (err error) {
		defer data.Unread(&err)
		return f(cmd, args)
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := guarded(&Call{cmd}, args); err != nil {
			return workError{err}
		}
		return nil
	}
}

// The errors of the command-line library that are reworded for users.
var (
	together = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	alone    = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set they must all be set; missing \[(.*)\]$`)
)

// plainly rewords an error of the command-line library for users.
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

// flagNames returns the names of flags in the form of the command line: "--a, --b and --c".
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
