package cli

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/lists"
)

func init() {
	Commands.Register("neighbours", "List the words whose vectors are nearest to those of given words", func() Command {
		return &neighboursCommand{runFlags: forRuns(), Count: 10}
	})
}

type neighboursCommand struct {
	Folder string   `arg:"RUN" usage:"RUN | FILE" is:"file" doc:"the folder of a run, or a file of vectors: .vec, .bin, or a table with the column name"`
	Words  []string `arg:"WORD" optional:"true" doc:"words whose vectors are added"`
	runFlags
	jsonFlag
	Minus []string `flag:"minus" doc:"words whose vectors are subtracted"`
	Pairs string   `flag:"pairs" is:"file" doc:"in place of words, a file of pairs with their similarity as people rated it: two words and a number in each line, such as WordSim-353 and SimLex-999"`
	Count int      `flag:"count,n" want:"> 0" doc:"number of words"`
}

func (f *neighboursCommand) Help() Help {
	return Help{
		Long: "List the words of a model of texts with the largest cosine to a word, or to the sum of the unit vectors of several. The vector of a word is its row of the first layer " +
			"embedding, or else its values in all atoms. --minus subtracts vectors: with it the question king - man + woman is an analogy. The words that are asked for are left out. " +
			"The vectors are in the folder of the run: the texts of the training are not read. In the place of a run a file names its words: the .vec or .bin of word2vec, fastText or " +
			"gensim, or codes that encode wrote. With --pairs the cosines of pairs of words are compared with ratings, by Spearman's correlation of ranks.",
		Examples: []string{"tessera neighbours runs/words sword", "tessera neighbours runs/words king woman --minus man -n 5 --json", "tessera neighbours vectors.vec sword", "tessera neighbours runs/words --pairs wordsim.tsv"},
	}
}

func (f *neighboursCommand) Do(cmd *Call) error {
	if (len(f.Words) == 0) == (f.Pairs == "") || f.Pairs != "" && len(f.Minus) > 0 {
		return usagef("neighbours: give words, or --pairs alone")
	}
	words, names, done, err := f.vectors(cmd)
	switch {
	case errors.Is(err, tessera.ErrNoWords):
		return usagef("neighbours: %w", err)
	case err != nil:
		return err
	}
	defer done()
	d := &doc.Document{}
	if f.Pairs != "" {
		pairs, err := ratedPairs(f.Pairs)
		if err != nil {
			return err
		}
		a := words.Agreement(pairs)
		if math.IsNaN(a.Spearman) {
			return usagef("neighbours: %s: of %d pairs %d have words with vectors, and their cosines or ratings do not differ", inLine(f.Pairs), len(pairs), a.Pairs)
		}
		facts := &doc.Facts{}
		facts.Add("spearman", "Spearman's correlation", a.Spearman)
		facts.Add("pairs", "pairs", a.Pairs)
		d.Add(facts)
		if left := len(pairs) - a.Pairs; left > 0 {
			d.Add(doc.Warning("%d of %d pairs are left out, whose words have no vector: %s", left, len(pairs), someOf(lists.Map(a.Unknown, strconv.Quote))))
		}
		return cmd.Show(d, f.JSON)
	}
	list, err := words.Neighbours(f.Words, f.Minus, f.Count)
	if unknown, ok := errors.AsType[*coder.UnknownToken](err); ok {
		return usagef("neighbours: %w: %s", err, table.Suggest(unknown.Text, names))
	} else if err != nil {
		return err
	}
	t := &doc.Table{Key: "neighbours", Columns: []doc.Column{{Key: "word", Title: "word"}, {Key: "cosine", Title: "cosine"}}}
	for _, one := range list {
		t.Row(one.Token, one.Similarity)
	}
	d.Add(t)
	return cmd.Show(d, f.JSON)
}

// vectors returns the vectors and the names of the words. done closes the run.
func (f *neighboursCommand) vectors(cmd *Call) (words coder.Words, names []string, done func(), err error) {
	if info, err := os.Stat(f.Folder); err == nil && !info.IsDir() {
		rows, err := data.ReadRows(cmd.Context(), f.Folder, nil, nil)
		if err != nil {
			return words, nil, nil, err
		}
		if rows.Names == nil {
			return words, nil, nil, usagef("neighbours: %s: its rows have no names: write a column name", inLine(f.Folder))
		}
		return coder.Words{Vectors: rows.Float32(), Width: rows.Pixels(), Name: func(i int) string { return rows.Names[i] },
			Index: func(word string) (int, bool) { i := slices.Index(rows.Names, word); return i, i >= 0 }}, rows.Names, func() {}, nil
	}
	if err := findFolder(f.Folder); err != nil {
		return words, nil, nil, err
	}
	r, err := f.open(f.Folder)
	if err != nil {
		return words, nil, nil, err
	}
	if words, err = r.Words(); err != nil {
		r.Close()
		return words, nil, nil, err
	}
	if t := r.Tokens(); t != nil {
		names = t.Names
	}
	return words, names, func() { r.Close() }, nil
}

// ratedPairs reads a file of two words and a number in each line, between tabs, commas, semicolons or spaces. A first line without a number in
// the third place is a header; lines that begin with # are comments, and further places are ignored.
func ratedPairs(path string) (pairs []coder.Rated, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("neighbours: %w", err)
	}
	first := true
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		places := strings.Fields(line)
		for _, mark := range []string{"\t", ";", ","} {
			if strings.Count(line, mark) >= 2 {
				places = strings.Split(line, mark)
				break
			}
		}
		score, wrong := math.NaN(), len(places) < 3
		if !wrong {
			score, err = strconv.ParseFloat(strings.TrimSpace(places[2]), 64)
			wrong = err != nil || math.IsNaN(score) || math.IsInf(score, 0)
		}
		switch {
		case wrong && first && len(places) >= 3:
		case wrong:
			return nil, usagef("neighbours: %s:%d: got %s, want two words and a number", inLine(path), i+1, inLine(line))
		default:
			pairs = append(pairs, coder.Rated{First: strings.TrimSpace(places[0]), Second: strings.TrimSpace(places[1]), Score: score})
		}
		first = false
	}
	if len(pairs) == 0 {
		return nil, usagef("neighbours: %s has no pairs: want two words and a number in each line", inLine(path))
	}
	return pairs, nil
}
