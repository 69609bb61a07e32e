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
	"maps"
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

	Where  data.Where  `toml:"where" optional:"true" doc:"condition on a column of a table, such as \"language = en\", or a list of conditions: rows that do not meet all of them are left out, also of the test texts, as of tables (csv)"`
	Memory data.Budget `toml:"memory" optional:"true" doc:"budget for the samples and counts, such as \"500MB\": sequences of tokens, words in their places and pairs of words that do not fit are written to a temporary file beside the texts, and read from there while a model is trained. By default all samples are in memory"`

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
	if t.Memory != 0 && t.Memory < data.LeastBudget {
		return part.KeyErrorf("memory", "got %s, want at least %s", t.Memory, data.Budget(data.LeastBudget))
	}
	if t.Grammar > 0 && len(t.Where) > 0 {
		return part.KeyErrorf("where", "chooses rows of a table: leave it out, or write grammar = 0")
	}
	if t.Grammar > 0 && (t.File != "" || t.Test != "" || t.Text != "" || t.Labels != "" || t.Unit != "") {
		return part.KeyErrorf("grammar", "generates texts and their classes: leave out file, test, text, labels and unit, or write grammar = 0")
	}
	return nil
}

// whole reports whether a file or cell is one text.
func (t *Texts) whole() bool { return cmp.Or(t.Unit, wholeFile) == wholeFile }

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
var FileKeys = []string{"file", "test", "text", "labels", "unit", "where"}

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

// filesIn lists the texts in a folder and the folders in it, in the order of their names. Links are followed.
func filesIn(folder string) []string { return filesBelow(folder, nil) }

// filesBelow is filesIn for a folder in others. A folder that cannot be read, or that is one of these, has no texts.
func filesBelow(folder string, above []os.FileInfo) (paths []string) {
	itself, err := os.Stat(folder)
	if err != nil || slices.ContainsFunc(above, func(f os.FileInfo) bool { return os.SameFile(f, itself) }) {
		return nil
	}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(folder, e.Name())
		switch info, err := os.Stat(path); { // follows links, which DirEntry does not
		case err == nil && info.IsDir():
			paths = append(paths, filesBelow(path, append(slices.Clip(above), itself))...)
		case isText(path), err != nil && e.Type() == os.ModeSymlink: // reading it says that it is broken
			paths = append(paths, path)
		}
	}
	return paths
}

// one is a text with its name and class, "" if it is unknown.
type one struct{ name, class string }

// content reads the texts of a file or folder, as often as needed. What it knows of all texts it learns when it reads them first.
type content struct {
	path  string
	unit  string
	read  func(ctx context.Context, c *content, d *divider) error
	named bool   // names of the texts are wanted
	state string // of the files when they were read first

	n       int // number of texts
	names   []string
	classed bool // they have classes
	classes map[string]class
	class   []int32  // number of the class of each text
	known   []string // names of the classes of the training texts
	file    data.File
	notes   []string
	kept    string // which rows of a table are texts
	parts   []int  // number of samples of each text; nil for one
}

// class is a class by the order in which they occur, and the first text of it.
type class struct {
	number int32
	text   string
}

// each calls do for the pieces of every text, of which no token is divided; last says that a text ends.
func (c *content) each(ctx context.Context) func(do func(piece string, last bool)) error {
	return func(do func(piece string, last bool)) error {
		first := c.n == 0
		d := &divider{unit: c.unit, do: func(of one, piece string, last bool) {
			if first && last {
				c.add(of)
			}
			do(piece, last)
		}}
		if first {
			c.state = state(c.path)
		}
		err := c.read(ctx, c, d)
		switch {
		case err == nil && c.n == 0:
			err = &data.Error{Path: c.path, Problem: "has no text: every file or cell is empty"}
		case err == nil && state(c.path) != c.state:
			err = &data.Error{Path: c.path, Problem: "changed while it was read"}
		}
		return err
	}
}

