package text_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/data/text"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/tokens"
)

var background = context.Background()

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		fatal.If(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
	}
	return dir
}

func load(t *testing.T, s data.Source) *data.Set {
	t.Helper()
	set, err := data.Load(background, s, nil, data.Both)
	fatal.If(t, err)
	return set
}

// bag returns a data set with the defaults.
func bag(file string, change func(*text.Bag)) *text.Bag {
	e, _ := data.Registry.Lookup("text")
	b := e.New().(*text.Bag)
	b.File = file
	if change != nil {
		change(b)
	}
	return b
}

func TestCountsAreThoseOfScikitLearn(t *testing.T) {
	var want struct {
		Texts []string
		Cases []struct {
			Least  int
			Most   float64
			Words  []string
			Counts [][]float32
		}
	}
	file, err := os.ReadFile("testdata/counts.json")
	if err == nil {
		err = json.Unmarshal(file, &want)
	}
	fatal.If(t, err)
	files := map[string]string{}
	for i, one := range want.Texts {
		files[fmt.Sprintf("%d.txt", i)] = one
	}
	dir := folder(t, files)
	for _, c := range want.Cases {
		set := load(t, bag(dir, func(b *text.Bag) { b.Least, b.Most = c.Least, c.Most }))
		words := set.Train.ValueNames()
		if sorted := slices.Sorted(slices.Values(words)); !slices.Equal(sorted, c.Words) {
			t.Errorf("least %d, most %v: got the words %q, want %q", c.Least, c.Most, sorted, c.Words)
			continue
		}
		x := set.Train.Float32()
		for i, row := range c.Counts {
			for j, n := range row {
				expect.Equal(t, x[i*len(words)+slices.Index(words, c.Words[j])], n, "least", c.Least, "most", c.Most, "text", i, c.Words[j])
			}
		}
	}
}

func TestPairsAreCountedWithinTheWindow(t *testing.T) {
	lines := []string{"a b c a d rare b", "b a. a, c! d d", "c"}
	dir := folder(t, map[string]string{"x.txt": strings.Join(lines, "\n")})
	for _, weights := range []string{"flat", "harmonic"} {
		for window := 1; window < 8; window++ {
			e, _ := data.Registry.Lookup("cooccurrence")
			s := e.New().(*text.Cooccurrence)
			s.File, s.Unit, s.Window, s.Weights, s.Least = filepath.Join(dir, "x.txt"), "line", window, weights, 2
			set := load(t, s)
			words := set.Train.ValueNames()
			if !slices.Equal(slices.Sorted(slices.Values(words)), []string{"a", "b", "c", "d"}) || !slices.Equal(words, set.Train.RowNames()) {
				t.Fatalf("got the words %q, rows %q", words, set.Train.RowNames())
			}
			want := make([]float64, 16)
			for _, line := range lines {
				list := strings.Fields(strings.NewReplacer(".", "", ",", "", "!", "").Replace(line))
				for i, a := range list {
					for k, b := range list {
						d := max(i-k, k-i)
						x, y := slices.Index(words, a), slices.Index(words, b)
						if d == 0 || d > window || x < 0 || y < 0 {
							continue
						}
						if weights == "flat" {
							want[x*4+y]++
						} else {
							want[x*4+y] += 1 / float64(d)
						}
					}
				}
			}
			for i, v := range set.Train.Float32() {
				expect.Near(t, float64(v), want[i], 1e-6, weights, "window", window, words[i/4], "near", words[i%4])
			}
		}
	}
}

// sequences returns a data set with the defaults.
func sequences(file, kind string, length int, unit string) *text.Sequences {
	e, _ := data.Registry.Lookup("tokens")
	s := e.New().(*text.Sequences)
	s.File, s.Tokens, s.Length, s.Unit = file, kind, length, unit
	return s
}

