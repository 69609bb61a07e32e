package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"unicode"

	"github.com/spf13/cobra"

	"tessera"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/shell"
	"tessera/internal/train/sae"
)

// supervised is the data set of a model that predicts, with columns of texts beside the values of a sample.
type supervised struct {
	Dataset string
	Missing bool // the columns of numbers have empty cells
	Texts   []textColumn
}

// From returns what the first layer reads, if it is more than the sample.
func (s supervised) From() string {
	names := []string{table.StringText(data.ImagesColumn)}
	if s.Missing {
		names = append(names, table.StringText("observed"))
	}
	for _, t := range s.Texts {
		names = append(names, table.StringText(t.Name+"-values"))
	}
	if len(names) == 1 {
		return ""
	}
	return ", from = [" + strings.Join(names, ", ") + "]"
}

// textColumn is a column of texts of which each is learned as a few numbers: its name in keys and in the file, and the number of different texts.
type textColumn struct {
	Name, Column string
	Different    int
	Missing      bool // cells are empty
}

// reservedKeys are names that a column of texts cannot have in a declaration, or that stand for others there.
var reservedKeys = []string{"", "code", "output", "atoms", "images", "input", "labels", "names", "views", "loss", "teacher", "previous", "observed", "held_out", "complete",
	"target", "predicted", "class"}

// columnKey returns the name of a column without signs that a key cannot contain.
func columnKey(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '-'
	}, name), "-")
}

// Key returns the name, with an ending, as a key of TOML.
func (t textColumn) Key(ending string) string { return table.KeyText(t.Name + ending) }

// Text returns the name as a text of TOML.
func (t textColumn) Text() string { return table.StringText(t.Name) }

// Units returns a number of learned numbers of a text.
func (t textColumn) Units() int { return min(8, (t.Different+1)/2) }

// target is a column of numbers that a regression predicts: its name, and the middle and half of its range.
type target struct {
	supervised
	Name, Offset, Factor string
}

// ownModels is the template of the file that init writes for data of the user.
//
//go:embed init_table.toml
var ownModels string

// ownTriples is the template for a file of entries of a matrix.
//
//go:embed init_triples.toml
var ownTriples string

// ownTexts is the template for texts.
//
//go:embed init_text.toml
var ownTexts string

// ownDictionary is the template for a sparse dictionary of another program.
//
//go:embed init_dictionary.toml
var ownDictionary string

// ownClasses is the template of a classifier, which follows the other models of samples with labels.
//
//go:embed init_classes.toml
var ownClasses string

// foundData is what init guesses of a table or a folder of pictures.
type foundData struct {
	Path, Name string     // file or folder, and the name of its model
	Kind       string     // keys of the method for entries of a matrix
	Dataset    string     // table of TOML
	Missing    bool       // cells of a table are empty
	Complete   string     // table of TOML of a model that predicts them from the others; "" without any others
	Epochs     int        // of this model
	Classes    bool       // samples have labels
	Labelled   supervised // of the classifier; by default Dataset
	Target     *target
	Pictures   bool // samples are images with values >= 0
	Units      int
	Rate       float64
	Samples    string // of a sparse dictionary
	Dictionary *sae.Dictionary
	Words      string // of texts the table of the data set of their words
	WordUnits  int
	Asked      bool // the user named the column that a model predicts
	template   string
	Said       []string // the guesses, for the user
}

// sayTest names the folder of the test samples, if there is one.
func (o *foundData) sayTest(folder string) {
	if folder != "" {
		o.say("the test samples are those of %s (test)", folder)
	}
}

// First returns the model that the user trains first: the one that predicts the column asked for, or that of the parts.
func (o *foundData) First() string {
	switch {
	case o.Asked && o.Target != nil:
		return o.Name + "-numbers"
	case o.Asked && o.Classes:
		return o.Name + "-classes"
	}
	return o.Name
}

