package cli

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/shell"
	"tessera/internal/train/folder"
	"tessera/internal/train/sae"
)

// firstModels is the file that init writes.
//
//go:embed init.toml
var firstModels []byte

func init() {
	Commands.Register("init", "Write a first models.toml, which can be trained at once", func() Command { return &initCommand{Dir: "."} })
}

type initCommand struct {
	Targets []string `flag:"target" each:"true" doc:"the column of a table that a model predicts: numbers by a regression, texts, or 0 and 1, by a classifier; may be repeated, once for each (default: guessed by the names)"`
	Dir     string   `arg:"DIR" usage:"[DIR | FILE | FOLDER]" optional:"true" is:"file" doc:"the folder of the file, or a table, a folder of pictures or texts, a text, an array (.npy, shards 'acts-*.npy') or a sparse matrix (.npz, .mtx) to declare models of"`
	Samples string   `arg:"SAMPLES" usage:"[SAMPLES]" optional:"true" is:"file" doc:"the activations that a sparse dictionary encodes, if FOLDER has one of SAELens (cfg.json, sae_weights.safetensors) or sparsify"`
}

func (f *initCommand) Help() Help {
	return Help{
		Long: "Write a commented " + tessera.ModelsFile + " into DIR (default: the current folder; created if there is none).\nOf a table, an array or a folder of pictures, write models of these data into the current folder: an auto-encoder, an NMF,\na classifier if there are labels, a regression if a column is named like a target (target, y, price, ...), " +
			"a sweep of the number of units and a comparison; of a table of entries (row, column, value) or a sparse matrix, a factorisation of the matrix; of texts (.txt files in folders, one file, a\ncolumn of a table), topics and vectors of words; of a sparse dictionary and its activations, a model with its parameters.\nThe names of samples, the labels and the other keys of the data are guessed, and check accepts what is written.\nAn existing file is never replaced.",
		Examples: []string{"tessera init", "tessera init genes.csv", "tessera init flats.csv --target rent", "tessera init gemma/layer_20 'acts-*.npy'", "tessera train my-bars"},
	}
}

func (f *initCommand) Do(cmd *Call) error {
	if f.Samples == "" && sae.Weights(f.Dir) != "" {
		return usagef("init: %s has a sparse dictionary; name the activations that it encodes, too: tessera init %s 'acts-*.npy'", f.Dir, f.Dir)
	}
	if found, _ := filepath.Glob(filepath.Join(f.Dir, "*matrix.mtx*")); len(found) == 1 && filepath.Clean(f.Dir) != "." { // the pattern is well formed; a folder as 10x writes it
		f.Dir = found[0]
	}
	if f.Targets != nil && !isData(f.Dir) {
		return usagef("init: --target: name the table: tessera init FILE --target NAME")
	}
	if f.Samples != "" || isData(f.Dir) {
		text, own, err := modelsOf(cmd, f.Dir, f.Samples, f.Targets)
		if err != nil {
			return err
		}
		if err := writeNew(tessera.ModelsFile, text, elsewhere(f.Targets, f.Dir, f.Samples)); err != nil {
			return err
		}
		return cmd.tell(slices.Concat([]string{tessera.ModelsFile}, own.Said, []string{"\nnext: `tessera check && tessera train " + own.First() + "`"})...)
	}
	if _, err := os.Stat(f.Dir); err != nil {
		if near, ok := table.Nearest(f.Dir, namesIn(filepath.Dir(f.Dir))); ok && isData(near) {
			return usagef("init: %s: no such file or folder; did you mean %q? (make a folder of that name for a first model of bars)", f.Dir, near)
		}
	}
	if err := noProject(f.Dir); err != nil {
		return err
	}
	path := filepath.Join(f.Dir, tessera.ModelsFile)
	if err := writeNew(path, firstModels, "`tessera check` reads what it declares; `tessera init DIR` writes one into a new folder"); err != nil {
		return err
	}
	return cmd.tell(path, "\nnext: `"+enter(f.Dir)+"tessera train my-bars`")
}

// elsewhere says how models of data are written beside a models.toml: in a new folder, from which the paths lead to the data.
func elsewhere(targets []string, paths ...string) string {
	words := []string{"tessera", "init"}
	for _, path := range paths {
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join("..", path)
		}
		if path != "" {
			words = append(words, path)
		}
	}
	for _, target := range targets {
		words = append(words, "--target", target)
	}
	folder := modelName(paths[0]) + "-models"
	return fmt.Sprintf("remove it first, or work in a new folder: mkdir %s && cd %s && %s", folder, folder, shell.Line(words))
}