func TestSequencesAreWindowsOrUnits(t *testing.T) {
	dir := folder(t, map[string]string{"x.txt": "abcdefghij", "y.txt": "xy"})
	const pad, end = 256, 257
	of := func(bytes string, more ...float32) (list []float32) {
		for _, b := range []byte(bytes) {
			list = append(list, float32(b))
		}
		return append(list, more...)
	}
	for _, c := range []struct {
		unit    string
		step    int
		want    []float32
		lengths []float32
	}{
		{"", 0, slices.Concat(of("abcd"), of("efgh"), of("hij", end), of("xy", end, pad)), []float32{4, 4, 4, 3}},
		{"", 3, slices.Concat(of("abcd"), of("defg"), of("ghij"), of("hij", end), of("xy", end, pad)), []float32{4, 4, 4, 4, 3}},
		{"file", 3, slices.Concat(of("abcd"), of("defg"), of("ghij"), of("hij", end), of("xy", end, pad)), []float32{4, 4, 4, 4, 3}},
		{"line", 0, slices.Concat(of("abcd"), of("xy", end, pad)), []float32{4, 3}},
	} {
		s := sequences(dir, tokens.Bytes, 4, c.unit)
		s.Step = c.step
		set := load(t, s)
		expect.Slice(t, set.Train.Float32(), c.want, "unit", c.unit, "step", c.step)
		lengths := make([]float32, set.Train.Len())
		all := lists.Range(0, set.Train.Len())
		set.Train.Gather(lengths, "length", all)
		expect.Slice(t, lengths, c.lengths, "unit", c.unit, "step", c.step, "the lengths")
	}
}

// The numbers of n-grams are those of an FNV-1a hash in Python.
func TestNGramsFollowTheirTokens(t *testing.T) {
	s := sequences(folder(t, map[string]string{"a.txt": "aba", "x.txt": "x"}), tokens.Bytes, 4, "line")
	s.Ngrams, s.Buckets = 3, 1000
	set, lengths := load(t, s), make([]float32, 2)
	want := []float32{97, 98, 97, 257, 560, 336, 508, 489, 614,
		120, 257, 625, 256, 256, 256, 256, 256, 256}
	if got := set.Train.Float32(); !slices.Equal(got, want) || !slices.Equal(set.Shape, []int{9}) {
		t.Errorf("got %v of shape %v, want %v", got, set.Shape, want)
	}
	set.Train.Gather(lengths, "length", []int{0, 1})
	expect.Slice(t, lengths, []float32{9, 3}, "the lengths")
	expect.Equal(t, set.Tokens.Decode([]int32{97, 98, 300, 97, 257}), "aba", "decoded")
}

func TestATokenizerIsRead(t *testing.T) {
	s := sequences(folder(t, map[string]string{"a.txt": "the heron"}), tokens.Pairs, 8, "line")
	s.Tokenizer = "../../internal/tokens/testdata/tokenizer.json"
	fatal.If(t, s.Check())
	set := load(t, s)
	if got := set.Tokens.Decode([]int32{int32(set.Train.Float32()[0])}); set.Tokens.Texts() != 299 || got == "" || !strings.HasPrefix("the heron", got) {
		t.Errorf("got %d tokens, the first is %q", set.Tokens.Texts(), got)
	}
	s.Vocabulary = 512
	expect.Error(t, s.Check(), "has its own vocabulary", "with a size")
}

func TestUnitsClassesAndNames(t *testing.T) {
	dir := folder(t, map[string]string{"old/b.txt": "One line here.\nTwo lines. Three!\n\nA new paragraph", "new/a.txt": "one two", "new/deep/c.txt": "two one", ".hidden.txt": "x", "new/empty.txt": " \n", "new/other.md": "x"})
	for _, c := range []struct {
		unit  string
		names []string
	}{
		{"", []string{"new/a", "new/deep/c", "old/b"}},
		{"line", []string{"new/a:1", "new/deep/c:1", "old/b:1", "old/b:2", "old/b:4"}},
		{"paragraph", []string{"new/a:1", "new/deep/c:1", "old/b:1", "old/b:2"}},
		{"sentence", []string{"new/a:1", "new/deep/c:1", "old/b:1", "old/b:2", "old/b:3", "old/b:4"}},
	} {
		set := load(t, bag(dir, func(b *text.Bag) { b.Unit, b.Least, b.Most = c.unit, 1, 1 }))
		expect.Slice(t, set.Train.RowNames(), c.names, "unit", c.unit)
		if labels := set.Train.Labels(); !slices.Equal(set.Classes, []string{"new", "old"}) || labels[0] != 0 || labels[len(labels)-1] != 1 {
			t.Errorf("unit %q: got the classes %q and labels %v", c.unit, set.Classes, labels)
		}
		if !slices.ContainsFunc(set.Notes, func(note string) bool { return strings.Contains(note, "1 file without text") }) {
			t.Errorf("unit %q: got the notes %q, want one about an empty file", c.unit, set.Notes)
		}
	}
}