func (c *content) add(of one) {
	c.n++
	if c.named {
		c.names = append(c.names, of.name)
	}
	if !c.classed {
		return
	}
	if c.classes == nil {
		c.classes = map[string]class{}
	}
	its, found := c.classes[of.class]
	if !found {
		its = class{int32(len(c.classes)), of.name}
		c.classes[of.class] = its
	}
	c.class = append(c.class, its.number)
}

// divider divides texts into units, and passes these on in pieces.
type divider struct {
	unit  string
	do    func(of one, piece string, last bool)
	of    one
	n     int      // number of units of the text so far
	held  []string // pieces of the text, or of its last line, that are not passed on
	lines []string // of the paragraph
}

// text divides a text that is in memory.
func (d *divider) text(of one, text string) {
	d.of, d.n = of, 0
	d.piece(text)
	d.end()
}

// piece adds a piece to the text.
func (d *divider) piece(text string) {
	switch d.unit {
	case line, paragraph, sentence:
		for text := range strings.Lines(text) {
			if d.held = append(d.held, text); strings.HasSuffix(text, "\n") {
				d.line()
			}
		}
	default:
		if len(d.held) > 0 {
			d.do(d.of, d.held[0], false)
			d.n, d.held = d.n+1, d.held[:0]
		}
		d.held = append(d.held, text)
	}
}

// line divides the line that is held. Sentences end with lines.
func (d *divider) line() {
	text := strings.Join(d.held, "")
	d.held = d.held[:0]
	switch blank := strings.TrimSpace(text) == ""; {
	case d.unit == line:
		d.one(strings.TrimRight(text, "\r\n"))
	case d.unit == sentence:
		for text := range tokens.Sentences(text) {
			d.one(text)
		}
	case !blank:
		d.lines = append(d.lines, text)
	case d.lines != nil:
		d.one(strings.Join(d.lines, ""))
		d.lines = nil
	}
}

// one passes a unit on, if it is not of white space.
func (d *divider) one(text string) {
	d.n++
	if strings.TrimSpace(text) != "" {
		d.do(one{fmt.Sprintf("%s:%d", d.of.name, d.n), d.of.class}, text, true)
	}
}

// end ends the text. It reports whether there is something in it.
func (d *divider) end() {
	switch {
	case d.unit == paragraph:
		d.piece("\n\n")
	case len(d.held) == 0:
	case d.unit == line, d.unit == sentence:
		d.line()
	case d.n > 0 || strings.TrimSpace(d.held[0]) != "":
		d.do(d.of, d.held[0], true)
	}
	d.held = d.held[:0]
}

func (t *Texts) open(path string) (*content, error) {
	c := &content{path: path, unit: t.Unit}
	files := func(root string, paths []string) (*content, error) {
		if len(t.Where) > 0 && t.fitted == nil {
			return nil, &data.Error{Path: path, Problem: "is read as text, but where chooses rows of a table by its columns", Hint: "leave where out, or name a .csv or Parquet file with a column of texts"}
		}
		if len(paths) == 0 {
			return nil, &data.Error{Path: path, Problem: "has no texts: no file ends in .txt"}
		}
		c.classed = path == root
		for _, p := range paths {
			_, _, below := strings.Cut(nameIn(root, p), "/")
			c.classed = c.classed && below
		}
		c.read = func(ctx context.Context, c *content, d *divider) error { return c.readFiles(ctx, root, paths, d) }
		return c, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return files(path, filesIn(path))
	case err != nil && strings.ContainsAny(path, "*?[") && isText(path):
		paths, wrong := filepath.Glob(path)
		if wrong != nil {
			return nil, &data.Error{Path: path, Problem: "is not a valid pattern of names", Err: wrong}
		}
		return files(filepath.Dir(path), paths)
	case err != nil && !strings.ContainsAny(path, "*?["):
		return nil, &data.Error{Path: path, Problem: data.NotFound, Hint: "paths are relative to the folder in which the command is run"}
	case isText(path) && (t.Text == "" || t.fitted != nil && !isTable(path)):
		return files(filepath.Dir(path), []string{path})
	}
	c.read = t.readTable
	return c, nil
}

