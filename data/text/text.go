// Package text contains the data sets of texts: counts of words ([Bag]), of pairs of neighbouring words ([Cooccurrence]), and sequences of tokens
// ([Sequences]). Their vocabulary is fitted to the training texts and kept in the run.
package text

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/tokens"
)

// Texts are the keys of all data sets of texts. `file` is a folder of .txt files, of which those below a folder of the first level have its name as
// their class; one such file; a pattern, such as "*.txt"; or a table (.csv, Parquet) with a column of texts. Files are UTF-8, or UTF-16 with a
// byte order mark, and may be gzipped. Hidden files and files with other endings are left out.
type Texts struct {
	File    string `toml:"file" required:"true" instead:"grammar" optional:"true" doc:"folder of .txt files, whose folders are classes, a .txt file, a pattern of names, or a table with a column of texts"`
	Grammar int    `toml:"grammar" want:"in [0,10000000]" doc:"number of generated texts, in the place of files; 0 for none"`
	Test    string `toml:"test" doc:"the same for test texts; without it the set has no test split"`
	Text    string `toml:"text" doc:"column of a table with the texts; by default text"`
	Labels  string `toml:"labels" doc:"column of a table with the classes; by default labels, label or class, if there is one"`
	Unit    string `toml:"unit" oneof:"file paragraph sentence line" optional:"true" doc:"what one text is: a file or a cell (the default), or a paragraph (between empty lines), a sentence or a line of it"`
	Lower   bool   `toml:"lower" doc:"convert texts to lower case"`

	fitted *tokens.Tokenizer // of a model that reads further files; nil for a training
}

// The values of the key unit.
const (
	wholeFile = "file"
	paragraph = "paragraph"
	sentence  = "sentence"
	line      = "line"
)

func (t *Texts) Origin() data.Origin {
	if t.Grammar > 0 {
		return data.Generated
	}
	return data.OwnFiles
}

func (t *Texts) HasTest() bool { return t.Test != "" || t.Grammar > 0 }

func (t *Texts) Check() error {
	if t.Grammar > 0 && (t.File != "" || t.Test != "" || t.Text != "" || t.Labels != "" || t.Unit != "") {
		return part.KeyErrorf("grammar", "generates texts and their classes: leave out file, test, text, labels and unit, or write grammar = 0")
	}
	return nil
}

// isText reports whether the name of a file is one of a text.
func isText(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.ToLower(path), ".gz"), ".txt")
}

func init() {
	data.RegisterKind(func(path string, exists, isDir bool) string {
		switch {
		case isDir && len(filesIn(path)) > 0 && !hasPictures(path), !isDir && isText(path) && !(exists && isTable(path)):
			return bagName
		}
		return ""
	})
}

// NameFor returns the name of the data set that has the keys of a declaration without a name: "" if none of these is a key of texts alone.
func NameFor(keys []string) string {
	for _, is := range []struct{ key, name string }{{"window", pairsName}, {"length", tokensName}, {"context", contextsName}, {"text", bagName}, {"unit", bagName}, {"lower", bagName}, {"least", bagName}, {"most", bagName}} {
		if slices.Contains(keys, is.key) {
			return is.name
		}
	}
	return ""
}

// FileKeys are the keys of texts in files, which `grammar` replaces.
var FileKeys = []string{"file", "test", "text", "labels", "unit"}

// Reads reports whether a data set of this name reads texts.
func Reads(name string) bool {
	return slices.Contains([]string{bagName, pairsName, tokensName, contextsName}, name)
}

// hasPictures reports whether a folder, or a folder in it, has a picture.
func hasPictures(path string) bool {
	for _, below := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(path, below)) // the pattern is well formed
		if slices.ContainsFunc(found, data.IsPicture) {
			return true
		}
	}
	return false
}

// isTable reports whether a .txt file is a table: its first lines have equal numbers of separators, and there are at least two.
func isTable(path string) bool {
	if !data.IsTable(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 1<<14)
	n, _ := io.ReadFull(f, start) // a shorter file is enough
	lines := strings.Split(strings.TrimSpace(string(start[:n])), "\n")
	if n == len(start) {
		lines = lines[:max(1, len(lines)-1)]
	}
	if len(lines) < 2 {
		return false
	}
	for _, sign := range "\t;," {
		count := strings.Count(lines[0], string(sign))
		if count > 0 && !slices.ContainsFunc(lines, func(l string) bool { return strings.Count(l, string(sign)) != count }) {
			return true
		}
	}
	return false
}