// A table has the samples of files with the same texts, and further texts are counted by the vocabulary of the training.
func TestTablesAndFurtherTexts(t *testing.T) {
	dir := folder(t, map[string]string{"t.csv": "name,review,stars\nx,\"good, good film\",5\ny,bad film,1\nz,good plot,\n", "more.csv": "review,stars\ngood good unseen,5\n", "new.txt": "unseen film, FILM"})
	b := bag(filepath.Join(dir, "t.csv"), func(b *text.Bag) { b.Text, b.Labels, b.Least, b.Most = "review", "stars", 1, 1 })
	set := load(t, b)
	if want := []string{"good", "film", "bad", "plot"}; !slices.Equal(set.Train.ValueNames(), want) || !slices.Equal(set.Train.RowNames(), []string{"x", "y", "z"}) {
		t.Fatalf("got %q of %q, want %q", set.Train.ValueNames(), set.Train.RowNames(), want)
	}
	expect.Slice(t, set.Train.Float32(), []float32{2, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1})
	expect.Slice(t, set.Train.Labels(), []int{1, 0, data.UnknownLabel}, "the labels", set.Classes)
	fitted := data.WithVocabulary(b, set.Tokens)
	for name, want := range map[string][]float32{"more.csv": {2, 0, 0, 0}, "new.txt": {0, 2, 0, 0}} {
		rows, err := data.ReadRows(background, filepath.Join(dir, name), set.Shape, fitted)
		fatal.If(t, err)
		expect.Slice(t, rows.Float32(), want, name)
	}
}

func TestBadTextsAreLocated(t *testing.T) {
	dir := folder(t, map[string]string{"latin.txt": "ok\ncaf\xe9", "nul.txt": "a\x00b", "empty.txt": "", "one.txt": "word", "a/x.txt": "one two", "b/y.txt": "two one", "test/c/z.txt": "one two",
		"t.csv": "review,label\none two,1\n", "cell.csv": "text,label\nfine,1\nb\xffd,2\n", "none/readme.md": "x"})
	for _, c := range []struct{ file, want string }{
		{"latin.txt", "latin.txt: cannot be read: line 2, byte 4: got the byte 0xe9, which is not UTF-8"},
		{"nul.txt", "nul.txt: cannot be read: line 1, byte 2: got a zero byte"},
		{"empty.txt", "has no text: every file or cell is empty"},
		{"one.txt", "no word of 1 text is in the vocabulary; it is one text: divide it"},
		{"absent.txt", "not found"},
		{"*.text.txt", "no file ends in .txt"},
		{"none", "has no texts"},
		{"t.csv", `has no column "text", only ["review" "label"]`},
		{"cell.csv", "cell.csv"},
	} {
		_, err := data.Load(background, bag(filepath.Join(dir, c.file), nil), nil, data.Both)
		if of, ok := errors.AsType[*data.Error](err); !ok || !strings.Contains(err.Error(), c.want) || of.Dataset != "text" {
			t.Errorf("%s: got %v, want %q", c.file, err, c.want)
		}
	}
	_, err := data.Load(background, bag(dir, func(b *text.Bag) { b.Least, b.Test = 1, filepath.Join(dir, "test") }), nil, data.Both)
	expect.AnyError(t, err, "invalid files in a folder are taken")
	trained := folder(t, map[string]string{"a/x.txt": "one two", "b/y.txt": "two one"})
	_, err = data.Load(background, bag(trained, func(b *text.Bag) { b.Least, b.Most, b.Test = 1, 1, filepath.Join(dir, "test") }), nil, data.Both)
	expect.Error(t, err, `text "c/z" has the class "c", which no training text has`)
}

func TestPathsOfTextsAreRecognised(t *testing.T) {
	dir := folder(t, map[string]string{"prose.txt": "One, two.\nThree, four, five.\n", "table.txt": "a\tb\n1\t2\n", "deep/x/y.txt": "x", "photos/readme.txt": "x", "photos/1.png": "x", "empty/x.md": ""})
	for path, want := range map[string]string{"prose.txt": "text", "table.txt": "csv", "deep": "text", "photos": "images", "empty": "images", "absent.txt": "text", "*.txt": "text", "x.csv": "csv"} {
		expect.Equal(t, data.KindOf(filepath.Join(dir, path)), want, path)
	}
	for key, want := range map[string]string{"window": "cooccurrence", "length": "tokens", "context": "contexts", "grammar": "", "unit": "text", "scale": ""} {
		expect.Equal(t, text.NameFor([]string{"file", key}), want, key)
	}
}

