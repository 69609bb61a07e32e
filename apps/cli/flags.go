package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tessera"
	"tessera/apps/show/terminal"
	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/machine"
	"tessera/internal/parallel/team"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

type fileFlag struct {
	File string `flag:"file,f" is:"file" doc:"file whose models add to the shipped ones, or shipped for these alone" default:"./models.toml, or shipped if there is none"`
}

func (f *fileFlag) load() (*config.File, error) { return f.read("") }

type modelFlags struct {
	fileFlag
	dataFlag
	Sets []string `flag:"set" each:"true" is:"setting" doc:"change a key of the model, as in loss.1.weight=0.01 (PATH=VALUE); may be repeated"`
}

// shippedFile is the name for the models that are shipped with tessera. An existing file with this name has priority.
const shippedFile = "shipped"

func (f *modelFlags) load() (*config.File, error) { return f.read(f.Data) }

// read reads the file of models, which determines image shapes from the data files of a folder if necessary.
func (f *fileFlag) read(folder string) (*config.File, error) {
	dirs := data.SearchDirs(folder)
	if f.readsShipped() {
		return searching(tessera.Shipped(), dirs), nil
	}
	file := cmp.Or(f.File, tessera.ModelsFile)
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
	return searching(models, dirs), nil
}

// readsShipped reports whether only the shipped models are read: no file is given, or the given name is that of the shipped
// models and no such file exists.
func (f *fileFlag) readsShipped() bool {
	if f.File != "" && f.File != shippedFile {
		return false
	}
	_, err := os.Stat(cmp.Or(f.File, tessera.ModelsFile))
	return errors.Is(err, fs.ErrNotExist)
}

// searching returns a file of models that determines image shapes from the data files in folders.
func searching(models *config.File, dirs data.Dirs) *config.File {
	models.Dirs = dirs
	return models
}

// model returns the named model. The changes more follow those of --set.
func (f *modelFlags) model(name string, more ...string) (*config.Model, error) {
	models, err := f.load()
	if err != nil {
		return nil, err
	}
	sets, err := parseSets(slices.Concat(f.Sets, more))
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

type dataFlag struct {
	Data    string `flag:"data" is:"place" doc:"folder with the data sets, searched before $TESSERA_DATA and the cache"`
	NoCache bool   `flag:"no-cache" doc:"decode all images of folders: neither read nor write the files that keep their pixels"`
}

// Check returns an error for a missing folder, because the next searched folder could contain other images.
func (f *dataFlag) Check() error {
	data.WithoutCache(f.NoCache)
	if info, err := os.Stat(f.Data); f.Data != "" && (err != nil || !info.IsDir()) {
		return &data.Error{Path: f.Data, Problem: "no such folder", Hint: "--data is the folder that contains the folders of the data sets; `tessera data get NAME --data " + f.Data + "` creates it and downloads one"}
	}
	return nil
}

type threadFlags struct {
	Threads int         `flag:"threads" want:"in [1,1024]" doc:"number of CPUs to use" default:"all"`
	Backend backendName `flag:"backend" doc:"back end that runs the model"`
}

type backendName string

func (backendName) Choices() []string { return tessera.Backends() }

func allThreads() threadFlags {
	return threadFlags{machine.Threads(), backendName(tessera.Backends()[0])}
}

// options returns the options for opening a run whose data sets are searched in a folder.
func (f *threadFlags) options(folder string) (tessera.Options, error) {
	if err := kernel.Err(); err != nil {
		return tessera.Options{}, usageError{err}
	}
	team.Limit(f.Threads)
	return tessera.Options{Data: folder, Threads: f.Threads, Backend: string(f.Backend)}, nil
}

type runFlags struct {
	dataFlag
	threadFlags
}

func forRuns() runFlags { return runFlags{threadFlags: allThreads()} }

func (f *runFlags) options() (tessera.Options, error) { return f.threadFlags.options(f.Data) }

func (f *runFlags) open(run string) (*tessera.Run, error) {
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	return tessera.Open(run, options)
}

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
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && isModel(path):
			return placeError{path, fmt.Sprintf("is a model, not the folder of a run: `tessera train %s` trains it in %s", path, filepath.Join("runs", path))}
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return placeError{path, noSuchFolder}
		case err == nil && !info.IsDir():
			return placeError{path, "is a file, not the folder of a run"}
		}
	}
	return nil
}

func isModel(name string) bool {
	models, err := (&fileFlag{}).load()
	return err == nil && models.FileOf(name) != ""
}

