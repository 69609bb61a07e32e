package config

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
)

// File is a parsed models.toml. Its methods are safe for concurrent use.
type File struct {
	// Dirs contains the folders of data sets whose image shape is stored only in their files. Without Dirs, everything
	// that depends on the shape is checked only when the images are read.
	Dirs data.Dirs

	// Trained marks the config.toml of a run. The current files of a data set may differ from the images of the
	// training, so nothing that depends on the shape of the images is checked.
	Trained bool

	base                 *File       // declarations to which this file adds; see [File.Extend]
	root, models, sweeps *table.Node // models and sweeps are empty tables if the file has none
	source               *table.Source
	images               *data.Memory                  // images in memory of a model made in Go; otherwise nil
	twice                map[string][]table.Diagnostic // errors for keys and tables that are declared twice, by declaration

	mutex     sync.Mutex
	lineages  map[string]*lineage
	diagnoses map[string][]table.Diagnostic // cached errors of the models without --set changes
	warnings  map[string][]string           // cached warnings of the models without errors; see Warnings
	clean     map[string]bool               // models without errors whose ancestors have no errors either
	built     map[string]*Model             // models that diagnose has built without errors or changes, and that [File.Model] has not returned yet
	kept      int                           // layers of the models in built
	settings  string                        // the values of Dirs and Trained for which the caches are valid

	suggested int // number of suggested model names so far
}

// topLevel lists the tables of a file. A new kind of table needs an entry here and a check in [File.Check].
var topLevel = []string{"model", "sweep"}

// Load reads the text of a models.toml. file is its name in messages. The error is [*table.Diagnostics] if the text is
// not valid TOML. All other errors are found by [File.Check], [File.Model] and [File.Sweep].
func Load(file string, text []byte) (*File, error) {
	return loadWith(file, text, table.Parse)
}

// LoadValid is like [Load], for a text that Load is known to read, such as a file that a program embeds and a test reads with Load.
// It takes less than half of the time.
func LoadValid(file string, text []byte) (*File, error) {
	return loadWith(file, text, table.ParseValid)
}

func loadWith(file string, text []byte, parse func(*table.Source) (*table.Node, []table.Diagnostic)) (*File, error) {
	src := table.NewSource(file, string(text))
	root, found := parse(src)
	if root == nil {
		return nil, table.Report(found)
	}
	f := newFile(src, root)
	for _, d := range found {
		f.twice[d.Owner()] = append(f.twice[d.Owner()], d)
	}
	return f, nil
}

func newFile(src *table.Source, root *table.Node) *File {
	tables := func(key string) *table.Node {
		if n := root.Child(key); n.IsTable() {
			return n
		}
		return table.NewTable()
	}
	models := tables("model")
	for _, name := range models.Keys {
		byName(models.Child(name))
		nestAttacks(models.Child(name))
		startByName(models.Child(name))
	}
	return &File{root: root, models: models, sweeps: tables("sweep"), source: src,
		twice: map[string][]table.Diagnostic{}, lineages: map[string]*lineage{}}
}

// Clone returns a file with the same declarations, without the files that f extends. The text is not parsed again.
func (f *File) Clone() *File {
	return &File{root: f.root, models: f.models, sweeps: f.sweeps, source: f.source, images: f.images, twice: f.twice, lineages: map[string]*lineage{}}
}

// empty reports whether f is a zero File, not made by [Load].
func (f *File) empty() bool { return f == nil || f.root == nil }

