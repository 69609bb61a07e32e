package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"tessera/data"
)

// File is a read models.toml.
type File struct {
	// Dirs are searched for data sets whose image shape only their files tell; without them, what depends on that
	// shape is checked when the images are read.
	Dirs data.Dirs

	// Trained says that the file is of a run, whose images are those that it was trained on: what is found under their names
	// now says nothing of its models, and nothing that depends on the shape of images is checked.
	Trained bool

	source *source
	root   *node
	broken []finding // duplicates

	checking sync.Mutex
	checked  *verdict
}

// verdict is what Check found, with data sets searched in dirs.
type verdict struct {
	dirs data.Dirs
	err  error
}

// topLevel says how each top-level table of a file is checked. A new table is one entry.
var topLevel = map[string]func(f *File, n *node) []finding{
	"model": (*File).checkModels,
	"sweep": (*File).checkSweeps,
}

// Load reads the text of a models.toml; file is its name in messages. The error is [*Diagnostics] when the text is not
// TOML. All other mistakes are found by [File.Check] and [File.Model].
func Load(file string, text []byte) (*File, error) {
	src := newSource(file, strings.TrimPrefix(string(text), "\ufeff"))
	if i := invalidUTF8(src.text); i >= 0 {
		return nil, diagnostics([]finding{{at: span{src, i, i + 1}, problem: "not valid UTF-8"}})
	}
	root, found := parse(src)
	if root == nil {
		return nil, diagnostics(found)
	}
	f := &File{source: src, root: root, broken: found}
	if models := root.child("model"); models != nil {
		for name, m := range models.table {
			m.own(name)
		}
	}
	if sweeps := root.child("sweep"); sweeps != nil {
		for name, s := range sweeps.table {
			s.own(sweepOwner(name))
		}
	}
	return f, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// Names lists the models of the file, in its order.
func (f *File) Names() []string {
	models := f.root.child("model")
	if models == nil {
		return nil
	}
	return slices.Clone(models.keys)
}

// Check finds all mistakes of the file, in its order. The error is nil or [*Diagnostics].
func (f *File) Check() error {
	found := slices.Clone(f.broken)
	for _, key := range f.root.keys {
		n := f.root.table[key]
		if check, ok := topLevel[key]; ok {
			found = append(found, check(f, n)...)
			continue
		}
		what := "key"
		if n.table != nil || n.array {
			what = "table"
		}
		found = append(found, finding{at: n.key, problem: fmt.Sprintf("unknown %s %q", what, key), hint: suggest(key, sortedKeys(topLevel))})
	}
	if d := diagnostics(found); d != nil {
		return d
	}
	return nil
}

// Model returns one checked model, changed by the --set arguments. The error is [*Diagnostics] when anything in the
// file or in a --set is wrong, and [*UnknownModel] when the file has no such model.
func (f *File) Model(name string, sets ...Set) (*Model, error) {
	if err := f.verdict(); err != nil {
		return nil, err
	}
	if !slices.Contains(f.Names(), name) {
		return nil, &UnknownModel{File: f.source.file, Name: name, Names: f.Names()}
	}
	m, found := f.build(name, sets)
	if len(found) > 0 {
		sources := make([]*source, len(sets))
		for i, s := range sets {
			sources[i] = s.source
		}
		return nil, diagnostics(f.blame(name, sets, "", found), sources...)
	}
	return m, nil
}

// verdict is what [File.Check] says, found once: a sweep asks for many models.
func (f *File) verdict() error {
	f.checking.Lock()
	defer f.checking.Unlock()
	if f.checked == nil || !slices.Equal(f.checked.dirs, f.Dirs) {
		f.checked = &verdict{slices.Clone(f.Dirs), f.Check()}
	}
	return f.checked.err
}

// blame gives mistakes of a sound file, which only the changes can have made, to the first of these that makes one.
// owner is that of changes which are written in the file, "" where all are --set arguments.
func (f *File) blame(name string, sets []Set, owner string, found []finding) []finding {
	misplaced := func(x finding) bool {
		return x.at.src == nil || x.at.src.set == "" && (owner == "" || x.owner != owner)
	}
	if len(sets) == 0 || !slices.ContainsFunc(found, misplaced) {
		return found
	}
	first := sets[len(sets)-1]
	for i := range sets {
		if _, some := f.build(name, sets[:i+1]); slices.ContainsFunc(some, misplaced) {
			first = sets[i]
			break
		}
	}
	for i, x := range found {
		if misplaced(x) {
			found[i].at = first.at
		}
	}
	return found
}

// checkModels checks every model of the file.
func (f *File) checkModels(models *node) []finding {
	if models.table == nil {
		return []finding{{at: models.key, problem: fmt.Sprintf("model: got %s, want tables: [model.NAME]", describe(models))}}
	}
	var found []finding
	for _, name := range models.keys {
		if x, bad := misnamed("model", "runs", name, models.table[name].key); bad {
			x.model, x.owner = name, name
			found = append(found, x)
		}
		_, more := f.build(name, nil)
		found = append(found, more...)
	}
	return found
}

// misnamed finds a name of a model, or of a sweep, that cannot be the name of a folder below runs, or sweeps: separators are replaced
// there, but these names would lead out of it.
func misnamed(what, folder, name string, at span) (f finding, bad bool) {
	if name != "" && name != "." && name != ".." {
		return f, false
	}
	return finding{at: at, problem: fmt.Sprintf("a %s cannot be called %q: its folder is %s/NAME", what, name, folder), hint: "give it another name"}, true
}

// build merges, decodes and checks one model.
func (f *File) build(name string, sets []Set) (*Model, []finding) {
	m := &Model{Name: name}
	changes, found := combined(sets)
	merged, more, partial := f.merged(name, changes.child("extends"))
	found = append(found, more...)
	if merged != nil {
		merged = merged.ofKind(changes.child("kind"))
	}
	if merged != nil && !partial {
		merged = withDefaults(merged)
	}
	if merged != nil && changes != nil {
		var lay merger
		merged = lay.lay("", merged, changes)
		found = append(found, lay.found...)
	}
	for i := range found {
		found[i].model = name
	}
	if merged == nil {
		return nil, found
	}
	return m, append(found, m.decode(merged, partial, f.shape)...)
}

// decode fills m from its merged table and checks it.
func (m *Model) decode(n *node, partial bool, shape func(data.Source) []int) []finding {
	m.origin = &origin{tables: map[string]*node{}, doubts: map[string]*doubt{}}
	d := &decoder{model: m.Name, partial: partial, origin: m.origin}
	d.table(n, reflect.ValueOf(m).Elem(), place{})
	d.settle(n)
	switch {
	case partial:
		return d.found
	case m.Kind != Autoencoder:
		return append(d.found, m.fits(m.input(shape))...)
	}
	return append(d.found, m.check(m.input(shape))...)
}

// shape is that of a data set's images, nil where it is not known.
func (f *File) shape(images data.Source) []int {
	shape, ok := images.Shape(f.Dirs)
	if f.Trained || !ok {
		return nil
	}
	return shape
}

// settle gives findings whose place is in no text, because a default is concerned, the model's own place.
func (d *decoder) settle(n *node) {
	for i, f := range d.found {
		if f.at.src == nil {
			d.found[i].at, d.found[i].owner = n.key, d.model
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
