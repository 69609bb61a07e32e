package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/show/terminal"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// modelFlags contains the flags that select a model.
type modelFlags struct {
	file string
	sets []string
	data string
}

func (f *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file whose models add to the shipped ones, or \""+shippedFile+"\" (default ./"+tessera.ModelsFile+", or shipped if there is none)")
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "change a key of the model, as in loss.1.weight=0.01 (PATH=VALUE); may be repeated")
	cmd.ValidArgsFunction = f.complete
}

// shippedFile is the name for the models that are shipped with tessera. An existing file with this name has priority.
const shippedFile = "shipped"

// load reads the file of models.
func (f *modelFlags) load() (*config.File, error) {
	if f.readsShipped() {
		return f.search(tessera.Shipped()), nil
	}
	file := cmp.Or(f.file, tessera.ModelsFile)
	models, err := tessera.Load(file)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s: no such file; give the path of a models.toml, or \"tessera init\" writes one", file)
	case errors.As(err, &path):
		return nil, usagef("%s: cannot be read: %w; give the path of a models.toml", file, path.Err)
	case err != nil:
		return nil, err
	}
	return f.search(models), nil
}

// readsShipped reports whether only the shipped models are read: no file is given, or the given name is that of the shipped
// models and no such file exists.
func (f *modelFlags) readsShipped() bool {
	if f.file != "" && f.file != shippedFile {
		return false
	}
	_, err := os.Stat(cmp.Or(f.file, tessera.ModelsFile))
	return errors.Is(err, fs.ErrNotExist)
}

// search returns a file of models that determines image shapes from data files if necessary.
func (f *modelFlags) search(models *config.File) *config.File {
	models.Dirs = data.SearchDirs(f.data)
	return models
}

// model returns the named model. The changes more follow those of --set.
func (f *modelFlags) model(name string, more ...string) (*config.Model, error) {
	models, err := f.load()
	if err != nil {
		return nil, err
	}
	sets, err := parseSets(slices.Concat(f.sets, more))
	if err != nil {
		return nil, err
	}
	return models.Model(name, sets...)
}

// parseSets reads --set arguments.
func parseSets(arguments []string) ([]config.Set, error) {
	var sets []config.Set
	for _, argument := range arguments {
		set, err := config.ParseSet(argument)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// complete lists the models for shell completion.
func (f *modelFlags) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	models, err := f.load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return models.Names(), cobra.ShellCompDirectiveNoFileComp
}

// runFlags contains the flags for threads, back end and data folder.
type runFlags struct {
	data    string
	threads int
	backend string
}

func (f *runFlags) add(cmd *cobra.Command) {
	addDataFlag(cmd, &f.data)
	cmd.Flags().IntVar(&f.threads, "threads", runtime.GOMAXPROCS(0), "number of CPUs to use")
	addBackendFlag(cmd, &f.backend)
}

func addBackendFlag(cmd *cobra.Command, backend *string) {
	addChoice(cmd, backend, "backend", tessera.Backends()[0], tessera.Backends(), "back end that runs the model")
}

// addDataFlag adds --data. A missing folder is an error, because the next searched folder could contain other images.
func addDataFlag(cmd *cobra.Command, dir *string) {
	cmd.PreRunE = work(func(*cobra.Command, []string) error {
		if info, err := os.Stat(*dir); *dir != "" && (err != nil || !info.IsDir()) {
			return &data.Error{Path: *dir, Problem: "no such folder", Hint: "--data is the folder that contains the folders of the data sets; `tessera data get NAME --data " + *dir + "` creates it and downloads one"}
		}
		return nil
	})
	cmd.Flags().StringVar(dir, "data", "", "folder with the data sets, searched before $"+data.EnvDir+" and the cache")
}

// options checks the flags and converts them to options.
func (f *runFlags) options() (tessera.Options, error) {
	if f.threads < 1 || f.threads > tessera.MostThreads {
		return tessera.Options{}, usagef("--threads: got %d, want from 1 to %d", f.threads, tessera.MostThreads)
	}
	if err := kernel.Err(); err != nil {
		return tessera.Options{}, usageError{err}
	}
	team.Limit(f.threads)
	return tessera.Options{Data: f.data, Threads: f.threads, Backend: f.backend}, nil
}

// open checks the flags and opens a run.
func (f *runFlags) open(run string) (*tessera.Run, error) {
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	return tessera.Open(run, options)
}

// aRun makes a command accept one argument, the folder of a run.
func aRun(cmd *cobra.Command) {
	cmd.Args = cobra.MatchAll(one("run"), func(cmd *cobra.Command, args []string) error {
		if memberOf(cmd).quiet { // rank 0 has the folder
			return nil
		}
		return findFolder(args[0])
	})
	cmd.ValidArgsFunction = completeFolders
}

// completeFolders completes the arguments of commands that take folders.
var completeFolders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// placeError is the error for a path that is not the folder of a run or of a sweep.
type placeError struct{ path, problem string }

// noSuchFolder is the problem with a path that does not exist.
const noSuchFolder = "no such folder"

func (e placeError) Error() string { return inLine(e.path) + ": " + e.problem }

// findFolder returns an error for a path that is not a folder. Other problems are reported when the folder is opened.
func findFolder(paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return placeError{path, noSuchFolder}
		case err == nil && !info.IsDir():
			return placeError{path, "is a file, not the folder of a run"}
		}
	}
	return nil
}

