package cli

import (
	"errors"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/config/part/table"
	"tessera/internal/coder"
)

func init() {
	Commands.Register("neighbours", "List the words whose vectors are nearest to those of given words", func() Command {
		return &neighboursCommand{runFlags: forRuns(), Count: 10}
	})
}

type neighboursCommand struct {
	Folder string   `arg:"RUN" is:"folder" doc:"the folder of a run"`
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
			"The vectors are in the folder of the run: the texts of the training are not read.",
		Examples: []string{"tessera neighbours runs/words sword", "tessera neighbours runs/words king woman --minus man -n 5 --json"},
	}
}

func (f *neighboursCommand) Do(cmd *Call) error {
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	list, err := r.Neighbours(f.Words, f.Minus, f.Count)
	var unknown *coder.UnknownToken
	switch {
	case errors.As(err, &unknown):
		return usagef("neighbours: %w: %s", err, table.Suggest(unknown.Text, r.Tokens().Names))
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
