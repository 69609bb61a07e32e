package cli

import (
	"errors"
	"os"
	"slices"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/coder"
)

func init() {
	Commands.Register("neighbours", "List the words whose vectors are nearest to those of given words", func() Command {
		return &neighboursCommand{runFlags: forRuns(), Count: 10}
	})
}

type neighboursCommand struct {
	Folder string   `arg:"RUN" usage:"RUN | FILE" is:"file" doc:"the folder of a run, or a file of vectors: .vec, .bin, or a table with the column name"`
	Words  []string `arg:"WORD" doc:"words whose vectors are added"`
	runFlags
	jsonFlag
	Minus []string `flag:"minus" doc:"words whose vectors are subtracted"`
	Count int      `flag:"count,n" want:"> 0" doc:"number of words"`
}

func (f *neighboursCommand) Help() Help {
	return Help{
		Long: "List the words of a model of texts with the largest cosine to a word, or to the sum of the unit vectors of several. The vector of a word is its row of the first layer " +
			"embedding, or else its values in all atoms. --minus subtracts vectors: with it the question king - man + woman is an analogy. The words that are asked for are left out. " +
			"The vectors are in the folder of the run: the texts of the training are not read. In the place of a run a file names its words: the .vec or .bin of word2vec, fastText or " +
			"gensim, or codes that encode wrote.",
		Examples: []string{"tessera neighbours runs/words sword", "tessera neighbours runs/words king woman --minus man -n 5 --json", "tessera neighbours vectors.vec sword"},
	}
}

func (f *neighboursCommand) Do(cmd *Call) error {
	list, names, err := f.list(cmd)
	var unknown *coder.UnknownToken
	switch {
	case errors.As(err, &unknown):
		return usagef("neighbours: %w: %s", err, table.Suggest(unknown.Text, names))
	case errors.Is(err, tessera.ErrNoWords):
		return usagef("neighbours: %w", err)
	case err != nil:
		return err
	}
	t := &doc.Table{Key: "neighbours", Columns: []doc.Column{{Key: "word", Title: "word"}, {Key: "cosine", Title: "cosine"}}}
	for _, one := range list {
		t.Row(one.Token, one.Similarity)
	}
	d := &doc.Document{}
	d.Add(t)
	return cmd.Show(d, f.JSON)
}

// list returns the neighbours, and the names of all words.
func (f *neighboursCommand) list(cmd *Call) ([]coder.Neighbour, []string, error) {
	if info, err := os.Stat(f.Folder); err == nil && !info.IsDir() {
		rows, err := data.ReadRows(cmd.Context(), f.Folder, nil, nil)
		if err != nil {
			return nil, nil, err
		}
		if rows.Names == nil {
			return nil, nil, usagef("neighbours: %s: its rows have no names: write a column name", inLine(f.Folder))
		}
		words := coder.Words{Vectors: rows.Float32(), Width: rows.Pixels(), Name: func(i int) string { return rows.Names[i] },
			Index: func(word string) (int, bool) { i := slices.Index(rows.Names, word); return i, i >= 0 }}
		list, err := words.Neighbours(f.Words, f.Minus, f.Count)
		return list, rows.Names, err
	}
	if err := findFolder(f.Folder); err != nil {
		return nil, nil, err
	}
	r, err := f.open(f.Folder)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	list, err := r.Neighbours(f.Words, f.Minus, f.Count)
	if t := r.Tokens(); t != nil {
		return list, t.Names, err
	}
	return nil, nil, err
}