// isData reports whether a path is a file, or a folder that has pictures or mostly texts, itself or in the folders of its classes.
func isData(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return data.IsTable(path) || strings.ContainsAny(path, "*?[") || filepath.Ext(path) != ""
	}
	if !info.IsDir() || filepath.Clean(path) == "." {
		return !info.IsDir()
	}
	if train, test := splitIn(path); test != "" {
		return isData(train)
	}
	texts, files := 0, 0
	for _, below := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(path, below)) // the pattern is well formed
		for _, name := range found {
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				continue
			}
			if data.IsPicture(name) {
				return true
			}
			if files++; isTexts(name) {
				texts++
			}
		}
	}
	return 2*texts > files
}

// splitIn returns the folders train and test, or validation, of a folder that has both; otherwise the folder itself.
func splitIn(folder string) (train, test string) {
	found := map[string]string{}
	entries, _ := os.ReadDir(folder) // without it there is nothing to find
	for _, e := range entries {
		if e.IsDir() {
			found[strings.ToLower(e.Name())] = filepath.Join(folder, e.Name())
		}
	}
	train, test = cmp.Or(found["train"], found["training"]), cmp.Or(found["test"], found["testing"], found["validation"], found["valid"], found["val"])
	if train == "" || test == "" {
		return folder, ""
	}
	return train, test
}

// fileKeys returns the keys of a data set that read a folder.
func fileKeys(folder string) string {
	train, test := splitIn(folder)
	keys := "file = " + table.StringText(train)
	if test != "" {
		keys += ", test = " + table.StringText(test)
	}
	return keys
}

// projectMarks are names that make a folder one to work in, whatever else it has.
var projectMarks = []string{tessera.ModelsFile, ".git", "go.mod", "pyproject.toml", "setup.py", "package.json", "Makefile"}

// noProject returns an error for a folder of files of which no models are declared. A first model is written into a new or empty folder, the current one, and one of
// a project.
func noProject(dir string) error {
	for _, name := range projectMarks {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil || filepath.Clean(dir) == "." {
			return nil
		}
	}
	files := map[string][]string{} // by extension
	most := ""
	for _, below := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, below)) // the pattern is well formed
		for _, name := range found {
			if info, err := os.Stat(name); err != nil || info.IsDir() || strings.HasPrefix(filepath.Base(name), ".") {
				continue
			}
			kind := filepath.Ext(name)
			if files[kind] = append(files[kind], name); len(files[kind]) > len(files[most]) {
				most = kind
			}
		}
	}
	found := files[most]
	if found == nil {
		return nil
	}
	way := "pictures and .txt files are declared by their folder, tables and arrays by their file"
	switch kind := data.ReaderOf(found[0]); {
	case kind == "text":
		way = "name one of them"
	case (kind == "npy" || kind == "safetensors") && len(found) > 1:
		way = "tessera init " + shell.Word(filepath.Join(filepath.Dir(found[0]), "*"+most))
	case kind != "":
		way = "tessera init " + shell.Word(found[0])
	case slices.Contains([]string{".md", ".rst", ".tex", ".html", ".htm", ".pdf", ".docx", ".odt", ".epub", ".rtf", ".json", ".jsonl", ".xml"}, strings.ToLower(most)):
		way = "texts are read from .txt files, or from a column of a table: save them as these"
	}
	return usagef("init: %s holds %s: %s; the first model of bars needs a new or empty folder", dir, numeral.Of(len(found), strings.TrimSpace(most+" file")), way)
}

// isTexts reports whether a path is a text, or a folder of texts.
func isTexts(path string) bool { return cmp.Or(data.KindOf(path), data.KindOf("./"+path)) == "text" }

// namesIn returns the paths of what a folder has.
func namesIn(folder string) (paths []string) {
	entries, _ := os.ReadDir(folder) // without it there is nothing to name
	for _, e := range entries {
		paths = append(paths, filepath.Join(folder, e.Name()))
	}
	return paths
}

// enter returns the shell command that changes to a folder, "" for the current one.
func enter(dir string) string {
	if filepath.Clean(dir) == "." {
		return ""
	}
	return "cd " + shell.Word(dir) + " && "
}

// writeNew creates a file, and its folder if necessary. If the file cannot be written completely, it is removed. otherwise says what to do
// instead if there is such a file.
func writeNew(path string, text []byte, otherwise string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usagef("init: %s exists already and is not replaced; %s", path, otherwise)
	}
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}