// nameIn returns the name of a file in a folder.
func nameIn(root, path string) string {
	name, _ := filepath.Rel(root, path) // both are relative, or both absolute
	return filepath.ToSlash(name)
}

// readFiles reads files of text. Their classes are the folders of the first level, if no file is outside of them.
func (c *content) readFiles(ctx context.Context, root string, paths []string, d *divider) error {
	digest, first := sha256.New(), c.file.Path == ""
	empty, without := 0, ""
	write := func(piece string) { _, _ = io.WriteString(digest, piece) } // a digest fails never
	for _, p := range paths {
		name := nameIn(root, p)
		if size := 0; first && len(paths) > 1 {
			if err := data.EachPiece(ctx, p, func(piece string) { size += len(piece) }); err != nil {
				return err
			}
			write(fmt.Sprintf("%s %d\n", name, size))
		}
		class, _, _ := strings.Cut(name, "/")
		d.of, d.n = one{strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".txt"), class}, 0
		n := c.n
		err := data.EachPiece(ctx, p, func(piece string) {
			if first {
				write(piece)
			}
			d.piece(piece)
		})
		if err != nil {
			return err
		}
		if d.end(); c.n == n {
			if empty++; without == "" {
				without = name
			}
		}
	}
	if !first {
		return nil
	}
	c.noteEmpty(empty, "file", without)
	c.file = data.File{Path: c.path, SHA256: hex.EncodeToString(digest.Sum(nil))}
	return nil
}

// noteEmpty notes files or rows that have no text.
func (c *content) noteEmpty(n int, what, example string) {
	if n > 0 && c.n > 0 {
		c.notes = append(c.notes, fmt.Sprintf("%s: %s without text, such as %s, left out", c.path, numeral.Of(n, what), example))
	}
}