// modelsOf returns a file of models for the data at a path that check accepts, and what was guessed; for the samples of a sparse dictionary if the path is its
// folder.
func modelsOf(cmd *Call, path, samples string, wanted []string) (text []byte, own *foundData, err error) {
	var guesses []*foundData // the first that check accepts is written
	info, err := os.Stat(path)
	if wanted != nil && (samples != "" || !data.IsTable(path)) {
		return nil, nil, usagef("init: --target: got %s, want a table (.csv, .tsv, .parquet), whose columns have names", path)
	}
	switch {
	case samples != "":
		if guesses, err = dictionariesOf(path, samples); err != nil {
			return nil, nil, err
		}
	case isTexts(path):
		own, err := textsOf(cmd.Context(), path, nil)
		if err != nil {
			return nil, nil, err
		}
		guesses = append(guesses, own)
	case err != nil && !strings.ContainsAny(path, "*?["):
		return nil, nil, data.NotFoundAt("", path)
	case err != nil: // shards
		own, err := arrayOf(cmd.Context(), path)
		if err != nil {
			return nil, nil, err
		}
		guesses = append(guesses, own)
	case info.IsDir():
		own, err := picturesIn(cmd.Context(), path)
		if err != nil {
			return nil, nil, err
		}
		guesses = append(guesses, own)
	case data.IsTable(path):
		s, err := data.SketchTable(cmd.Context(), path)
		if err != nil {
			return nil, nil, err
		}
		if own := entriesOf(path, s); own != nil && wanted == nil {
			guesses = append(guesses, own)
		}
		if c := longest(s); c != nil && wanted == nil {
			own, err := textsOf(cmd.Context(), path, s)
			if err != nil {
				return nil, nil, err
			}
			guesses = append(guesses, own)
		}
		own, err := samplesOf(path, s, wanted)
		if err != nil && guesses == nil {
			return nil, nil, err
		} else if err == nil {
			guesses = append(guesses, own)
		}
	default:
		own, err := arrayOf(cmd.Context(), path)
		if err != nil {
			return nil, nil, err
		}
		guesses = append(guesses, own)
	}
	var wrong error
	for _, own := range guesses {
		if own.Labelled.Dataset == "" {
			own.Labelled = supervised{Dataset: own.Dataset, Missing: own.Missing}
		}
		var b bytes.Buffer
		columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0) // of the commands at the top
		if err := cmp.Or(template.Must(template.New("models").Parse(own.template+ownClasses)).Execute(columns, own), columns.Flush()); err != nil {
			return nil, nil, err
		}
		err := sound(cmd, b.Bytes())
		if err == nil {
			return b.Bytes(), own, nil
		}
		wrong = cmp.Or(wrong, err)
	}
	return nil, nil, fmt.Errorf("init: %s is not written, because tessera check would refuse it:\n%w", tessera.ModelsFile, wrong)
}

// dictionariesOf declares the sparse dictionary in a folder, of samples that are read in blocks if their format can be.
func dictionariesOf(path, samples string) (all []*foundData, err error) {
	if sae.Weights(path) == "" {
		return nil, usagef("init: %s: got no sparse dictionary, want a folder with %s and %s or %s", path, sae.ConfigFile, sae.LensFile, sae.EleuthFile)
	}
	d, err := sae.Read(path)
	if err != nil {
		return nil, err
	}
	for _, memory := range []string{`, memory = "1GB"`, ""} {
		own := &foundData{Path: path, Name: modelName(path), Samples: samples, Dictionary: d, template: ownDictionary}
		own.Dataset = "{ file = " + table.StringText(samples) + memory + " }"
		own.say("a %s dictionary of %s for samples of %s", d.Architecture, numeral.Of(d.Units, "unit"), numeral.Of(d.Inputs, "value"))
		if d.Transcodes {
			own.say("its output is not the sample, but what another layer computes: declare that as a column, and `against` it in the loss")
		}
		all = append(all, own)
	}
	return all, nil
}

// Completed returns the files of a call of the command complete.
func (o *foundData) Completed() string {
	end := ".csv"
	if filepath.Ext(o.Path) == ".tsv" {
		end = ".tsv"
	}
	return "--in " + shell.Word(o.Path) + " --out full" + end
}

// Start returns the path of the dictionary as a text of TOML.
func (o *foundData) Start() string { return table.StringText(o.Path) }

// sound returns the errors that the command check reports of a text in place of the file of models.
func sound(cmd *Call, text []byte) error {
	models, err := config.Load(tessera.ModelsFile, text)
	if err != nil {
		return err
	}
	models.Extend(tessera.Shipped())
	if err := searching(models, data.SearchDirs("")).Check(); err != nil {
		return err
	}
	silent := &cobra.Command{}
	silent.SetContext(cmd.Context())
	silent.SetOut(io.Discard)
	silent.SetErr(io.Discard)
	return (&checkCommand{}).examine(&Call{silent}, models)
}