// refuseFolder returns an error for an output file whose path is a folder.
func refuseFolder(out string) error {
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return usagef("--out: %s is a folder; give a file name", out)
	}
	return nil
}

// one returns a check that accepts exactly one argument; what names the argument, such as the folder of a run.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0, len(args) == 1 && args[0] == "":
			return fmt.Errorf("%s: missing %s", cmd.Name(), what)
		case len(args) > 1:
			return fmt.Errorf("%s: got %q, want one %s", cmd.Name(), args, what)
		}
		return nil
	}
}

// atLeast returns a check that accepts n or more arguments; what names them.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s: missing %s", cmd.Name(), what)
		case len(args) < n:
			return fmt.Errorf("%s: got %d %s, want at least %d", cmd.Name(), len(args), what, n)
		}
		return nil
	}
}

// anyOf makes a command accept only the given arguments, and lists them for shell completion.
func anyOf(cmd *cobra.Command, valid []string) {
	cmd.ValidArgs = valid
	cmd.Args = func(_ *cobra.Command, args []string) error {
		for _, a := range args {
			if near := table.Suggest(a, valid); !slices.Contains(valid, a) && strings.HasPrefix(near, "did you mean") {
				return fmt.Errorf("unknown %q: %s", a, near)
			} else if !slices.Contains(valid, a) {
				return fmt.Errorf("unknown %q, want %s", a, strings.Join(valid, ", "))
			}
		}
		return nil
	}
}

// previewFlag selects how the terminal shows atoms.
type previewFlag struct{ how string }

// automatic selects the protocol that the terminal supports.
const automatic = "auto"

func (f *previewFlag) add(cmd *cobra.Command) {
	addChoice(cmd, &f.how, "preview", automatic, slices.Concat([]string{automatic}, terminal.Protocols()), "how atoms are shown in the terminal, never where the output is not one")
}

// show draws the first atoms of a run if the output is a terminal.
func (f *previewFlag) show(cmd *cobra.Command, r *tessera.Run) error {
	screen := terminalOf(cmd.OutOrStdout())
	if screen == nil || f.how == string(terminal.None) {
		return nil
	}
	p := terminal.Protocol(f.how)
	if f.how == automatic {
		p = terminal.Detect(os.Getenv)
	}
	if p == terminal.None {
		return nil
	}
	columns := cmp.Or(pageWidth(screen), 80) // a terminal may not know its size
	a := r.Atoms()
	var shown strings.Builder
	n, err := terminal.Atoms(&shown, a, p, columns)
	if errors.Is(err, terminal.ErrNoPicture) || err == nil && n == 0 {
		return nil
	} else if err != nil {
		return err
	}
	caption := fmt.Sprintf("the first %d of %d atoms", n, a.Count)
	if n == a.Count {
		caption = fmt.Sprintf("the %d atoms", n)
	}
	_, err = fmt.Fprintf(screen, "\n%s\n%s", caption, shown.String())
	return err
}

// choice is the value of a flag that accepts only some texts.
type choice struct {
	text    *string
	choices []string
}

// addChoice adds a flag that accepts only some texts, which its help and the shell completion list.
func addChoice(cmd *cobra.Command, text *string, name, standard string, choices []string, usage string) {
	*text = standard
	cmd.Flags().Var(choice{text, choices}, name, usage+": "+strings.Join(choices, ", "))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// String implements [pflag.Value].
func (c choice) String() string { return *c.text }

// Type implements [pflag.Value].
func (c choice) Type() string { return "string" }

// Set implements [pflag.Value].
func (c choice) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return unwanted(fmt.Sprintf("got %q, want one of %s", text, strings.Join(c.choices, ", ")))
	}
	*c.text = text
	return nil
}

// positive is the value of a flag that accepts numbers > 0.
type positive int

// String implements [pflag.Value].
func (p *positive) String() string { return strconv.Itoa(int(*p)) }

// Type implements [pflag.Value].
func (p *positive) Type() string { return "int" }

// Set implements [pflag.Value].
func (p *positive) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err == nil && n < 1 {
		err = unwanted(fmt.Sprintf("got %d, want > 0", n))
	}
	*p = positive(n)
	return err
}

// unwanted is the error for a value that a flag does not accept.
type unwanted string

// Error implements error.
func (e unwanted) Error() string { return string(e) }