// filesIn lists the texts in a folder and the folders in it, in the order of their names.
func filesIn(folder string) (paths []string) {
	_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error { // a folder that cannot be read has none
		switch hidden := strings.HasPrefix(filepath.Base(path), ".") && path != folder; {
		case err != nil, hidden && d.IsDir():
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
		case !hidden && !d.IsDir() && isText(path):
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// one is a text with its name and class, "" if it is unknown.
type one struct{ name, class, text string }

type content struct {
	texts   []one
	classed bool // they have classes
	file    data.File
	notes   []string
	parts   []int // number of samples of each text; nil for one
}

func (t *Texts) read(ctx context.Context, path string) (c content, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return t.readFiles(ctx, path, path, filesIn(path))
	case err != nil && strings.ContainsAny(path, "*?[") && isText(path):
		paths, wrong := filepath.Glob(path)
		if wrong != nil {
			return c, &data.Error{Path: path, Problem: "is not a valid pattern of names", Err: wrong}
		}
		return t.readFiles(ctx, path, filepath.Dir(path), paths)
	case err != nil && !strings.ContainsAny(path, "*?["):
		return c, &data.Error{Path: path, Problem: data.NotFound, Hint: "paths are relative to the folder in which the command is run"}
	case isText(path) && (t.Text == "" || t.fitted != nil && !isTable(path)):
		return t.readFiles(ctx, path, filepath.Dir(path), []string{path})
	}
	return t.readTable(ctx, path)
}

// readFiles reads files of text. Their classes are the folders of the first level, if no file is outside of them.
func (t *Texts) readFiles(ctx context.Context, path, root string, paths []string) (c content, err error) {
	if len(paths) == 0 {
		return c, &data.Error{Path: path, Problem: "has no texts: no file ends in .txt"}
	}
	digest, empty, first := sha256.New(), 0, ""
	c.classed = path == root
	for _, p := range paths {
		name, _ := filepath.Rel(root, p) // both are relative, or both absolute
		name = filepath.ToSlash(name)
		class, _, below := strings.Cut(name, "/")
		c.classed = c.classed && below
		all, err := data.ReadText(ctx, p)
		if err == nil {
			err = data.Sound(all)
		}
		if err != nil {
			return c, data.FileError("", p, err)
		}
		if len(paths) > 1 {
			fmt.Fprintf(digest, "%s %d\n", name, len(all))
		}
		_, _ = io.WriteString(digest, all) // a digest fails never
		n := len(c.texts)
		c.add(one{strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".txt"), class, all}, t.Unit)
		if len(c.texts) == n {
			if empty++; first == "" {
				first = name
			}
		}
	}
	c.file = data.File{Path: path, SHA256: hex.EncodeToString(digest.Sum(nil))}
	if empty > 0 && len(c.texts) > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%s: %s without text, such as %s, left out", path, numeral.Of(empty, "file"), first))
	}
	return c, c.some(path)
}

func (t *Texts) readTable(ctx context.Context, path string) (c content, err error) {
	column := cmp.Or(t.Text, "text")
	at, label, name := -1, -1, -1
	c.file, err = data.EachLine(ctx, path, func(names, cells []string, place int) error {
		if at < 0 {
			if at = slices.Index(names, column); at < 0 {
				return fmt.Errorf("has no column %q, only %.300q: name that of the texts in the key text", column, names)
			}
			if label = firstOf(names, t.Labels, "labels", "label", "class"); t.Labels != "" && label < 0 {
				return fmt.Errorf("has no column %q, only %.300q", t.Labels, names)
			}
			name, c.classed = firstOf(names, "", "names", "name", "id"), label >= 0
		}
		text := one{name: fmt.Sprint(place), text: strings.Clone(cells[at])}
		if err := data.Sound(text.text); err != nil {
			return fmt.Errorf("line %d, column %q: %w", place, column, err)
		}
		if name >= 0 && cells[name] != "" {
			text.name = strings.Clone(cells[name])
		}
		if label >= 0 && !data.IsUnknownLabel(cells[label]) {
			text.class = strings.TrimSpace(strings.Clone(cells[label]))
		}
		c.add(text, t.Unit)
		return nil
	})
	if err != nil {
		return c, data.FileError("", path, err)
	}
	return c, c.some(path)
}

