package text_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	"tessera/laws"
)

// randomText returns n words, with all kinds of white space, marks and signs between and in them.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	between := []string{" ", " ", " ", "\n", "\n\n", " \n ", "\r\n", "\t", ". ", "  ", "'s ", "! 1 ", "\u00a0 ", " \u0301", "\u2028", "\n \n\t"}
	for range n {
		b.WriteString([]string{"the", "a", "heron", "Été", "e\u0301", "x1", "2.5", "don't", "日本", "İ"}[r.IntN(10)])
		if r.IntN(4) == 0 {
			fmt.Fprint(&b, r.IntN(40))
		}
		b.WriteString(between[r.IntN(len(between))])
	}
	return b.String()
}

// The pieces of a long file are the file, and their tokens its tokens.
func TestPiecesDivideNoToken(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "a.txt")
	read, err := tokens.Read("../../internal/tokens/testdata/tokenizer.json")
	fatal.If(t, err)
	for round := range 6 {
		if testing.Short() && round%5 > 0 {
			continue
		}
		whole := randomText(r, 100000)
		if round == 5 { // one line
			whole = strings.NewReplacer("\n", " ", "\r", " ", "\u2028", " ").Replace(whole)
		}
		fatal.If(t, os.WriteFile(path, []byte(whole), 0o600))
		var pieces []string
		fatal.If(t, data.EachPiece(background, path, func(piece string) { pieces = append(pieces, piece) }))
		if strings.Join(pieces, "") != whole || len(pieces) < 4 {
			t.Fatalf("%d pieces are not the file", len(pieces))
		}
		each := func(do func(string, bool)) error { do(whole, true); return nil }
		kinds := []*tokens.Tokenizer{read}
		for _, kind := range tokens.Kinds {
			fitted, err := (&tokens.Tokenizer{Kind: kind, Lower: round%2 == 0}).Fit(tokens.Limits{Size: 500}, each)
			fatal.If(t, err)
			kinds = append(kinds, fitted)
		}
		for _, kind := range kinds {
			var got []int32
			for _, piece := range pieces {
				got = append(got, kind.Encode(piece)...)
			}
			expect.Slice(t, got, kind.Encode(whole), "round", round, kind.Kind, "the tokens of the pieces are not those of the text")
		}
	}
}

// A text of lines without spaces is read in pieces, whatever ends its lines.
func TestLinesWithoutSpacesAreReadInPieces(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		path, longest := filepath.Join(t.TempDir(), "a.txt"), 0
		fatal.If(t, os.WriteFile(path, []byte(strings.Repeat("word"+end, 200000)), 0o600))
		fatal.If(t, data.EachPiece(background, path, func(piece string) { longest = max(longest, len(piece)) }))
		if longest > 1<<17 {
			t.Errorf("lines that end in %q: got a piece of %d bytes, want at most %d", end, longest, 1<<17)
		}
	}
}

// A packed text that is cut short, at any place, is an error and not a shorter text.
func TestATextCutShortIsAnError(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, randomText(r, 60000))
	fatal.If(t, errors.Join(err, w.Close()))
	path := filepath.Join(t.TempDir(), "a.txt.gz")
	for _, left := range []int{packed.Len() - 1, packed.Len() - 9, packed.Len() / 2, 100} {
		fatal.If(t, os.WriteFile(path, packed.Bytes()[:left], 0o600))
		if all, err := data.ReadText(background, path); err == nil || !strings.Contains(err.Error(), "is cut short") {
			t.Errorf("%d of %d bytes: got %d bytes of text and the error %v", left, packed.Len(), len(all), err)
		}
	}
}