// Check returns all errors of the file, in the order of the file. The error is nil or [*table.Diagnostics].
func (f *File) Check() error {
	if f.empty() {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var found []table.Diagnostic
	for _, twice := range f.twice {
		found = append(found, twice...)
	}
	headless := map[string]bool{}
	for _, key := range f.root.Keys {
		n := f.root.Child(key)
		d := table.Diagnostic{At: n.Key}
		switch known := slices.Contains(topLevel, key); {
		case known && n.IsTable():
			continue
		case known:
			d.Problem = fmt.Sprintf("%s: got %s, want tables: [%s.NAME]", key, n.Describe(), key)
		case n.IsTable() || n.IsArray():
			d.Problem, d.Suggestion = fmt.Sprintf("unknown table %q", key), table.Suggest(key, topLevel)
			if strings.HasPrefix(d.Suggestion, "valid: ") {
				d.Suggestion = fmt.Sprintf("a model begins with [model.%s], a sweep with [sweep.%[1]s]", table.KeyText(key))
			}
			headless[key] = true
		default:
			d.Problem, d.Suggestion = fmt.Sprintf("unknown key %q", key), table.Suggest(key, topLevel)
		}
		found = append(found, d)
	}
	names := slices.DeleteFunc(slices.Clone(f.models.Keys), func(name string) bool { return headless[name] }) // a part of the declaration is elsewhere
	f.diagnoseAll(names)
	for _, name := range names {
		found = append(found, f.cachedDiagnosis(name)...)
	}
	for _, name := range f.sweeps.Keys {
		found = append(found, f.checkSweep(name)...)
	}
	return table.Report(found)
}

// Model returns one checked model, changed by the --set arguments. The error is [*table.Diagnostics] if the model, a model
// that it extends or a --set argument is invalid, and [*UnknownModel] if the file has no such model.
func (f *File) Model(name string, sets ...Set) (*Model, error) {
	if f.empty() {
		return nil, &UnknownModel{Name: name}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.owner(name) == nil {
		return nil, &UnknownModel{File: f.sources(), Name: name, Names: f.Names()}
	}
	if err := table.Report(f.diagnose(name)); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(sets, func(s Set) bool { return s.seeds != "" }); i >= 0 {
		return nil, fmt.Errorf("config: %s changes the seeds of a sweep, but %q is a model: set train.seed", sets[i], name)
	}
	changes := f.suited(name, nil, sets)
	m := f.taken(name)
	if m == nil || len(changes) > 0 {
		var found []table.Diagnostic
		m, found = f.build(name, changes)
		if err := table.Report(f.nearest(name, f.attribute(name, changes, "", found)), sourcesOf(sets)...); err != nil {
			return nil, err
		}
	}
	m.settings = keysOfModel(m)
	return m, nil
}

// diagnose returns the errors of a model without --set changes, and of the models that it extends.
func (f *File) diagnose(name string) (found []table.Diagnostic) {
	f.invalidate()
	if owner := f.owner(name); owner != f && owner != nil {
		return owner.diagnose(name)
	}
	chain := f.ancestors(name, f.clean)
	for _, at := range chain {
		found = append(append(found, f.twice[subject(at)]...), f.cachedDiagnosis(at)...)
	}
	if len(chain) > 0 {
		found = append(found, f.diagnoseAbove(chain[len(chain)-1])...)
	}
	for _, at := range chain {
		f.clean[at] = len(found) == 0
	}
	return found
}

// cachedDiagnosis is like diagnose, with a cache. A sweep needs the errors of a model many times.
func (f *File) cachedDiagnosis(name string) []table.Diagnostic {
	f.diagnoseAll([]string{name})
	return f.diagnoses[name]
}

// mostAtOnce is the maximum number of models that are in memory while they are checked.
const mostAtOnce = 256

// diagnoseAll fills the cache of diagnoses for models of the file, several at a time.
func (f *File) diagnoseAll(names []string) {
	f.invalidate()
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := f.diagnoses[name]; return ok })
	for names := range slices.Chunk(names, mostAtOnce) {
		merged := lists.Map(names, func(name string) merged { return f.merge(name, nil) })
		for i, b := range f.decodeAll(merged) {
			name := names[i]
			f.diagnoses[name] = append(b.found, misnamed("model", "runs", name, f.models.Child(name))...)
			if len(f.diagnoses[name]) == 0 {
				f.warnings[name] = b.model.Warnings()
				f.keep(b.model)
			}
		}
	}
}

// mostKept is the maximum number of layers of the models in built. More layers cost more memory than building the models again
// costs time.
const mostKept = 50_000

// keep stores a model for [File.Model].
func (f *File) keep(m *Model) {
	if n := len(m.Encoder) + len(m.Decoder); f.kept+n <= mostKept {
		f.built[m.Name], f.kept = m, f.kept+n
	}
}

// taken removes a model from built and returns it, nil if it is not there.
func (f *File) taken(name string) *Model {
	m := f.built[name]
	if m != nil {
		delete(f.built, name)
		f.kept -= len(m.Encoder) + len(m.Decoder)
	}
	return m
}

