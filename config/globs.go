package config

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tessera/config/part/table"
)

// glob checks that the glob in a key matches at least one parameter, or one of the additional names.
func (w *walk) glob(part, kind, key, glob string, also ...string) bool {
	if _, err := path.Match(glob, ""); err != nil {
		w.report(part, kind, key, fmt.Sprintf("%s: malformed glob %q", key, glob), "")
		return false
	}
	matched := func(parameter string) bool { return MatchPath(glob, parameter) }
	for _, list := range [][]string{w.own, w.names, also} {
		if slices.ContainsFunc(list, matched) {
			return true
		}
	}
	if slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(glob, layer) }) {
		return true
	}
	w.report(part, kind, key, fmt.Sprintf("%s: %q matches no parameter", key, glob), w.suggestGlob(glob, also))
	return false
}

// trainable checks that the glob `on` of a constraint or hook matches a parameter that training changes. The function
// still reports whether training leaves a parameter unchanged.
func (w *walk) trainable(part, kind, glob string, still func(path string) bool, also ...string) {
	if !w.glob(part, kind, "on", glob, also...) || w.model.inDoubt("freeze") {
		return
	}
	moved := func(path string) bool { return MatchPath(glob, path) && !still(path) }
	if slices.ContainsFunc(w.names, moved) || slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(glob, layer) }) {
		return // unknown whether it is trained
	}
	for _, p := range w.all {
		own := cmp.Or(p.Of, p.Path)
		named := p.Of == "" || slices.Contains(also, p.Path)
		if named && MatchPath(glob, p.Path) && !p.State && !still(own) {
			return
		}
	}
	w.report(part, kind, "on", fmt.Sprintf("on: %q matches no trainable parameter: all are frozen, or updated by their layer", glob),
		"leave it out, or train some of them")
}

// paths returns the paths of all parameters whose names are known.
func (w *walk) paths() []string { return append(slices.Clip(w.own), w.names...) }

// views returns the aliases of parameters. Losses and constraints use them to select the atoms of a tied decoder.
func (w *walk) views() []string { return w.other }

// listed collects the parameters of the layout, against which all globs are matched.
func (w *walk) listed() {
	w.all = w.layout.Parameters()
	for _, p := range w.all {
		if p.Of == "" {
			w.own = append(w.own, p.Path)
		} else {
			w.other = append(w.other, p.Path)
		}
	}
}

// suggestGlob suggests the most similar parameter path or common glob, or else lists all common globs. For the name of
// a list or a layer it suggests the weights.
func (w *walk) suggestGlob(glob string, also []string) string {
	paths := append(w.paths(), also...)
	usual := starred(paths)
	for _, g := range append(usual, paths...) {
		if glob != "" && strings.HasPrefix(g, glob) && strings.HasSuffix(g, ".weight") {
			return table.Suggest(g, []string{g})
		}
	}
	if near, ok := table.Nearest(glob, append(usual, paths...)); ok {
		return table.Suggest(near, []string{near})
	}
	return table.Suggest(glob, usual)
}

// mayMatch reports whether a glob may match a parameter of a layer whose parameter names are unknown.
func mayMatch(glob, layer string) bool {
	literal := glob
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		literal = glob[:i]
	}
	return strings.HasPrefix(literal, layer+".") || strings.HasPrefix(layer+".", literal)
}

// starred returns globs that match a parameter name in all layers of a list: "decoder.*.weight".
func starred(paths []string) []string {
	var globs []string
	for _, p := range paths {
		part := strings.Split(p, ".")
		g := part[0] + ".*." + part[len(part)-1]
		if !slices.Contains(globs, g) {
			globs = append(globs, g)
		}
	}
	return globs
}

// Frozen reports whether a glob of the key freeze matches a parameter path.
func (m *Model) Frozen(parameter string) bool {
	return slices.ContainsFunc(m.Freeze, func(glob string) bool { return MatchPath(glob, parameter) })
}

// AllFrozen reports whether the parameters with the given names in the layer at path are all frozen. It returns false
// without names.
func (m *Model) AllFrozen(path string, names ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !m.Frozen(path + "." + name) })
}