// Texts that do not fit into the budget give the samples that they give in memory, of one text in several pieces and of many units, of files, packed or not, and of tables;
// and no file is left.
func TestTextsOnDiskAreThoseInMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	files, table := map[string]string{}, "text,label,age\n"
	for i := range 40 {
		files[fmt.Sprintf("%s/%d.txt", []string{"new", "old"}[i%2], i)] = randomText(r, 500)
		table += fmt.Sprintf("\"%s\",c%d,%d\n", randomText(r, 1000), i%3, i)
	}
	files["new/long.txt"] = randomText(r, 15000)
	dir := folder(t, files)
	fatal.If(t, os.WriteFile(filepath.Join(dir, "t.csv"), []byte(table), 0o600))
	for n, name := range []string{"cooccurrence", "pairs", "contexts", "tokens"} {
		for i, unit := range []string{"", "line", "sentence", "paragraph"} {
			file := []string{dir, filepath.Join(dir, "t.csv")}[(n+i)%2]
			if i != n && (testing.Short() || i != (n+1)%4) {
				continue // every source and every unit twice, with both files
			}
			t.Run(fmt.Sprint(name, unit, filepath.Base(file)), func(t *testing.T) {
				source := func(memory data.Budget) data.Source {
					e, _ := data.Registry.Lookup(map[bool]string{true: "cooccurrence", false: name}[name == "pairs"])
					s := e.New()
					switch s := s.(type) {
					case *text.Cooccurrence:
						s.Entries, s.Weights = name == "pairs", "harmonic"
					case *text.Sequences:
						s.Length, s.Step, s.Vocabulary = 16, 12, 300
					case *text.Contexts:
						s.Subsample = 0.03
					}
					fatal.If(t, errors.Join(laws.Set(s, "file", file), laws.Set(s, "unit", unit), laws.Set(s, "memory", memory)))
					return s
				}
				budget := data.Budget(data.LeastBudget)
				if strings.HasPrefix(name, "c") && name != "contexts" || name == "pairs" {
					budget *= 2 // the counts have parts
				}
				want, got := load(t, source(0)), load(t, source(budget))
				if want.Train.OnDisk() || got.Train.OnDisk() != (name != "cooccurrence") {
					t.Errorf("on disk: %v and %v", want.Train.OnDisk(), got.Train.OnDisk())
				}
				if got.Train.Checksum() != want.Train.Checksum() || !slices.Equal(got.Classes, want.Classes) || !slices.Equal(got.Files, want.Files) {
					t.Error("the samples or the checksums of the files differ")
				}
				for _, c := range want.Train.Columns() {
					expect.Slice(t, column(got.Train, c.Name), column(want.Train, c.Name), "the column", c.Name)
				}
				order := make([]int, got.Train.Len())
				got.Train.Shuffle(order, r)
				slices.Sort(order)
				expect.Slice(t, order, lists.Range(0, len(order)), "the order of an epoch does not have every sample once")
			})
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".tessera*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

// Rows of a table are texts if they meet the conditions, of which files of text have none.
func TestWhereChoosesTexts(t *testing.T) {
	dir := folder(t, map[string]string{"all.csv": "text,lang,age\nhello there,en,3\nbonjour,fr,5\nhello again,en,8\n", "en.csv": "text,lang,age\nhello again,en,8\n", "a.txt": "hello"})
	at := func(file string, where ...string) *text.Bag {
		return bag(filepath.Join(dir, file), func(b *text.Bag) { b.Least, b.Most, b.Where = 1, 1, where })
	}
	want, got := load(t, at("en.csv")), load(t, at("all.csv", "lang = en", "age > 3"))
	expect.Slice(t, got.Train.Float32(), want.Train.Float32())
	expect.Slice(t, got.Train.ValueNames(), want.Train.ValueNames())
	if len(got.Kept) != 1 || !strings.Contains(got.Kept[0], "1 row of 3, where lang = en and age > 3") {
		t.Errorf("got %q", got.Kept)
	}
	for _, c := range []struct{ file, where, want string }{
		{"all.csv", "lang = de", "all.csv: cannot be read: has no row that meets the conditions of where (lang = de)"},
		{"all.csv", "tongue = de", `"tongue"`},
		{"all.csv", "lang > 3", `line 2, column "lang": got "en", but where compares it with a number`},
		{"a.txt", "lang = en", "a.txt: is read as text, but where chooses rows of a table by its columns"},
	} {
		_, err := at(c.file, c.where).Load(context.Background(), nil, data.Both)
		expect.Error(t, err, c.want, c.file, "where", c.where)
	}
}

// Texts that were read are not read again under their absolute paths, which the declaration of a run has.
func TestTextsAreReadOnce(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "one two", "b.txt": "two one"})
	t.Chdir(dir)
	at := func(folder string) *data.Set {
		s := &text.Cooccurrence{Texts: text.Texts{File: folder + "a.txt", Test: folder + "b.txt"}, Window: 1, Weights: "flat", Least: 1, Vocabulary: 9}
		return load(t, s)
	}
	first, again := at(""), at(dir+string(filepath.Separator))
	if again.Train != first.Train {
		t.Error("the texts were read again")
	}
	for i, name := range []string{"a.txt", "b.txt"} {
		expect.Equal(t, first.Files[i].Path, name, "first")
		expect.Equal(t, again.Files[i].Path, filepath.Join(dir, name), "again")
	}
}