func (t *Texts) readTable(ctx context.Context, c *content, d *divider) (err error) {
	column := cmp.Or(t.Text, "text")
	at, label, name := -1, -1, -1
	first, empty, without := c.file.Path == "", 0, ""
	where := t.Where
	if t.fitted != nil {
		where = nil
	}
	c.file, c.kept, err = data.EachLine(ctx, c.path, where, func(names, cells []string, place int) error {
		if at < 0 {
			if at = slices.Index(names, column); at < 0 {
				way := "name that of the texts in the key text"
				if t.fitted != nil { // whose keys are those of the training
					way = "give that of the texts this name"
				}
				return fmt.Errorf("has no column %q, only %.300q: %s", column, names, way)
			}
			if label = firstOf(names, t.Labels, "labels", "label", "class"); t.Labels != "" && label < 0 && t.fitted == nil {
				return fmt.Errorf("has no column %q, only %.300q", t.Labels, names)
			}
			name, c.classed = firstOf(names, "", "names", "name", "id"), label >= 0
		}
		of, text := one{name: fmt.Sprint(place)}, strings.Clone(cells[at])
		if err := data.Sound(text); err != nil {
			return fmt.Errorf("line %d, column %q: %w", place, column, err)
		}
		if name >= 0 && cells[name] != "" {
			of.name = strings.Clone(cells[name])
		}
		if label >= 0 && !data.IsUnknownLabel(cells[label]) {
			of.class = strings.TrimSpace(strings.Clone(cells[label]))
		}
		if t.fitted != nil && t.whole() && strings.TrimSpace(text) == "" { // else codes and predictions are of other rows than the table has
			d.do(of, "", true)
			return nil
		}
		n := c.n
		if d.text(of, text); c.n == n && strings.TrimSpace(text) == "" {
			empty, without = empty+1, cmp.Or(without, fmt.Sprintf("line %d", place))
		}
		return nil
	})
	if first {
		c.noteEmpty(empty, "row", without)
	}
	if err == nil && at < 0 && len(where) > 0 {
		err = fmt.Errorf("has no row that meets the conditions of where (%s)", strings.Join(where, ", "))
	}
	return data.FileError("", c.path, err)
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

// labels returns the label of every text that was read, nil without classes, whose names are then known.
func (c *content) labels() (labels []int, err error) {
	if !c.classed {
		return nil, nil
	}
	if c.known == nil {
		c.known = slices.DeleteFunc(slices.Sorted(maps.Keys(c.classes)), func(name string) bool { return name == "" })
	}
	of := make([]int, len(c.classes))
	for name, its := range c.classes {
		label, found := slices.BinarySearch(c.known, name)
		if !found {
			if label = data.UnknownLabel; name != "" {
				return nil, &data.Error{Path: c.path, Problem: fmt.Sprintf("text %.60q has the class %.60q, which no training text has (%.200q)", its.text, name, c.known)}
			}
		}
		of[its.number] = label
	}
	return lists.Map(c.class, func(number int32) int { return of[number] }), nil
}

// sampleNames returns the names of samples: those of the texts, with a number where a text has several.
func (c *content) sampleNames() []string {
	if c.parts == nil {
		return c.names
	}
	var names []string
	for i, name := range c.names {
		for k := range c.parts[i] {
			if c.parts[i] > 1 {
				names = append(names, fmt.Sprintf("%s:%d", name, k+1))
			} else {
				names = append(names, name)
			}
		}
	}
	return names
}

// record returns an empty recording of rows of width numbers, made from the texts at path.
func (t *Texts) record(path string, width int) *data.Recording {
	return data.NewRecording(path, t.Memory, t.HasTest() && t.fitted == nil, width)
}

// tally returns a tally without pairs, of the texts at path.
func (t *Texts) tally(path string) *data.Tally {
	return data.NewTally(path, t.Memory, t.HasTest() && t.fitted == nil)
}

// maker is a data set of texts.
type maker interface {
	// vocabulary fits the tokenizer to the training texts.
	vocabulary(ctx context.Context, c *content) (*tokens.Tokenizer, error)
	// samples makes samples of texts. It may add notes.
	samples(ctx context.Context, c *content, t *tokens.Tokenizer) (*data.Images, error)
}

// last is the set that was loaded last, or its vocabulary alone. Shape, classes and samples of a declaration are asked for one after the other, and files
// are the same if their names, sizes and times are.
var last struct {
	sync.Mutex
	key    string
	tokens *tokens.Tokenizer
	set    *data.Set // nil if only Shape was asked for
}

// key names a declaration and its files for last: by absolute paths, which those of a run are.
func (t *Texts) key(name string, m maker) string {
	key, states := fmt.Sprintf("%s %+v", name, m), ""
	for _, path := range t.paths(m) {
		whole, _ := filepath.Abs(path) // "" if there is no working directory
		key = strings.ReplaceAll(key, ":"+path+" ", ":"+whole+" ")
		states += "\n" + state(whole)
	}
	return key + states
}

// paths returns the files of a declaration.
func (t *Texts) paths(m maker) []string {
	paths := []string{t.File, t.Test}
	if s, ok := m.(*Sequences); ok && t.fitted == nil {
		paths = append(paths, s.tokenizerFiles()...)
	}
	return lists.Only(paths, func(path string) bool { return path != "" })
}

// shape returns the number of words of the vocabulary as the shape of samples that count words. The words are not counted for it.
func (t *Texts) shape(name string, m maker) ([]int, bool) {
	key := t.key(name, m)
	last.Lock()
	defer last.Unlock()
	if last.key != key {
		fitted := t.fitted
		if fitted == nil {
			c, err := t.texts(t.File, "grammar", t.Grammar)
			if err == nil {
				fitted, err = m.vocabulary(context.Background(), c)
			}
			if err != nil {
				return nil, false
			}
		}
		last.key, last.tokens, last.set = key, fitted, nil
	}
	return []int{last.tokens.Texts()}, true
}

// texts opens the texts at a path, or generated ones.
func (t *Texts) texts(path, stream string, generated int) (*content, error) {
	if generated > 0 {
		return grammar(stream, generated), nil
	}
	return t.open(path)
}

func (t *Texts) load(ctx context.Context, name string, m maker, scale data.Scale) (*data.Set, error) {
	key := t.key(name, m)
	last.Lock()
	defer last.Unlock()
	set := &data.Set{Name: name, HasTest: t.HasTest(), Tokens: t.fitted, Scale: scale}
	if last.key == key {
		if last.set != nil {
			*set = *last.set
			set.Files = slices.Clone(set.Files)
			for i, path := range t.paths(m) {
				set.Files[i].Path = path
			}
			return set, nil
		}
		set.Tokens = last.tokens
	}
	make := func(path, stream string, generated int) (*data.Images, error) {
		c, err := t.texts(path, stream, generated)
		if err != nil {
			return nil, err
		}
		c.named, c.known = name == bagName, set.Classes
		if set.Tokens == nil {
			set.Tokens, err = m.vocabulary(ctx, c)
		}
		if errors.Is(err, tokens.ErrEmpty) {
			wrong := &data.Error{Path: path, Problem: fmt.Sprintf("no word of %s is in the vocabulary", numeral.Of(c.n, "text")), Hint: "lower the key least, or raise most"}
			if c.n == 1 && t.whole() {
				wrong.Hint = `it is one text: divide it by unit = "paragraph", "sentence" or "line"`
			}
			err = wrong
		}
		if err != nil {
			return nil, err
		}
		images, err := m.samples(ctx, c, set.Tokens)
		if err == nil {
			_, err = c.labels()
		}
		if set.Classes, set.Notes = c.known, append(set.Notes, c.notes...); generated == 0 {
			set.Files = append(set.Files, c.file)
		}
		if c.kept != "" {
			set.Kept = append(set.Kept, path+": "+c.kept)
		}
		if images.OnDisk() {
			set.Kept = append(set.Kept, fmt.Sprintf("%s: %s in a temporary file, because they do not fit into memory = %q", cmp.Or(path, stream), numeral.Of(images.Len(), "sample"), t.Memory))
		}
		return images, err
	}
	var err error
	if set.Train, err = make(t.File, "grammar", t.Grammar); err == nil && set.HasTest {
		set.Test, err = make(t.Test, "grammar test", (t.Grammar+3)/4)
	}
	if s, ok := m.(*Sequences); ok && t.fitted == nil {
		for _, path := range s.tokenizerFiles() { // another vocabulary gives other samples
			if err == nil {
				var file data.File
				file, err = data.Checksum(ctx, path)
				set.Files = append(set.Files, file)
			}
		}
	}
	if err != nil {
		if known, ok := errors.AsType[*data.Error](err); ok {
			err = data.FileError(name, t.File, known)
		}
		return nil, err
	}
	set.Shape = set.Train.Shape
	last.key, last.tokens, last.set = key, set.Tokens, set
	copied := *set
	return &copied, nil
}

// state describes files without reading them.
func state(path string) string {
	paths, _ := filepath.Glob(path) // another pattern has none
	text := path
	for _, p := range slices.Concat([]string{path}, paths, filesIn(path)) {
		if info, err := os.Stat(p); err == nil {
			text += fmt.Sprintf("|%s %d %d", p, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}

// rows reads the samples of another file by the vocabulary of a model. Labels number these classes, or those of the file if they are nil.
func (t *Texts) rows(ctx context.Context, m maker, path string, classes []string) (*data.Rows, error) {
	if t.fitted == nil {
		return nil, &data.Error{Path: path, Problem: "is a text, but the run has no vocabulary"}
	}
	c, err := t.open(path)
	if err != nil {
		return nil, err
	}
	c.named, c.known = true, classes
	images, err := m.samples(ctx, c, t.fitted)
	if err == nil {
		_, err = c.labels()
	}
	if err != nil {
		return nil, err
	}
	rows := &data.Rows{Images: images, Names: c.sampleNames(), Classes: c.known, Notes: c.notes}
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
	for _, text := range texts {
		if err := data.Sound(text); err != nil {
			return nil, err
		}
	}
	c := &content{read: func(_ context.Context, c *content, d *divider) error {
		for _, text := range texts {
			if strings.TrimSpace(text) == "" { // as a cell of a table
				text = ""
			}
			d.do(one{}, text, true)
		}
		return nil
	}}
	return m.samples(ctx, c, t.fitted)
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