// freeze checks the globs of frozen parameters, and that a trainable parameter remains.
func (w *walk) freeze() {
	if w.model.inDoubt("freeze") {
		return
	}
	before := len(w.found)
	for i, glob := range w.model.Freeze {
		w.glob("", "", fmt.Sprintf("freeze[%d]", i), glob)
	}
	if len(w.model.Freeze) == 0 || len(w.found) > before || len(w.names) > 0 || len(w.open) > 0 {
		return // true also if parameters are unknown
	}
	for _, p := range w.all {
		if !p.State && p.Of == "" && !w.model.Frozen(p.Path) {
			return
		}
	}
	w.report("", "", "freeze", "freeze: nothing is left to train", "narrow the globs: at least one parameter must be trainable")
}

// Start declares another run, or a file, from which a new run of the model takes its initial parameters.
type Start struct {
	Run   string  `toml:"run" optional:"true" doc:"the folder of the other run, or of a sparse dictionary of SAELens or sparsify"`
	File  string  `toml:"file" optional:"true" doc:"a .safetensors file of parameters in the layouts of PyTorch's modules, or vectors of words (.vec, .bin, GloVe's .txt) for the rows of the first layer embedding"`
	Names Renames `toml:"names" optional:"true" doc:"names in the file of parameters, or of layers and blocks: { \"encoder.0\" = \"fc1\" }; others have the same name"`
	On    string  `toml:"on" doc:"a glob over parameter paths: matching parameters are copied, all others are initialised"`
}

// From returns the run or the file.
func (s *Start) From() string { return cmp.Or(s.File, s.Run) }

// startByName reads start = "NAME", the run runs/NAME, and start = "FOLDER" as start = { run = "FOLDER" }; a name that ends in .safetensors, .vec or .bin is a file.
func startByName(model *table.Node) {
	n := model.Child("start")
	text, ok := n.Text()
	if !ok {
		return
	}
	start := n.Named("run")
	if slices.Contains([]string{".safetensors", ".vec", ".bin"}, path.Ext(text)) {
		start = n.Named("file")
	} else if text != "" && !strings.ContainsAny(text, `/\`) {
		start.Put("run", n.NewScalar("runs/"+text))
	}
	model.Put("start", start)
}

// Renames maps names to others.
type Renames map[string]string

// FromTOML sets the names from a table of texts.
func (r *Renames) FromTOML(value any) error {
	all, _ := value.(map[string]any)
	*r = Renames{}
	for from, v := range all {
		to, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s: got %v, want a text", from, v)
		}
		(*r)[from] = to
	}
	if len(all) == 0 {
		return fmt.Errorf("got %v, want a table of names: { \"encoder.0\" = \"fc1\" }", value)
	}
	return nil
}

// TOML returns the value from which [Renames.FromTOML] restores the names.
func (r Renames) TOML() any {
	all := map[string]any{}
	for from, to := range r {
		all[from] = to
	}
	return all
}

// Defaults sets the default glob.
func (s *Start) Defaults() { s.On = "*" }

// start checks that a run is named and that the glob matches a parameter. The other run is read only when the training
// begins.
func (w *walk) start() {
	s := w.model.Start
	if s == nil || w.model.inDoubt("start") {
		return
	}
	switch {
	case (s.Run == "") == (s.File == ""):
		w.report("start", "", "run", fmt.Sprintf("got run = %q and file = %q, want one of the two: the folder of a run, or a file of parameters", s.Run, s.File), "")
	case s.Run != "" && s.Names != nil:
		w.report("start", "", "names", "names: got names of a run, whose parameters have the names of the model; want them with `file`", "")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Names)) {
		glob := name + "*" // a layer or a block; else a parameter by its name in PyTorch
		if at := strings.LastIndexByte(name, '.'); at > 0 && !slices.ContainsFunc(w.own, func(p string) bool { return MatchPath(glob, p) }) {
			glob = name[:at] + ".*"
		}
		w.glob("start", "", "names", glob)
	}
	w.glob("start", "", "on", s.On)
}