// firstOf returns the place of a column that is named, or else of the first of the usual names; -1 if there is none.
func firstOf(names []string, named string, usual ...string) int {
	if named != "" {
		usual = []string{named}
	}
	for _, name := range usual {
		if i := slices.Index(names, name); i >= 0 {
			return i
		}
	}
	return -1
}

func (c *content) some(path string) error {
	if len(c.texts) == 0 {
		return &data.Error{Path: path, Problem: "has no text: every file or cell is empty"}
	}
	return nil
}

// add adds the units of a text; those of white space are left out.
func (c *content) add(of one, unit string) {
	n := 0
	part := func(text string) {
		n++
		if strings.TrimSpace(text) == "" {
			return
		}
		p := one{of.name, of.class, text}
		if unit != "" && unit != wholeFile {
			p.name = fmt.Sprintf("%s:%d", of.name, n)
		}
		c.texts = append(c.texts, p)
	}
	switch unit {
	case line:
		for text := range strings.Lines(of.text) {
			part(strings.TrimRight(text, "\r\n"))
		}
	case paragraph:
		var lines []string
		for text := range strings.Lines(of.text + "\n\n") {
			if strings.TrimSpace(text) != "" {
				lines = append(lines, text)
			} else if lines != nil {
				part(strings.Join(lines, ""))
				lines = nil
			}
		}
	case sentence:
		for text := range tokens.Sentences(of.text) {
			part(text)
		}
	default:
		part(of.text)
	}
}