// Ladder returns the numbers of units of the sweep as a list of TOML.
func (o *foundData) Ladder() string {
	texts := lists.Map(ladder(o.Units, math.MaxInt), strconv.Itoa)
	return "[" + strings.Join(texts, ", ") + "]"
}

func modelName(path string) string {
	base := strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".gz")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))), "-")
	if name == "" {
		return "own"
	}
	return name
}

// Guesses returns the guesses as lines of a comment.
func (o *foundData) Guesses() []string {
	return lists.Map(o.Said, func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, text)
	})
}

func (o *foundData) say(format string, args ...any) {
	o.Said = append(o.Said, fmt.Sprintf(format, args...))
}

// longest returns the column with the longest texts of a table, nil if no column has texts of several words that are more than half of its numbers.
func longest(s *data.TableSketch) *data.ColumnSketch {
	const least = 4 // words of a text, on average
	numbers, best := 0, -1
	for i, c := range s.Columns {
		if c.Numeric {
			numbers++
		} else if c.Words >= least && (best < 0 || c.Words > s.Columns[best].Words) {
			best = i
		}
	}
	if best < 0 || numbers > 3 { // a table of values with a remark
		return nil
	}
	return &s.Columns[best]
}

// textsOf guesses the keys of texts: of a folder, a file, or a column of a table. A file that is one text is divided into its paragraphs, or its lines.
func textsOf(ctx context.Context, path string, s *data.TableSketch) (*foundData, error) {
	own := &foundData{Path: path, Name: modelName(path), template: ownTexts}
	file := fileKeys(path)
	_, test := splitIn(path)
	own.sayTest(test)
	if s != nil {
		column := longest(s).Name
		file += ", text = " + table.StringText(column)
		own.say("texts: column %q", column)
		others := &data.TableSketch{Columns: slices.DeleteFunc(slices.Clone(s.Columns), func(c data.ColumnSketch) bool { return c.Name == column })}
		labels := labelsIn(others, func(c data.ColumnSketch) bool {
			return c.Repeats && c.Different <= mostClasses && (c.Whole || !c.Numeric)
		})
		if labels >= 0 {
			file += ", labels = " + table.StringText(others.Columns[labels].Name)
			own.say("labels: column %q", others.Columns[labels].Name)
		}
	}
	const words = `, window = 5, vocabulary = 10000, scale = "ppmi" }`
	for _, unit := range []string{"", `, unit = "paragraph"`, `, unit = "line"`} {
		own.Dataset = "{ " + file + unit + `, scale = "tfidf" }`
		const few = 20 // texts
		last := unit == `, unit = "line"`
		set, err := loaded(ctx, own.Dataset)
		if (err != nil || set.Train.Len() < few) && !last {
			continue
		} else if err != nil {
			return nil, err
		}
		n := set.Train.Len()
		if unit != "" {
			own.say("each %s is a text (unit)", strings.Trim(strings.TrimPrefix(unit, ", unit = "), `"`))
		}
		classes := set.Classes
		if own.Classes = len(classes) > 1; own.Classes {
			own.Labelled = supervised{Dataset: own.Dataset} // of all words
		}
		const enough = 200 // words of topics
		fewer := "{ " + file + unit + `, least = 5, most = 0.2, scale = "tfidf" }`
		if of, err := loaded(ctx, fewer); err == nil && of.Train.Len() == n && of.Train.Pixels() >= enough {
			own.Dataset, set = fewer, of
			own.say("words of fewer than 5 texts, and of more than a fifth of them, are left out of the topics (least, most)")
		}
		words := set.Train.Pixels()
		own.say("%s of %s", numeral.Of(n, "text"), numeral.Of(words, "word"))
		if own.Classes {
			own.say("classes: %s (labels)", strings.Join(classes[:min(8, len(classes))], ", "))
		}
		own.Units = max(min(2, words), min(20, n/4, words/10))
		break
	}
	own.say("counts are weighted, so that words of many texts count little (scale)")
	own.Words = "{ " + file + words
	set, err := loaded(ctx, own.Words)
	if err != nil { // few words: all of them
		own.Words = "{ " + file + strings.Replace(words, "vocabulary", "least = 1, vocabulary", 1)
		if set, err = loaded(ctx, own.Words); err != nil {
			return nil, err
		}
	}
	own.WordUnits = max(1, min(100, set.Train.Pixels()/4))
	return own, nil
}