// outputFile returns an error for an output file of a command whose path is a folder, the file of models, one of the inputs, a file of a
// run, or one of the data that the runs and the models of the command were trained on. All commands that write a file to a path of the
// user call it before they compute anything.
func outputFile(command any, out string, inputs ...string) error {
	if run := folder.Owned(out); run != "" {
		return usagef("--out: %s is a file of the run %s and would be replaced; give another name", out, run)
	}
	if of := sweep.Owned(out); of != "" {
		return usagef("--out: %s is a file of the sweep %s and would be replaced; give another name", out, of)
	}
	is, err := os.Stat(out)
	if err != nil { // a new file
		return nil
	}
	for _, in := range inputs {
		if input, err := os.Stat(in); err == nil && os.SameFile(is, input) {
			return usagef("--out: %s is also the input (%s) and would be overwritten; give another name", out, in)
		}
	}
	if is.IsDir() {
		return usagef("--out: %s is a folder; give a file name", out)
	}
	for _, r := range readBy(command) {
		if r.has(out, is) {
			return usagef("--out: %s is %s and would be replaced; give another name", out, r.what)
		}
	}
	return nil
}

// readFile is a file or a folder that a command reads.
type readFile struct{ path, what string }

// has reports whether an existing file is the one that is read, or a picture in the folder that is read.
func (r readFile) has(path string, is os.FileInfo) bool {
	info, err := os.Stat(r.path)
	if err != nil || !info.IsDir() {
		return err == nil && os.SameFile(is, info)
	}
	if path, err = filepath.EvalSymlinks(path); err == nil {
		path, err = filepath.Abs(path)
	}
	for dir := filepath.Dir(path); err == nil; dir = filepath.Dir(dir) {
		if above, err := os.Stat(dir); err == nil && os.SameFile(above, info) {
			return data.IsPicture(path)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return false
}

// readBy lists the file of models, the files that the flags of a command name, and the data of its runs and models.
func readBy(command any) []readFile {
	list := []readFile{{tessera.ModelsFile, "the file of models"}}
	flags, args := fieldsOf(command)
	for _, f := range slices.Concat(args, flags) {
		for _, text := range texts(f) {
			switch f.Tag.Get("is") {
			case "file":
				list = append(list, readFile{text, "read by the command (" + flagName(f) + ")"})
			case "folder":
				list = append(list, dataOf(text)...)
			case "model":
				if reads, ok := command.(interface {
					model(string, ...string) (*config.Model, error)
				}); ok {
					if m, err := reads.model(text); err == nil { // another error is that of the command
						list = append(list, declaredBy(m, "", "model "+text)...)
					}
				}
			}
		}
	}
	return list
}

// dataOf lists the data of a run, or of all trials of a sweep: the files that its training recorded and those that its model declares.
func dataOf(path string) (list []readFile) {
	runs := []string{path}
	trials, _ := os.ReadDir(sweep.TrialPath(path, "")) // a run has none
	for _, trial := range trials {
		runs = append(runs, sweep.TrialPath(path, trial.Name()))
	}
	for _, run := range runs {
		record := train.Origin(run, nil, nil)
		for _, file := range record.Data {
			list = append(list, readFile{file.Path, "in the data set of " + run})
		}
		if m, err := train.ConfigOf(run); err == nil { // a damaged run is an error of the command
			list = append(list, declaredBy(m, record.Folder, run)...)
		}
	}
	return list
}

// declaredBy lists the files and folders of the data set of a model. Relative paths begin in a folder.
func declaredBy(m *config.Model, folder, of string) (list []readFile) {
	for _, path := range data.Paths(m.Dataset.Source) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		list = append(list, readFile{path, "in the data set of " + of})
	}
	return list
}

// outputFolder returns an error for an output folder that is not new or empty.
func outputFolder(out string) error {
	is, err := os.Stat(out)
	if err != nil { // a new folder
		return nil
	}
	if !is.IsDir() {
		return usagef("--out: %s is not a folder; name a new or an empty one", out)
	}
	if inside, _ := os.ReadDir(out); len(inside) > 0 {
		return usagef("--out: %s is a folder with files; name a new or an empty one", out)
	}
	return nil
}

// previewFlag selects how the terminal shows atoms.
type previewFlag struct {
	Preview previewName `flag:"preview" doc:"how atoms are shown in the terminal, never where the output is not one"`
}

type previewName string

// automatic selects the protocol that the terminal supports.
const automatic = "auto"

func (previewName) Choices() []string {
	return slices.Concat([]string{automatic}, terminal.Protocols())
}

// show draws the first atoms of a run if the output is a terminal.
func (f *previewFlag) show(cmd *Call, r *tessera.Run) error {
	screen := terminalOf(cmd.OutOrStdout())
	if screen == nil || f.Preview == previewName(terminal.None) {
		return nil
	}
	p := terminal.Protocol(f.Preview)
	if f.Preview == automatic {
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

type jsonFlag struct {
	JSON bool `flag:"json" doc:"print one JSON document"`
}

// rawFlag is the flag of commands that can leave out what was fitted to a run.
type rawFlag struct {
	Raw bool `flag:"raw" doc:"leave out what was fitted to the run after its training: calibrations and thresholds"`
}

type splitFlag struct {
	Split splitName `flag:"split" doc:"samples that are measured"`
}

type splitName string

func (splitName) Choices() []string { return data.SplitNames() }
