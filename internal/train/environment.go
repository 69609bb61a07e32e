package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/machine"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/train/folder"
)

// Environment records where and how a run was started, in env.json. It does not affect the run.
type Environment struct {
	Version string      `json:"version"` // version of tessera
	Go      string      `json:"go"`
	System  string      `json:"system"` // linux/amd64
	CPU     string      `json:"cpu"`
	Ranks   int         `json:"ranks,omitempty"` // number of processes that train together; 0 without distributed training
	Threads int         `json:"threads"`         // threads of each process
	Backend string      `json:"backend"`         // tape or engine
	BLAS    string      `json:"blas"`
	Command []string    `json:"command"`
	Folder  string      `json:"folder,omitempty"`  // current directory, to which relative paths of the data set refer
	Search  []string    `json:"search,omitempty"`  // folders in which data sets were searched, in order
	Data    []data.File `json:"data"`              // files of the data set that were read, with the checksum of the uncompressed bytes
	Start   *data.File  `json:"start,omitempty"`   // file of the initial parameters, if another run provides them
	Machine string      `json:"machine,omitempty"` // the worker that trained the run, in a sweep on several machines
	SHA256  string      `json:"sha256,omitempty"`  // checksum of env.json itself; see package sealed
}

// environment returns the contents of env.json.
func (s *job) environment() ([]byte, error) {
	e := Environment{Version: machine.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: machine.CPU(),
		Ranks: s.arithmetic.Ranks, Threads: s.options.Team.Threads(), Backend: s.arithmetic.Backend, BLAS: s.arithmetic.Kernel, Command: os.Args}
	e.Data = append([]data.File{}, s.files...) // an empty list, not null
	e.Start = s.started
	e.locate(s.options.Dirs, s.files)
	return e.text()
}

// text returns the contents of env.json.
func (e Environment) text() ([]byte, error) {
	e.SHA256 = sealed.Open
	text, err := sealed.Document(e)
	if err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	return text, nil
}