// loaded loads the data set of a declaration.
func loaded(ctx context.Context, dataset string) (*data.Set, error) {
	models, err := config.Load(tessera.ModelsFile, fmt.Appendf(nil, "[model.own]\nkind = \"pca\"\ncomponents = 1\ndataset = %s\n", dataset))
	if err != nil {
		return nil, err
	}
	m, err := searching(models, data.SearchDirs("")).Model("own")
	if err != nil {
		return nil, err
	}
	return data.Load(ctx, m.Dataset.Source, nil, m.Dataset.Need())
}

// picturesIn guesses the keys of a folder of pictures. Small pictures of one size keep it.
func picturesIn(ctx context.Context, path string) (*foundData, error) {
	train, test := splitIn(path)
	s, err := data.SketchPictures(ctx, train)
	if err != nil {
		return nil, err
	}
	own := &foundData{Path: path, Name: modelName(path), Units: unitsFor(40, s.Count), Pictures: true, template: ownModels}
	own.sayTest(test)
	const scaled, most = 32, 64
	size := s.Size
	if size == (data.Size{}) || max(size.Height, size.Width) > most {
		size = data.Size{Height: scaled, Width: scaled}
		own.say("pictures are scaled to %s pixels (size)", numeral.Shape([]int{scaled, scaled}))
	} else {
		own.say("all pictures have %s pixels (size)", numeral.Shape([]int{size.Height, size.Width}))
	}
	channels := ""
	if s.Coloured {
		channels = ", channels = 3"
		own.say("the pictures are coloured: red, green and blue (channels)")
	}
	if dark := s.HighDeep > 0 && s.HighDeep < 0.5; dark || s.High < 0.5 {
		channels += `, scale = "minmax"`
		own.say("the largest value of a pixel is %s of white: values are scaled to [0,1] (scale)", numeral.Float(cmp.Or(s.HighDeep, s.High)))
	}
	if s.Depths != "" {
		own.say("%s", s.Depths)
	}
	if own.Classes = s.Classes > 1; own.Classes {
		own.say("the folders are %d classes (labels)", s.Classes)
	}
	own.Dataset = fmt.Sprintf("{ name = \"images\", %s, size = [%d, %d]%s }", fileKeys(path), size.Height, size.Width, channels)
	return own, nil
}

// unitsFor returns a number of units, at most the given one, for which n samples are enough: with fewer than five fitted samples for a unit, atoms tend to
// be whole samples.
func unitsFor(most, n int) int { return max(min(2, n), min(most, n/6)) }

// mostClasses is the largest number of classes of a guessed column of labels: more are numbers, or names.
const mostClasses = 50

// labelledBy looks for the array of labels in a file of several arrays.
func (o *foundData) labelledBy(ctx context.Context) {
	for _, name := range []string{"labels", "label", "y", "y_train", "target", "targets"} {
		text := fmt.Sprintf("%s, labels = %q }", strings.TrimSuffix(o.Dataset, " }"), name)
		set, err := loaded(ctx, text)
		if err != nil || set.Train.Labels() == nil {
			continue
		}
		if largest := slices.Max(set.Train.Labels()); largest > 0 && largest < mostClasses {
			o.Dataset, o.Classes = text, true
			o.say("labels: array %q", name)
			return
		}
	}
}