// A text of several samples gives them its name with a number.
func TestPartsOfATextHaveItsName(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"long": "a b c d e f g", "short": "a b"} {
		fatal.If(t, os.WriteFile(filepath.Join(folder, name+".txt"), []byte(text), 0o600))
	}
	source := &text.Sequences{Texts: text.Texts{File: folder}, Tokens: tokens.Words, Length: 4, Least: 1}
	set, err := source.Load(t.Context(), nil, data.Need{Train: true})
	fatal.If(t, err)
	rows, err := source.Fitted(set.Tokens).(data.FileReader).ReadFile(t.Context(), folder, nil)
	if want := []string{"long:1", "long:2", "short"}; err != nil || !slices.Equal(rows.Names, want) || rows.Images.Len() != len(want) {
		t.Errorf("got %v, %v, want %v", rows, err, want)
	}
}

// The labels of further texts number the classes of the training, of which a file may have some; another class is an error, as in a table of values.
func TestFurtherTextsHaveTheClassesOfTheTraining(t *testing.T) {
	dir := folder(t, map[string]string{"t.csv": "text,label\ngood film,a\nbad film,b\n", "b.csv": "text,label\nbad film,b\n", "c.csv": "text,label\nbad film,c\n", "folders/b/x.txt": "bad film"})
	b := bag(filepath.Join(dir, "t.csv"), func(b *text.Bag) { b.Least, b.Most = 1, 1 })
	set := load(t, b)
	source := data.Reading(data.WithVocabulary(b, set.Tokens), data.Column{Name: data.LabelsColumn, Type: data.Whole, Names: set.Classes})
	for _, name := range []string{"b.csv", "folders"} {
		rows, err := data.ReadRows(background, filepath.Join(dir, name), set.Shape, source)
		if fatal.If(t, err); !slices.Equal(rows.Labels(), []int{1}) || !slices.Equal(rows.Classes, set.Classes) {
			t.Errorf("%s: got the labels %v of %q, want [1] of %q", name, rows.Labels(), rows.Classes, set.Classes)
		}
	}
	expect.Error(t, expect.Err(data.ReadRows(background, filepath.Join(dir, "c.csv"), set.Shape, source)), `has the class "c", which no training text has`, "a new class")
}

// Rows of a table without a text are left out of a training, with a note. Of further texts every row has its sample; labels need not be there.
func TestRowsWithoutText(t *testing.T) {
	dir := folder(t, map[string]string{"t.csv": "text,stars\ngood film,5\n\"\",1\nbad film,1\n\" \",5\n", "more.csv": "text\n\"\"\ngood\n\"  \"\nfilm\n"})
	b := bag(filepath.Join(dir, "t.csv"), func(b *text.Bag) { b.Labels, b.Least, b.Most = "stars", 1, 1 })
	set := load(t, b)
	if want := b.File + ": 2 rows without text, such as line 3, left out"; set.Train.Len() != 2 || !slices.Contains(set.Notes, want) {
		t.Errorf("got %d samples and the notes %q, want 2 and %q", set.Train.Len(), set.Notes, want)
	}
	want := make([]float32, 4*set.Train.Pixels())
	want[set.Train.Pixels()+slices.Index(set.Train.ValueNames(), "good")] = 1
	want[3*set.Train.Pixels()+slices.Index(set.Train.ValueNames(), "film")] = 1
	for _, unit := range []string{"", "file"} {
		b.Unit = unit
		rows, err := data.ReadRows(background, filepath.Join(dir, "more.csv"), set.Shape, data.WithVocabulary(b, set.Tokens))
		fatal.If(t, err)
		expect.Slice(t, rows.Float32(), want, "unit", unit)
	}
}