// classes returns the names of the classes, sorted, and the label of every text.
func (c *content) classes(known []string) (names []string, labels []int, err error) {
	if !c.classed {
		return nil, nil, nil
	}
	if names = known; names == nil {
		for _, t := range c.texts {
			if t.class != "" {
				names = append(names, t.class)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	for _, t := range c.texts {
		label, found := slices.BinarySearch(names, t.class)
		if !found {
			if label = data.UnknownLabel; t.class != "" {
				return nil, nil, &data.Error{Path: c.file.Path, Problem: fmt.Sprintf("text %.60q has the class %.60q, which no training text has (%.200q)", t.name, t.class, names)}
			}
		}
		labels = append(labels, label)
	}
	return names, labels, nil
}

// sampleNames returns the names of samples: those of the texts, with a number where a text has several.
func (c *content) sampleNames() []string {
	if c.parts == nil {
		return c.names()
	}
	var names []string
	for i, t := range c.texts {
		for k := range c.parts[i] {
			name := t.name
			if c.parts[i] > 1 {
				name = fmt.Sprintf("%s:%d", t.name, k+1)
			}
			names = append(names, name)
		}
	}
	return names
}

func (c *content) names() []string {
	names := lists.Map(c.texts, func(t one) string { return t.name })
	return names
}

// each returns a function that passes all texts to do.
func (c *content) each(ctx context.Context) func(do func(text string)) error {
	return func(do func(text string)) error {
		for _, t := range c.texts {
			if err := ctx.Err(); err != nil {
				return err
			}
			do(t.text)
		}
		return nil
	}
}

// maker is a data set of texts.
type maker interface {
	// vocabulary fits the tokenizer to the training texts.
	vocabulary(ctx context.Context, c *content) (*tokens.Tokenizer, error)
	// samples makes samples of texts with these labels. It may add notes.
	samples(ctx context.Context, c *content, t *tokens.Tokenizer, labels []int) (*data.Images, error)
}

// last is the set that was loaded last. Shape, classes and samples of a declaration are asked for one after the other, and files are the same if their
// names, sizes and times are.
var last struct {
	sync.Mutex
	key string
	set *data.Set
}

func (t *Texts) load(ctx context.Context, name string, m maker, scale data.Scale) (*data.Set, error) {
	key := fmt.Sprintf("%s %+v", name, m)
	for _, path := range []string{t.File, t.Test} {
		key += "\n" + state(path)
	}
	last.Lock()
	defer last.Unlock()
	if last.key == key {
		set := *last.set
		return &set, nil
	}
	set := &data.Set{Name: name, HasTest: t.HasTest(), Tokens: t.fitted, Scale: scale}
	make := func(path, stream string, generated int) (*data.Images, error) {
		var c content
		var err error
		if generated > 0 {
			c, err = readGrammar(ctx, stream, generated)
		} else {
			c, err = t.read(ctx, path)
		}
		if err == nil && set.Tokens == nil {
			set.Tokens, err = m.vocabulary(ctx, &c)
		}
		if errors.Is(err, tokens.ErrEmpty) {
			wrong := &data.Error{Path: path, Problem: fmt.Sprintf("no word of %s is in the vocabulary", numeral.Of(len(c.texts), "text")), Hint: "lower the key least, or raise most"}
			if len(c.texts) == 1 && cmp.Or(t.Unit, wholeFile) == wholeFile {
				wrong.Hint = `it is one text: divide it by unit = "paragraph", "sentence" or "line"`
			}
			err = wrong
		}
		if err != nil {
			return nil, err
		}
		var labels []int
		if set.Classes, labels, err = c.classes(set.Classes); err != nil {
			return nil, err
		}
		images, err := m.samples(ctx, &c, set.Tokens, labels)
		if set.Notes = append(set.Notes, c.notes...); generated == 0 {
			set.Files = append(set.Files, c.file)
		}
		return images, err
	}
	var err error
	if set.Train, err = make(t.File, "grammar", t.Grammar); err == nil && set.HasTest {
		set.Test, err = make(t.Test, "grammar test", (t.Grammar+3)/4)
	}
	if err != nil {
		var known *data.Error
		if errors.As(err, &known) {
			err = data.FileError(name, t.File, known)
		}
		return nil, err
	}
	set.Shape = set.Train.Shape
	last.key, last.set = key, set
	copied := *set
	return &copied, nil
}

// state describes files without reading them.
func state(path string) string {
	paths, _ := filepath.Glob(path) // another pattern has none
	text := path
	for _, p := range append(paths, filesIn(path)...) {
		if info, err := os.Stat(p); err == nil {
			text += fmt.Sprintf("|%s %d %d", p, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}

// rows reads the samples of another file by the vocabulary of a model.
func (t *Texts) rows(ctx context.Context, m maker, path string) (*data.Rows, error) {
	if t.fitted == nil {
		return nil, &data.Error{Path: path, Problem: "is a text, but the run has no vocabulary"}
	}
	c, err := t.read(ctx, path)
	if err != nil {
		return nil, err
	}
	names, labels, err := c.classes(nil)
	if err != nil {
		return nil, err
	}
	images, err := m.samples(ctx, &c, t.fitted, labels)
	if err != nil {
		return nil, err
	}
	rows := &data.Rows{Images: images, Names: c.sampleNames(), Classes: names, Notes: c.notes}
	if images.Len() != len(rows.Names) {
		rows.Names = images.RowNames()
	}
	return rows, nil
}

// memory makes one sample of every text.
func (t *Texts) memory(ctx context.Context, m maker, texts []string) (*data.Images, error) {
	if t.fitted == nil {
		return nil, errors.New("text: there is no vocabulary")
	}
	c := content{texts: make([]one, len(texts))}
	for i, text := range texts {
		if err := data.Sound(text); err != nil {
			return nil, err
		}
		c.texts[i].text = text
	}
	return m.samples(ctx, &c, t.fitted, nil)
}

// ReadsFile reports whether a file is one of texts.
func (t *Texts) ReadsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || isText(path) || data.IsTable(path)
}

// check returns the error of a key of the vocabulary.
func checkSize(kind string, size int) error {
	least := map[string]int{tokens.Bytes: 258, tokens.Pairs: 259}[kind]
	if size != 0 && size < least {
		return part.KeyErrorf("vocabulary", "got %d, want at least %d: 256 bytes, <pad>, <end> and a pair", size, least)
	}
	return nil
}