// arrayOf guesses the keys of an array, of shards of one, or of a sparse matrix, whose entries are counts or other numbers >= 0.
func arrayOf(ctx context.Context, path string) (*foundData, error) {
	own := &foundData{Path: path, Name: modelName(path), Rate: 0.001, template: ownModels}
	var wrong error
	file := "{ file = " + table.StringText(path)
	const most = `, memory = "1GB"` // of more values, a part is in memory
	matrix := `{ name = "triples", file = ` + table.StringText(path) + `, absent = "zero"`
	names := namesBeside(path)
	for i, text := range []string{file + most + " }", file + " }", matrix + names + ", transpose = true }", matrix + names + " }", matrix + " }"} {
		sparse := i >= 2
		if i == 2 && names == "" {
			continue
		}
		own.Dataset = text
		models, err := config.Load(tessera.ModelsFile, fmt.Appendf(nil, "[model.own]\nkind = \"pca\"\ncomponents = 1\ndataset = %s\n", own.Dataset))
		if err != nil {
			return nil, err
		}
		m, err := searching(models, data.SearchDirs("")).Model("own")
		if _, missing := os.Stat(path); err != nil && missing == nil && i == 1 {
			return nil, usagef("init: %s: got a file of no known format, want texts (.txt), a table (.csv, .tsv, .parquet), an array (.npy, .npz, .safetensors), a sparse matrix (.npz of SciPy, .mtx) or a folder of pictures; `tessera list datasets` has all", path)
		} else if err != nil {
			wrong = cmp.Or(wrong, err)
			continue
		}
		set, err := data.Load(ctx, m.Dataset.Source, nil, m.Dataset.Need())
		if err != nil {
			wrong = cmp.Or(wrong, err)
			continue
		}
		if set.Train.Sparse() && !sparse {
			continue
		}
		if set.Train.OnDisk() {
			own.say("values that exceed 1 GB are read in parts (memory)")
		} else {
			own.Dataset = strings.Replace(text, most, "", 1)
		}
		low, high := set.Train.Range()
		pixels := set.Train.Pixels()
		if own.Classes = len(set.Classes) > 1; !own.Classes && !sparse && !set.Train.OnDisk() {
			own.labelledBy(ctx)
		}
		own.say("%s of shape %s, values from %s to %s", numeral.Of(set.Train.Len(), "sample"), numeral.Shape(set.Shape), numeral.Float(float64(low)), numeral.Float(float64(high)))
		most := 10
		if own.Pictures = len(set.Shape) > 1 && low >= 0 && !sparse; own.Pictures {
			most = 40
		}
		own.Units = min(unitsFor(max(2, min(most, pixels/4)), set.Train.Len()), pixels)
		switch {
		case sparse:
			own.template, own.Kind = ownTriples, "\"nmf\"\nsolver     = \"mu\"\nloss       = \"kl\""
			own.say("a sparse matrix: entries that are not stored are 0 (absent)")
			if names == "" || i == 4 {
				own.say("its columns have no names: column_names = FILE, with a name in each line, gives them (column_names)")
			} else {
				own.say("samples are the cells, values the genes, with the names in the files beside the matrix (row_names, column_names)")
			}
		case low < 0 || high > 2:
			own.Dataset = strings.TrimSuffix(own.Dataset, " }") + `, scale = "minmax" }`
			own.say("values are scaled to [0,1] (scale)")
		}
		return own, nil
	}
	return nil, fmt.Errorf("init: %w", wrong)
}

// namesBeside returns the keys for the names of cells and genes in the files beside a matrix, as 10x writes them: matrix.mtx, barcodes.tsv and features.tsv or
// genes.tsv, with one beginning of their names, and perhaps gzipped.
func namesBeside(path string) (keys string) {
	begin := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), "matrix.mtx")
	for _, name := range []string{"row_names:barcodes.tsv", "column_names:features.tsv", "column_names:genes.tsv"} {
		key, file, _ := strings.Cut(name, ":")
		for _, end := range []string{"", ".gz"} {
			if _, err := os.Stat(begin + file + end); err == nil && !strings.Contains(keys, key) {
				keys += fmt.Sprintf(", %s = %s", key, table.StringText(begin+file+end))
			}
		}
	}
	return keys
}

// entriesOf guesses whether a table has a line for each entry of a matrix: names or numbers of rows and of columns, which repeat, and a
// number. It returns nil for another table.
func entriesOf(path string, s *data.TableSketch) *foundData {
	named := func(c data.ColumnSketch, words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(c.Name), word) })
	}
	entries := slices.DeleteFunc(slices.Clone(s.Columns), func(c data.ColumnSketch) bool { return named(c, "time", "date") })
	if len(entries) != 3 || s.Decimal != "" {
		return nil
	}
	counts := []string{"count", "freq", "number"}
	at := slices.IndexFunc(entries, func(c data.ColumnSketch) bool {
		return c.Numeric && (named(c, append(counts, "rating", "score", "stars", "value", "weight")...) || strings.EqualFold(c.Name, "n"))
	})
	if at < 0 {
		at = 2
	}
	value := entries[at]
	if entries = slices.Delete(entries, at, at+1); !value.Numeric || value.Missing {
		return nil
	}
	if named(entries[1], "user", "customer", "reader", "row", "doc", "cell", "sample") && !named(entries[0], "user", "customer", "reader", "row", "doc", "cell", "sample") {
		slices.Reverse(entries)
	}
	least := s.Rows
	for _, c := range entries {
		if c.Name == "" || c.Missing || !c.Repeats || c.Numeric && !c.Whole {
			return nil
		}
		least = min(least, c.Different)
	}
	row, column := entries[0].Name, entries[1].Name
	own := &foundData{Path: path, Name: modelName(path), Units: max(1, min(10, least/4)), template: ownTriples}
	own.say("entries of a matrix (triples): rows %q, columns %q, values %q", row, column, value.Name)
	last := `, hide = 0.1`
	own.Kind = `"matrix_factorisation"`
	if value.Whole && value.Low >= 0 && (strings.EqualFold(value.Name, "n") || named(value, counts...)) {
		last, own.Kind = `, absent = "zero"`, "\"nmf\"\nsolver     = \"mu\"\nloss       = \"kl\""
		own.say("the values are counts: other entries are 0 (absent)")
	} else {
		own.say("other entries are unknown; a tenth of the entries is hidden and measures the predictions (hide)")
	}
	own.Dataset = fmt.Sprintf(`{ name = "triples", file = %s, row = %s, column = %s, value = %s%s }`,
		table.StringText(path), table.StringText(row), table.StringText(column), table.StringText(value.Name), last)
	return own
}

