package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tessera/data"
)

// Changed files are described by this text.
const changedFormat = "has changed since the run was trained (SHA-256: got %.12s..., want %.12s...)"

// Origin returns the record of where a run found its data; the zero value, which knows nothing, for a run without one. A record that cannot
// be read is reported to warn, which may be nil, unless the source s generates its images.
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
		if _, err := os.Stat(f.Path); err == nil { // images in memory have no path
			e.Data[i].Path = within(here, f.Path)
		}
	}
}

// within returns a path of a folder as an absolute path.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// Dirs returns the folders in which the data of the run are searched: dirs, then those of the training.
func (e Environment) Dirs(dirs data.Dirs) data.Dirs {
	all := slices.Clone(dirs)
	add := func(dir string) {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	for _, dir := range e.Search {
		add(dir)
	}
	if e.Folder == "" { // of an earlier version: DIR/fashion-mnist/FILE
		for _, f := range e.Data {
			if filepath.IsAbs(f.Path) {
				add(filepath.Dir(filepath.Dir(f.Path)))
			}
		}
	}
	return all
}

// Placed returns a copy of the run's source whose relative paths lead to the files of the training. A path that leads nowhere from the
// folder of the training stays relative to the current directory, as of a project that was moved.
func (e Environment) Placed(s data.Source) data.Source {
	v := reflect.ValueOf(s)
	if e.Folder == "" || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return s
	}
	c := reflect.New(v.Elem().Type())
	c.Elem().Set(v.Elem())
	texts := map[string]reflect.Value{}
	declaredTexts(c.Elem(), texts)
	recorded := func(key string) bool {
		text, ok := texts[key]
		return ok && slices.ContainsFunc(e.Data, func(f data.File) bool { return f.Path == filepath.Join(e.Folder, text.String()) })
	}
	const test = "test_" // a training does not read test images; their keys are named after those of the training images
	places := map[string]string{}
	for key, text := range texts {
		path := filepath.Join(e.Folder, text.String())
		base := strings.TrimPrefix(key, test)
		if _, err := os.Stat(path); err == nil && (recorded(base) || recorded(test+base)) {
			places[key] = path
		}
	}
	for key, path := range places {
		texts[key].SetString(path)
	}
	return c.Interface().(data.Source)
}

// declaredTexts collects the keys of a struct whose values are texts that could be relative paths.
func declaredTexts(v reflect.Value, texts map[string]reflect.Value) {
	for i := range v.NumField() {
		f, t := v.Field(i), v.Type().Field(i)
		key := t.Tag.Get("toml")
		switch {
		case !f.CanSet():
		case t.Anonymous && f.Kind() == reflect.Struct:
			declaredTexts(f, texts)
		case f.Kind() == reflect.String && key != "" && f.String() != "" && !filepath.IsAbs(f.String()):
			texts[key] = f
		}
	}
}

// Knows reports whether the run was trained on a file of that checksum, wherever the file is now.
func (e Environment) Knows(file data.File) bool {
	return slices.ContainsFunc(e.Data, func(was data.File) bool { return was.SHA256 == file.SHA256 })
}

// Changed returns a [*data.Error] for files of a data set that differ from those which the run was trained on.
func (e Environment) Changed(dataset string, files []data.File) error {
	for _, f := range files {
		i := slices.IndexFunc(e.Data, func(was data.File) bool { return was.Path == within(e.Folder, f.Path) })
		if i >= 0 && e.Data[i].SHA256 != f.SHA256 {
			return &data.Error{Dataset: dataset, Path: f.Path, Problem: fmt.Sprintf(changedFormat, f.SHA256, e.Data[i].SHA256),
				Hint: "restore it, train a new run, or measure the images of a file with `tessera eval RUN --in FILE`"}
		}
	}
	return nil
}