// Warnings returns the warnings of a model, see [Model.Warnings]. It returns none for a model with errors.
func (f *File) Warnings(name string) []string {
	if f.empty() || f.models.Child(name) == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.diagnose(name)) > 0 {
		return nil
	}
	return f.warnings[name]
}

// invalidate discards the cached diagnoses if Dirs or Trained have changed.
func (f *File) invalidate() {
	if settings := fmt.Sprintf("%q %v", f.Dirs, f.Trained); f.diagnoses == nil || f.settings != settings {
		f.diagnoses, f.warnings, f.clean, f.settings = map[string][]table.Diagnostic{}, map[string][]string{}, map[string]bool{}, settings
		f.built, f.kept = map[string]*Model{}, 0
	}
	if f.base != nil {
		f.base.Dirs, f.base.Trained = f.Dirs, f.Trained
		f.base.invalidate()
	}
}

// nearest adds the most similar path of the model to errors in the path of a --set argument that have no better suggestion.
func (f *File) nearest(name string, found []table.Diagnostic) []table.Diagnostic {
	var keys []string
	for i, d := range found {
		advised := d.Suggestion != "" && !strings.HasPrefix(d.Suggestion, "valid: ")
		if d.At.Source == nil || d.At.Source.Set == "" || advised ||
			!strings.HasPrefix(d.Problem, "unknown key ") && !strings.HasPrefix(d.Problem, "unknown table ") && !strings.Contains(d.Problem, "index") {
			continue
		}
		if keys == nil {
			m, _ := f.build(name, nil)
			if m == nil {
				return found
			}
			keys = slices.Sorted(maps.Keys(keysOfModel(m)))
		}
		if strings.Contains(d.Problem, " is out of range") {
			found[i].Suggestion = "a path changes an element that is there; declare further ones in a file"
			continue
		}
		if near, ok := table.NearestPath(d.At.Source.Set, keys); ok && near != d.At.Source.Set { // equal if another change removes the key
			found[i].Suggestion = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return found
}

// attribute assigns the errors of an otherwise valid model to the first change that causes one, because later changes
// rarely remove an error. owner is the declaration in the file that contains the changes, "" if all are --set
// arguments.
func (f *File) attribute(name string, changes []table.Change, owner string, found []table.Diagnostic) []table.Diagnostic {
	misplaced := func(d table.Diagnostic) bool {
		return d.At.Source == nil || d.At.Source.Set == "" && (owner == "" || d.Owner() != owner)
	}
	if len(changes) == 0 || !slices.ContainsFunc(found, misplaced) {
		return found
	}
	first := sort.Search(len(changes)-1, func(i int) bool {
		_, some := f.build(name, changes[:i+1])
		return slices.ContainsFunc(some, misplaced)
	})
	for i, d := range found {
		if misplaced(d) {
			found[i].At = changes[first].At
		}
	}
	return found
}

// build merges, decodes and checks one model.
func (f *File) build(name string, changes []table.Change) (*Model, []table.Diagnostic) {
	b := f.decode(f.merge(name, changes))
	return b.model, b.found
}

// merged is a model whose declaration, those that it extends, and its changes are one table.
type merged struct {
	name    string
	table   *table.Node // nil if there is none to decode
	partial bool
	changed bool
	notes   []string
	found   []table.Diagnostic
}

// merge uses the caches of the file, so that the caller must hold its mutex.
func (f *File) merge(name string, changes []table.Change) merged {
	var notes []string
	all, found := merging(&notes).Combine(changes)
	byName(all)
	nestAttacks(all)
	startByName(all)
	l := f.lineage(name)
	if extends := all.Child("extends"); extends != nil {
		l = f.changed(name, extends)
	}
	found = append(found, l.found...)
	tree, partial := l.table, l.partial
	if tree != nil {
		tree = ofKind(tree, all.Child("kind"))
		if !l.partial {
			tree = withDefaults(tree)
		}
		if all != nil {
			lay := merging(&notes)
			tree = lay.Merge("", tree, all)
			found = append(found, lay.Found...)
		}
		if d := nameless(tree.Child("dataset")); d != nil {
			found, partial = append(found, *d), true
			tree = without(tree, "dataset")
		}
	}
	for i := range found {
		found[i].Subject = subject(name)
	}
	return merged{name, tree, partial, len(changes) > 0, slices.Concat(l.notes, notes), found}
}

// built is a decoded model with its errors.
type built struct {
	model *Model
	found []table.Diagnostic
}

// decode decodes and checks a model. It uses no cache of the file: several models may be decoded at once.
func (f *File) decode(t merged) built {
	if t.table == nil {
		return built{nil, t.found}
	}
	m := &Model{Name: t.name, notes: t.notes}
	wrong := m.decode(t.table, t.partial, f)
	if !t.changed { // else it may be a change that causes the errors
		wrong = f.locate(t.name, wrong)
	}
	return built{m, append(t.found, wrong...)}
}

func (f *File) decodeAll(list []merged) []built {
	all := make([]built, len(list))
	team.For(len(list), 1, func(from, to int) {
		for i := from; i < to; i++ {
			all[i] = f.decode(list[i])
		}
	})
	return all
}

// locate adds the place of the model, and what to write there, to errors in declarations that it inherits from another file, which
// its author may not be able to change.
func (f *File) locate(name string, found []table.Diagnostic) []table.Diagnostic {
	n := f.models.Child(name)
	if n == nil {
		return found
	}
	for i, d := range found {
		if d.At.Source == nil || d.At.Source == n.Key.Source {
			continue
		}
		at := n.Key.Place()
		hint := fmt.Sprintf("[model.%s] (%s:%d:%d) inherits this from %s", name, n.Key.Source.File, at.Line, at.Column, d.Owner())
		found[i].Suggestion = strings.TrimPrefix(d.Suggestion+"\n"+hint+replacing(d), "\n")
	}
	return found
}

// replacing returns the change of a model that replaces an inherited declaration with an error, "" if it is not known.
func replacing(d table.Diagnostic) string {
	if list, _, ok := strings.Cut(d.Part, "["); ok && !strings.Contains(list, ".") {
		return fmt.Sprintf(": declare the list `%s` there, it replaces the inherited one", list)
	}
	if !strings.HasPrefix(d.Part, "hook.") || strings.Contains(d.Suggestion, d.Part+" = false") {
		return ""
	}
	return fmt.Sprintf(": write %s = false there to leave it out", d.Part)
}

// decode fills m from its merged table and checks it.
func (m *Model) decode(n *table.Node, partial bool, f *File) []table.Diagnostic {
	d := &table.Decoder{Language: language, Subject: subject(m.Name), Path: []string{"model", m.Name}, Partial: partial}
	d.Decode(n, m, "")
	m.origin, m.tree, m.dirs, m.trained = d.Origin, n, f.Dirs, f.Trained
	data.OneSpelling(m.Dataset.Source)
	if _, ok := m.Dataset.Source.(*data.Memory); ok && f.images != nil {
		m.Dataset.Source = f.images
	}
	if partial || m.Kind == "" { // an unknown kind
		return d.Found
	}
	return append(d.Found, m.kind().check(f)...)
}

// UnknownModel is the error for the name of a model that does not exist.
type UnknownModel struct {
	File  string
	Name  string
	Names []string // names of all models of the file
}

func (e *UnknownModel) Error() string {
	text := fmt.Sprintf("unknown model %q in %s", e.Name, e.File)
	if hint := table.SuggestOf(e.Name, e.Names, ""); hint != "" {
		text += ": " + hint
	}
	return text
}

// Suggests reports whether the error message suggests a model or lists all models. Otherwise it names the nearest ones.
func (e *UnknownModel) Suggests() bool {
	return !strings.HasPrefix(table.SuggestOf(e.Name, e.Names, ""), "the nearest") && len(e.Names) > 0
}

// modelLister is the command that lists all models.
const modelLister = "`tessera list models`"

// Extend adds the declarations of base to those of f: models of f can extend models of base, sweeps of f can train
// them, and [File.Model] and [File.Sweep] return the declarations of both. A declaration of f hides a declaration of
// base with the same name. The models and sweeps of base themselves do not change. A hidden model can still be extended
// by the model that hides it:
//
//	[model.shallow]
//	extends = "shallow" # of base
//
// f takes ownership of base: callers must not use base afterwards.
func (f *File) Extend(base *File) {
	if !f.empty() && !base.empty() {
		f.base = base
	}
}

// Names lists the models: first those of this file in file order, then those of the files that it extends.
func (f *File) Names() []string {
	return f.names(func(f *File) *table.Node { return f.models })
}

// SweepNames lists the sweeps: first those of this file in file order, then those of the files that it extends.
func (f *File) SweepNames() []string {
	return f.names(func(f *File) *table.Node { return f.sweeps })
}

func (f *File) names(declared func(*File) *table.Node) (names []string) {
	if f.empty() {
		return nil
	}
	own := declared(f)
	names = slices.Clone(own.Keys)
	for _, name := range f.base.names(declared) {
		if own.Child(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// FileOf returns the name of the file that declares a model, "" if there is no such model.
func (f *File) FileOf(model string) string { return f.owner(model).name() }

// FileOfSweep returns the name of the file that declares a sweep, "" if there is no such sweep.
func (f *File) FileOfSweep(sweep string) string { return f.sweepOwner(sweep).name() }

func (f *File) name() string {
	if f.empty() {
		return ""
	}
	return f.source.File
}

// sources returns the names of the file and of the files that it extends, for messages.
func (f *File) sources() string {
	text := f.source.File
	if f.base != nil {
		text += " and " + f.base.sources()
	}
	return text
}

// owner returns the file that declares a model: f, or a file that it extends. It returns nil if there is none.
func (f *File) owner(model string) *File {
	for ; !f.empty(); f = f.base {
		if f.models.Child(model) != nil {
			return f
		}
	}
	return nil
}

func (f *File) sweepOwner(sweep string) *File {
	for ; !f.empty(); f = f.base {
		if f.sweeps.Child(sweep) != nil {
			return f
		}
	}
	return nil
}

// scope returns the file in which the parent of a model is looked up. A model that extends its own name extends the
// model that it hides.
func (f *File) scope(model, parent string) *File {
	if model == parent && f.models.Child(model) != nil && f.base.owner(parent) != nil {
		return f.base
	}
	return f
}

// diagnoseAbove returns the errors of a model's parent if the parent is declared in another file.
func (f *File) diagnoseAbove(model string) []table.Diagnostic {
	parent, ok := f.models.Child(model).Child("extends").Text()
	if !ok {
		return nil
	}
	if home := f.scope(model, parent).owner(parent); home != nil && home != f {
		return home.diagnose(parent)
	}
	return nil
}

// longestName is the maximum length of the name of a model or sweep in bytes. File systems limit the name of a folder
// to 255 bytes, and the second run of a model is stored in runs/NAME-2.
const longestName = 240

// misnamed reports the name of a model or sweep if it cannot be the name of a folder in runs or sweeps. Separators are
// replaced, but some names point outside of the folder, and others are too long.
func misnamed(what, folder, name string, n *table.Node) []table.Diagnostic {
	d := table.Diagnostic{At: n.Key, Subject: table.Subject(what, name)}
	switch {
	case name == "", name == ".", name == "..":
		d.Suggestion, d.Problem = "give it another name", fmt.Sprintf("invalid name %[2]q of a %[1]s: its folder is %[3]s/NAME", what, name, folder)
	case strings.ContainsFunc(name, unicode.IsControl):
		d.Suggestion, d.Problem = "give it another name", fmt.Sprintf("invalid name %q of a %s: it contains a control character", name, what)
	case len(name) > longestName:
		d.Suggestion, d.Problem = "give it a shorter name", fmt.Sprintf("the name of the %s is too long (got %d bytes, want at most %d): its folder is %s/NAME", what, len(name), longestName, folder)
	default:
		return nil
	}
	return []table.Diagnostic{d.In(n)}
}

// lineage is the table of a model, merged with the tables of the models that it extends.
type lineage struct {
	table   *table.Node // merged table; nil if the model is not a table
	found   []table.Diagnostic
	partial bool // a parent is unknown, so inherited keys are missing
	open    bool // the table is being merged; a model that is reached again extends itself
	notes   []string
}

// lineage returns the merged table of a model and caches it in the file that declares the model.
func (f *File) lineage(name string) *lineage {
	if owner := f.owner(name); owner != f && owner != nil {
		return owner.lineage(name)
	}
	l, ok := f.lineages[name]
	if ok {
		return l
	}
	l = &lineage{open: true}
	f.lineages[name] = l
	n := f.models.Child(name)
	if n.IsTable() {
		f.extend(l, name, n)
	} else {
		l.found, l.partial = []table.Diagnostic{table.Diagnostic{At: n.Key,
			Problem: fmt.Sprintf("got %s, want a table: [model.%s]", n.Describe(), table.KeyText(name))}.In(n)}, true
	}
	l.open = false
	return l
}

// changed returns the lineage of a model for a changed value of `extends`.
func (f *File) changed(name string, extends *table.Node) *lineage {
	l := &lineage{}
	n := f.owner(name).models.Child(name)
	if !n.IsTable() {
		return l
	}
	l.table = without(n, "extends")
	l.table.Put("extends", extends)
	parent, _ := extends.Text()
	home := f.scope(name, parent)
	if chain := home.ancestors(parent, nil); home == f && slices.Contains(chain, name) {
		l.cycle(append([]string{name}, chain[:slices.Index(chain, name)+1]...), extends)
		return l
	}
	l.found = home.diagnose(parent)
	f.extend(l, name, l.table)
	return l
}

// extend merges n, the table of a model, into the table of its parent.
func (f *File) extend(l *lineage, name string, n *table.Node) {
	l.table = n
	e := n.Child("extends")
	if e == nil {
		return
	}
	l.partial = true
	parent, ok := e.Text()
	if !ok {
		return // an invalid `extends` is reported when it is decoded
	}
	home := f.scope(name, parent).owner(parent)
	if home == nil {
		l.found = append(l.found, table.Diagnostic{At: e.At, Problem: fmt.Sprintf("extends: unknown model %q", parent), Suggestion: f.suggestParent(name, parent)}.In(e))
		return
	}
	base := home.lineage(parent)
	switch {
	case base.open:
		f.cycle(name)
	case !base.partial:
		l.notes = slices.Clone(base.notes)
		l.table, l.partial = merging(&l.notes).Merge("", ofKind(without(without(base.table, "extends"), "about"), n.Child("kind")), n), false
	}
}

// cycle reports a cycle of models that extend each other. The error is located at the model of the cycle that comes
// first in the file.
func (f *File) cycle(name string) {
	chain := f.ancestors(name, nil)
	first := slices.MinFunc(chain, func(a, b string) int { return f.models.Child(a).Key.Start - f.models.Child(b).Key.Start })
	f.lineage(first).cycle(append(f.ancestors(first, nil), first), f.models.Child(first).Child("extends"))
}

func (l *lineage) cycle(chain []string, extends *table.Node) {
	l.partial = true
	l.found = append(l.found, table.Diagnostic{At: extends.At, Problem: "extends: a cycle: " + strings.Join(chain, " -> ")}.In(extends))
}

// ancestors lists a model and its ancestors in this file, each once. It stops at an unknown model, and at a model in
// the set clean.
func (f *File) ancestors(name string, clean map[string]bool) (list []string) {
	seen := map[string]bool{}
	for f.models.Child(name) != nil && !seen[name] && !clean[name] {
		seen[name] = true
		list = append(list, name)
		name, _ = f.models.Child(name).Child("extends").Text()
	}
	return list
}

// suggestParent suggests the model that `extends` probably means, or explains that there is no model to extend.
func (f *File) suggestParent(name, parent string) string {
	names := f.Names()
	if len(names) == 1 {
		return "this file declares no other model"
	}
	return f.suggest(parent, name)
}

// mostSuggested is the maximum number of errors with a suggestion. Each suggestion takes time proportional to the
// number of models.
const mostSuggested = 100

// suggest suggests the model whose name is most similar to name. It never suggests the model whose name is the argument
// not.
func (f *File) suggest(name, not string) string {
	if f.suggested++; f.suggested > mostSuggested {
		return ""
	}
	return table.SuggestOf(name, slices.DeleteFunc(f.Names(), func(k string) bool { return k == not }), modelLister)
}