// alsoFrom says which texts a model reads beside the values.
func alsoFrom(texts []textColumn) string {
	if len(texts) == 0 {
		return ""
	}
	return ", also from the texts " + someOf(lists.Map(texts, func(t textColumn) string { return t.Column }))
}

// someOf lists the first of some names.
func someOf(names []string) string {
	const most = 8
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// labelNames are names of columns of labels, the most certain first.
var labelNames = []string{"label", "class", "target", "species", "diagnosis", "outcome", "category", "type", "group", "klasse", "kategorie", "classe"}

// targetNames are names of columns of numbers that a regression predicts.
var targetNames = []string{"target", "y", "price", "cost", "rent", "outcome", "response", "yield", "sales", "preis", "miete", "ziel", "prix", "precio"}

// labelsIn returns the column of labels: the first with the best name, or else the first that may be one without such a name; -1 if there is none.
func labelsIn(s *data.TableSketch, may func(data.ColumnSketch) bool) (labels int) {
	labels, best := -1, len(labelNames)+1
	for i, c := range s.Columns {
		rank := best
		if at := slices.Index(labelNames, strings.ToLower(c.Name)); at >= 0 && c.Different <= mostClasses && (c.Whole || !c.Numeric) {
			rank = at
		} else if may(c) && !c.Dates {
			rank = len(labelNames)
		}
		if rank < best && c.Different > 1 {
			best, labels = rank, i
		}
	}
	return labels
}

// targetsIn returns the columns with these names: one of texts, or of 0 and 1, as labels, one of other numbers as the goal of a regression; -1 for none.
func targetsIn(path string, s *data.TableSketch, wanted []string) (labels, goal int, err error) {
	labels, goal = -1, -1
	names := lists.Map(s.Columns, func(c data.ColumnSketch) string { return c.Name })
	for _, name := range wanted {
		i := slices.Index(names, name)
		if i < 0 {
			return 0, 0, usagef("init: --target: %s has no column %q, want one of %s", path, name, table.Quoted(names))
		}
		at, c := &goal, s.Columns[i]
		if !c.Numeric || c.Whole && c.Low == 0 && c.High == 1 {
			at = &labels
		}
		switch {
		case *at >= 0:
			return 0, 0, usagef("init: --target: got %q and %q, want at most one column of numbers and one of classes", names[*at], name)
		case c.Dates || c.Low == c.High && c.Numeric || c.Different < 2:
			return 0, 0, usagef("init: --target: the column %q has dates, or one value alone: choose another one of %s", name, table.Quoted(names))
		}
		*at = i
	}
	return labels, goal, nil
}

// samplesOf guesses the keys of a table of samples: a column of texts that differ in every row has the names of samples, a column with the
// name of a label (labelNames), or else the first other column of texts, the labels. All columns of numbers are values.
func samplesOf(path string, s *data.TableSketch, wanted []string) (*foundData, error) {
	own := &foundData{Path: path, Name: modelName(path), Rate: 0.01, Asked: wanted != nil, template: ownModels}
	names := -1
	var values, ignored, targets, units, absent, dates, unclear []string
	var texts []textColumn
	low, high, missing := math.Inf(1), math.Inf(-1), false
	is := func(i int, list ...string) bool { return slices.Contains(list, strings.ToLower(s.Columns[i].Name)) }
	labels := labelsIn(s, func(c data.ColumnSketch) bool { return !c.Numeric && 2*c.Different <= s.Rows })
	goal := -1
	if wanted != nil {
		var err error
		if labels, goal, err = targetsIn(path, s, wanted); err != nil {
			return nil, err
		}
	}
	var others []string // texts that may be labels as well
	for i, c := range s.Columns {
		counts := c.Numeric && c.Whole && !c.Repeats && !c.Missing && c.High-c.Low == float64(s.Rows-1) && s.Rows > 2 && (i == 0 || c.Low <= 1)
		if few := !c.Numeric && !c.Dates && c.Different > 1 && c.Different <= mostClasses && 2*c.Different <= s.Rows; few {
			if c.Alike != nil {
				own.say("column %q has texts that differ in letter case or spaces alone, which are different classes: %s", c.Name, someOf(lists.Map(c.Alike, strconv.Quote)))
			}
			name := columnKey(c.Name)
			if slices.ContainsFunc(texts, func(t textColumn) bool { return t.Name == name }) || slices.Contains(reservedKeys, strings.ToLower(name)) {
				name = fmt.Sprintf("%s-%d", name, i+1)
			}
			texts = append(texts, textColumn{name, c.Name, c.Different, c.Missing})
		}
		if c.Ambiguous {
			unclear = append(unclear, table.StringText(c.Name))
		}
		switch {
		case i == labels:
		case i != goal && names < 0 && !c.Repeats && (!c.Numeric && !c.Missing || is(i, "", "id", "index") || counts && i == 0):
			names = i
		case c.Numeric && c.Dates:
			ignored, dates = append(ignored, c.Name), append(dates, table.StringText(c.Name))
			missing = missing || c.Missing
		case i != goal && (!c.Numeric || !c.Repeats && is(i, "id", "index") || counts):
			ignored = append(ignored, c.Name)
			if !c.Numeric && !c.Dates && c.Different > 1 && 2*c.Different <= s.Rows {
				others = append(others, c.Name)
			}
		default:
			values = append(values, table.StringText(c.Name))
			if c.Unit != "" {
				units = append(units, table.KeyText(c.Name)+" = "+table.StringText(c.Unit))
			}
			absent = append(absent, lists.Map(c.Absent, table.StringText)...)
			if missing = missing || c.Missing; i != goal || !own.Asked {
				low, high = min(low, c.Low), max(high, c.High)
			}
		}
	}
	for i, c := range s.Columns {
		if wanted == nil && c.Numeric && c.Low < c.High && len(values) > 1 && slices.Contains(values, table.StringText(c.Name)) && slices.Contains(targetNames, strings.ToLower(c.Name)) {
			if targets = append(targets, c.Name); goal < 0 {
				goal = i
			}
		}
	}
	if len(values) == 0 {
		return nil, &data.Error{Path: path, Problem: fmt.Sprintf("has no column of numbers (got %s), want one for each value of a sample", strings.Join(ignored, ", "))}
	}
	text, labelled := "{ name = \"csv\", file = "+table.StringText(path), ""
	key := func(name string, at int) (text string) {
		if at >= 0 && s.Columns[at].Name != "" {
			text = fmt.Sprintf(", %s = %s", name, table.StringText(s.Columns[at].Name))
			own.say("%s: column %q", name, s.Columns[at].Name)
		}
		return text
	}
	labelled = key("labels", labels)
	text += key("names", names)
	own.Classes = labels >= 0
	if own.Classes && others != nil {
		own.say("other columns may be the labels: %s (labels)", someOf(others))
	}
	columns, settings := "", ""
	inputs := values
	if goal >= 0 {
		inputs = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == table.StringText(s.Columns[goal].Name) })
		if own.Asked && len(inputs)+len(dates) == 0 {
			return nil, &data.Error{Path: path, Problem: fmt.Sprintf("has no column of numbers beside %q (got %s), want one from which it is predicted", s.Columns[goal].Name, someOf(ignored)),
				Hint: "write texts of a few kinds, such as yes and no, as numbers"}
		}
		if own.Asked && len(inputs) > 0 { // a target is no part
			values = inputs
		}
	}
	if ignored != nil || own.Asked && goal >= 0 {
		columns = ", columns = [" + strings.Join(values, ", ") + "]"
	}
	if ignored != nil {
		own.say("not values, because they are no numbers or count the rows: %s (columns)", someOf(ignored))
	}
	for _, c := range s.Columns {
		if c.Odd != "" {
			own.say("column %q has numbers, but %s: correct that and run init again, or it is no value", c.Name, c.Odd)
		}
	}
	switch s.Decimal {
	case ",":
		settings += `, decimal = ","`
		own.say("numbers have a comma before their fraction (decimal)")
	case ".":
		settings += `, decimal = "."`
		own.say("numbers have commas between thousands (decimal)")
	}
	if s.Dates != "" {
		settings += ", dates = " + table.StringText(s.Dates)
		own.say("dates with slashes are %s, as a day above 12 shows (dates)", s.Dates)
	}
	if unclear != nil {
		own.say("day and month of %s can be exchanged: to read them, write dates = \"month/day\" or \"day/month\" (dates)", someOf(unclear))
	}
	if s.Sentinels != "" {
		own.say("%s (missing)", s.Sentinels)
	}
	if len(units) > 0 {
		settings += ", units = { " + strings.Join(units, ", ") + " }"
		own.say("units are left out of the numbers: %s (units)", someOf(units))
	}
	if missing {
		keys, cells := "\"nan\"", ""
		if absent = slices.Compact(slices.Sorted(slices.Values(absent))); len(absent) > 0 {
			keys, cells = "["+strings.Join(absent, ", ")+"]", " and "+strings.Join(absent, ", ")
		}
		settings += ", missing = " + keys
		own.Missing = true
		own.say("empty cells%s are missing entries (missing)", cells)
		if len(values) > 1 {
			own.Complete = text + labelled + columns + settings + ", scale = \"standardise\", hide = 0.1 }"
			own.Epochs = max(20, min(1000, 600_000/s.Rows))
		}
	}
	standardised := settings + `, scale = "standardise"` // for predictions, few large values must not hide the differences of others
	if low < 0 || high > 2 {                             // parts that only add, and the rate of learning, suit values from 0 to 1
		settings += `, scale = "minmax"`
		own.say("each column is scaled to [0,1] (scale)")
	}
	if goal >= 0 || own.Classes {
		own.say("models that predict scale each column to mean 0 and deviation 1 (scale)")
	}
	if dates != nil && (goal >= 0 || own.Classes) {
		own.say("models that predict read dates as years, such as 2023.5: %s (columns)", someOf(dates))
	}
	// predicting declares a model that reads columns of numbers and of texts.
	predicting := func(keys string, values []string, texts []textColumn) supervised {
		columns := "images = [" + strings.Join(slices.Concat(values, dates), ", ") + "]" // dates are no parts, but what is predicted may depend on them
		for _, t := range texts {
			columns += fmt.Sprintf(", %s = %s", t.Key(""), table.StringText(t.Column))
		}
		if !missing && slices.ContainsFunc(texts, func(t textColumn) bool { return t.Missing }) {
			keys += ", missing = \"nan\""
		}
		return supervised{text + keys + ", columns = { " + columns, missing, texts}
	}
	if goal >= 0 {
		c := s.Columns[goal]
		name := table.StringText(c.Name)
		own.say("%s predicts column %q%s (columns)", own.Name+"-numbers", c.Name, alsoFrom(texts))
		if len(targets) > 1 {
			own.say("other columns may be the target: %s (columns)", someOf(targets[1:]))
		}
		reads := predicting("", inputs, slices.Clone(texts))
		reads.Dataset += ", target = " + name + " }" + standardised + " }"
		own.Target = &target{reads, c.Name, fmt.Sprintf("%.3g", (c.Low+c.High)/2), fmt.Sprintf("%.3g", (c.High-c.Low)/2)}
	}
	texts = slices.DeleteFunc(texts, func(t textColumn) bool { return own.Classes && t.Column == s.Columns[labels].Name })
	switch {
	case own.Classes && len(texts)+len(dates) > 0:
		own.say("%s-classes predicts column %q%s (columns)", own.Name, s.Columns[labels].Name, alsoFrom(texts))
		own.Labelled = predicting(labelled, values, texts)
		own.Labelled.Dataset += " }" + standardised + " }"
	case own.Classes:
		own.Labelled = supervised{Dataset: text + labelled + columns + standardised + " }", Missing: own.Missing}
	}
	text += labelled + columns + settings
	own.Dataset, own.Units = text+" }", min(unitsFor(max(2, min(10, len(values)/4)), s.Rows), len(values))
	own.say("values: %s of numbers", numeral.Of(len(values), "column"))
	if certain := labels >= 0 && slices.Contains(labelNames, strings.ToLower(s.Columns[labels].Name)); !own.Asked && goal < 0 && !certain {
		own.say("no column of numbers is predicted; name one: tessera init %s --target NAME", shell.Word(path))
	}
	return own, nil
}