// Links to folders and files are followed, but none to a folder that it is in; a broken one is an error.
func TestLinksToTextsAreFollowed(t *testing.T) {
	apart := folder(t, map[string]string{"x.txt": "bad film", "deep/y.txt": "bad plot"})
	corpus := folder(t, map[string]string{"a/z.txt": "good film"})
	link := func(to, name string) { fatal.If(t, os.Symlink(to, filepath.Join(corpus, name))) }
	link(apart, "b")
	link(corpus, "a/loop")
	root := filepath.Join(t.TempDir(), "root")
	fatal.If(t, os.Symlink(corpus, root))
	for _, path := range []string{corpus, root} {
		set := load(t, bag(path, func(b *text.Bag) { b.Least, b.Most = 1, 1 }))
		if want := []string{"a/z", "b/deep/y", "b/x"}; !slices.Equal(set.Train.RowNames(), want) || !slices.Equal(set.Classes, []string{"a", "b"}) {
			t.Errorf("%s: got %q of %q, want %q", path, set.Train.RowNames(), set.Classes, want)
		}
	}
	fatal.If(t, os.WriteFile(filepath.Join(apart, "x.txt"), []byte("bad film again"), 0o600))
	if set := load(t, bag(root, func(b *text.Bag) { b.Least, b.Most = 1, 1 })); !slices.Contains(set.Train.ValueNames(), "again") {
		t.Errorf("a change behind links is missed: got the words %q", set.Train.ValueNames())
	}
	link("nowhere", "c")
	expect.Error(t, expect.Err(data.Load(background, bag(corpus, nil), nil, data.Both)), filepath.Join(corpus, "c"), "a broken link")
}

// A text of white space has the tokens that it has as a cell of a table: none.
func TestATextOfWhiteSpaceIsThatOfAnEmptyCell(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.csv")
	fatal.If(t, os.WriteFile(table, []byte("id,text\na,some words\nb,\" \n \"\nc,\n"), 0o600))
	for _, kind := range tokens.Kinds {
		s := sequences(table, kind, 16, "")
		fitted := s.Fitted(load(t, s).Tokens).(*text.Sequences)
		rows, err := fitted.ReadFile(background, table, nil)
		fatal.If(t, err)
		texts, err := fitted.ReadTexts(background, []string{"some words", " \n ", ""})
		fatal.If(t, err)
		expect.Slice(t, texts.Float32(), rows.Images.Float32(), kind)
	}
}

// <mask> is a token for models that fill blanks, and text for others.
func TestAMaskIsATokenForModelsThatFillBlanks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	fatal.If(t, os.WriteFile(path, []byte("a <mask> b"), 0o600))
	for _, kind := range tokens.Kinds {
		s := sequences(path, kind, 16, "")
		set := load(t, s)
		fitted := s.Fitted(set.Tokens)
		for _, source := range []data.Source{fitted, data.WithBlanks(fitted)} {
			images, err := source.(data.TextReader).ReadTexts(background, []string{"a <mask> b"})
			fatal.If(t, err)
			_, largest := images.Range()
			expect.Equal(t, int(largest) == set.Tokens.Size(), source != fitted, kind, "blanks:", source != fitted)
			if source == fitted {
				expect.Slice(t, images.Float32(), set.Train.Float32(), kind)
			}
		}
	}
}

// Further texts that are longer than a sample are named: predictions leave out their ends.
func TestFurtherTextsThatAreCutAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	fatal.If(t, os.WriteFile(path, []byte("abc\nabcd\nabcdefgh\n"), 0o600))
	for unit, want := range map[string]int{"line": 1, "": 0} {
		s := sequences(path, tokens.Bytes, 5, unit)
		set := load(t, s)
		rows, err := s.Fitted(set.Tokens).(data.FileReader).ReadFile(background, path, nil)
		fatal.If(t, err)
		expect.Equal(t, len(rows.Notes), want, unit)
		if want > 0 {
			expect.Contains(t, rows.Notes[0], "1 of 3 texts have more than 5 tokens")
		}
	}
}

// A table without the column of the texts says what can be done: after a training no key.
func TestATableWithoutTextsSaysWhatToDo(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "some words", "t.csv": "review\nwords\n"})
	s := sequences(filepath.Join(dir, "a.txt"), tokens.Words, 5, "")
	_, err := s.Fitted(load(t, s).Tokens).(data.FileReader).ReadFile(background, filepath.Join(dir, "t.csv"), nil)
	expect.Contains(t, fmt.Sprint(err), "give that of the texts this name")
	s.File = filepath.Join(dir, "t.csv")
	_, err = s.Load(background, nil, data.Need{Train: true})
	expect.Contains(t, fmt.Sprint(err), "in the key text")
}
