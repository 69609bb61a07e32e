package page

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/data"
)

func init() {
	Sections.Register("topics", "the topics of texts, with the texts that have most of them", func() Section { return topics })
}

// topics lists the atoms of a model of texts by their largest words, with the measured texts that use each most. Atoms without words are left out.
func topics(_ context.Context, run *tessera.Run, images *data.Images) ([]doc.Block, error) {
	const most = 3
	a, words := run.Atoms(), run.ColumnNames()
	names := images.RowNames()
	if run.Tokens() == nil || a == nil || names == nil || len(words) != a.Pixels() {
		return nil, nil
	}
	codes, err := run.Encode(images.Raw())
	if err != nil {
		return nil, err
	}
	t := &doc.Table{Key: "topics", Columns: []doc.Column{{Key: "unit", Title: "unit"}, {Key: "words", Title: "largest words", Wrap: true},
		{Key: "texts", Title: "samples with most of it", Wrap: true}}}
	order := make([]int, len(names))
	for j := range a.Count {
		text := show.TopWords(a.Values[j*a.Pixels():(j+1)*a.Pixels()], words)
		if text == "" {
			continue
		}
		for i := range order {
			order[i] = i
		}
		use := func(i int) float32 { return codes[i*a.Count+j] }
		slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(use(k), use(i)) })
		var list []string
		for _, i := range order[:min(most, len(order))] {
			if use(i) > 0 {
				list = append(list, names[i])
			}
		}
		t.Row(j, text, strings.Join(list, ", "))
	}
	return []doc.Block{&doc.Group{Title: "Topics", Blocks: []doc.Block{doc.Remark("%s", "Each unit with the words that have the largest values in its atom, and the measured samples with the largest activations."), t}}}, nil
}