// ReadEnvironment returns the record of a run.
func ReadEnvironment(run string) (Environment, error) {
	path := filepath.Join(run, folder.Environment)
	text, err := regular.ReadUnlinked(path)
	if err != nil {
		return Environment{}, err
	}
	var e Environment
	if err := json.Unmarshal(text, &e); err != nil {
		return Environment{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := sealed.Check(text); err != nil {
		return Environment{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// Moved returns the env.json of a run for use on this machine, if another machine has trained the run. Processor, kernels and
// command remain those of the training; the paths of the data and of the initial parameters become those of this machine.
func Moved(text []byte, machine string, dirs data.Dirs, files []data.File, start *data.File) ([]byte, error) {
	var e Environment
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	if err := sealed.Check(text); err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	e.Machine, e.Folder, e.Search, e.Start = machine, "", nil, start
	e.Data = append([]data.File{}, files...)
	e.locate(dirs, files)
	return e.text()
}

// changedText describes a file that had another checksum when the run was trained.
func changedText(f data.File, was string) string {
	text := fmt.Sprintf("has changed since the run was trained (SHA-256: got %.12s..., want %.12s...)", f.SHA256, was)
	if f.Note != "" {
		text += "; " + f.Note
	}
	return text
}

// Origin returns the record of where a run found its data. It is the zero value for a run without a readable record. An
// unreadable record is reported to warn, which may be nil, unless the source s generates its images.
func Origin(run string, s data.Source, warn func(string)) Environment {
	e, err := ReadEnvironment(run)
	files, ok := s.(interface{ Origin() data.Origin })
	if err != nil && !errors.Is(err, fs.ErrNotExist) && warn != nil && ok && files.Origin() != data.Generated {
		warn(err.Error() + ": the run does not know where its data are; they are searched as for a new run")
	}
	if err != nil {
		return Environment{}
	}
	return e
}

// locate records the current directory, the searched folders and the files as absolute paths.
func (e *Environment) locate(dirs data.Dirs, files []data.File) {
	here, err := os.Getwd()
	if err != nil { // it was deleted: absolute paths alone can be found again
		return
	}
	e.Folder = here
	for _, dir := range dirs {
		e.Search = append(e.Search, within(here, dir))
	}
	for i, f := range files {
		if data.Exists(f.Path) { // images in memory have no path
			e.Data[i].Path = within(here, f.Path)
		}
	}
}

// within returns path as an absolute path; a relative path is relative to folder.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// Dirs returns the folders in which to search for the data of the run: first dirs, then the folders of the training.
func (e Environment) Dirs(dirs data.Dirs) data.Dirs {
	all := slices.Clone(dirs)
	all = lists.Add(all, e.Search...)
	return all
}

// Placed returns a copy of the run's source in which relative paths refer to the files of the training. A path that does not
// exist in the folder of the training, for example because the project was moved, stays relative to the current directory.
func (e Environment) Placed(s data.Source) data.Source {
	v := reflect.ValueOf(s)
	if e.Folder == "" || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return s
	}
	c := reflect.New(v.Elem().Type())
	c.Elem().Set(v.Elem())
	texts := map[string]declaredText{}
	declaredTexts(c.Elem(), texts)
	recorded := func(key string) bool {
		text, ok := texts[key]
		return ok && slices.ContainsFunc(e.Data, func(f data.File) bool { return f.Path == filepath.Join(e.Folder, text.is) })
	}
	const test = "test_" // a training does not read test images; the keys of test files are named like those of training files
	places := map[string]string{}
	for key, text := range texts {
		path := filepath.Join(e.Folder, text.is)
		base := strings.TrimPrefix(key, test)
		if key == "test" {
			base = "file"
		}
		if data.Exists(path) && (recorded(base) || recorded(test+base)) {
			places[key] = path
		}
	}
	for key, path := range places {
		texts[key].set(path)
	}
	if outer, ok := c.Interface().(data.Outer); ok {
		return outer.WithInner(e.Placed)
	}
	return c.Interface().(data.Source)
}

// declaredText is a string in a declaration that could be a relative path.
type declaredText struct {
	is  string
	set func(path string)
}

// declaredTexts collects such strings of a struct by key, for example test_images and columns.target.
func declaredTexts(v reflect.Value, texts map[string]declaredText) {
	for i := range v.NumField() {
		f, t := v.Field(i), v.Type().Field(i)
		key := t.Tag.Get("toml")
		add := func(key, text string, set func(path string)) {
			if text != "" && !filepath.IsAbs(text) {
				texts[key] = declaredText{text, set}
			}
		}
		switch {
		case !f.CanSet():
		case t.Anonymous && f.Kind() == reflect.Struct:
			declaredTexts(f, texts)
		case f.Kind() == reflect.String && key != "":
			add(key, f.String(), f.SetString)
		case f.Type() == reflect.TypeFor[data.ColumnNames]():
			columns := maps.Clone(f.Interface().(data.ColumnNames)) // of the copy of the source
			f.Set(reflect.ValueOf(columns))
			for name, held := range columns {
				if len(held) == 1 {
					add(key+"."+name, held[0], func(path string) { columns[name] = []string{path} })
				}
			}
		}
	}
}

// Knows reports whether the run was trained on a file with this checksum, regardless of its path.
func (e Environment) Knows(file data.File) bool {
	return slices.ContainsFunc(e.Data, func(was data.File) bool { return was.SHA256 == file.SHA256 })
}

// ValueNames returns the names of the values of a sample, in order, as in the file of the data set: for a data set csv, the names of
// its columns. It returns nil if the values have no names. If the file is missing or has changed since the training, by its SHA-256,
// it returns a [*data.Error].
func (e Environment) ValueNames(ctx context.Context, d config.Dataset) ([]string, error) {
	named, ok := e.Placed(d.Source).(data.Namer)
	if !ok {
		return nil, nil
	}
	names, file, err := named.ValueNames(ctx)
	if err != nil || names == nil {
		return nil, err
	}
	if !e.Knows(file) {
		return nil, &data.Error{Dataset: d.Name, Path: file.Path,
			Problem: fmt.Sprintf("is not the file of the training (its SHA-256, %.12s..., is not in the run's env.json)", file.SHA256),
			Hint:    "restore that file to get the names of its columns"}
	}
	return names, nil
}

// Changed returns a [*data.Error] if files of a data set differ from those that the run was trained on.
func (e Environment) Changed(dataset string, files []data.File) error {
	for _, f := range files {
		i := slices.IndexFunc(e.Data, func(was data.File) bool { return was.Path == within(e.Folder, f.Path) })
		if i >= 0 && e.Data[i].SHA256 != f.SHA256 {
			return &data.Error{Dataset: dataset, Path: f.Path, Problem: changedText(f, e.Data[i].SHA256),
				Hint: "restore it, train a new run, or measure the samples of a file (eval with the option in)"}
		}
	}
	return nil
}

// Arithmetic identifies the order of floating-point additions. Together with the declaration and the images it determines
// the last bits of a result.
type Arithmetic struct {
	Ranks   int    `json:"ranks,omitempty"`   // number of processes that train together; 0 without distributed training
	Threads int    `json:"threads,omitempty"` // threads of each process; 0 for a baseline
	Backend string `json:"backend,omitempty"` // tape or engine; empty for a baseline
	Kernel  string `json:"kernel"`            // implementation of matrix products and functions: [kernel.Float32]
}

func (o Options) arithmetic() Arithmetic {
	a := Arithmetic{Kernel: kernel.Float32().Name}
	if n := o.processes().size(); n > 1 {
		a.Ranks = n
	}
	a.Threads = o.Team.Threads()
	if o.Backend != nil { // a finished run is opened without one
		a.Backend = o.Backend.Name()
	}
	return a
}

// differs returns a description of the difference from the current arithmetic, as in "2 processes, not 1"; "" if there is
// none, or if the bits do not depend on it.
func (a Arithmetic) differs(now Arithmetic) string {
	if a.Threads == 0 {
		return ""
	}
	var lines []string
	add := func(form string, was, is any) {
		if was != is {
			lines = append(lines, fmt.Sprintf(form, was)+fmt.Sprintf(", not %v", is))
		}
	}
	add("%v process"+plural(max(1, a.Ranks), "es"), max(1, a.Ranks), max(1, now.Ranks))
	add("%v thread"+plural(a.Threads, "s"), a.Threads, now.Threads)
	add("back end %v", a.Backend, now.Backend)
	add("kernels %v", a.Kernel, now.Kernel)
	return strings.Join(lines, "; ")
}

// plural returns the ending of a noun for a number: "" for 1, else ending.
func plural(n int, ending string) string {
	if n == 1 {
		return ""
	}
	return ending
}

// ArithmeticOf returns the arithmetic with which a run was started.
func ArithmeticOf(run string) (Arithmetic, error) {
	from, err := readState(filepath.Join(run, folder.State))
	if err != nil {
		return Arithmetic{}, err
	}
	return from.arithmetic, nil
}
