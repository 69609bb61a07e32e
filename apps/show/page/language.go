package page

import (
	"context"
	"errors"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/lists"
)

func init() {
	Sections.Register("continuations", "measured texts, continued by a model of language", func() Section { return continuations })
	Sections.Register("attended", "tokens of a text that attend to each other", func() Section { return attended })
	Sections.Register("words", "words, with those whose vectors are nearest", func() Section { return words })
}

// numbered reports whether the values of a sample are the numbers of tokens. Their pictures and means have no meaning.
func numbered(ctx context.Context, run *tessera.Run) bool {
	return run.Tokens() != nil && show.ValueNames(ctx, run) == nil
}

// continuations continues the first half of a few texts.
func continuations(ctx context.Context, run *tessera.Run, images *data.Images) ([]doc.Block, error) {
	const texts, drawn = 6, 40
	tokens, l := run.Tokens(), run.Language()
	if tokens == nil || l == nil || l.Shift != 1 {
		return nil, nil
	}
	t := &doc.Table{Key: "continuations", Columns: []doc.Column{{Key: "begin", Title: "beginning of a measured text", Wrap: true}, {Key: "continuation", Title: "continuation", Wrap: true}}}
	n := images.Len()
	sample := make([]float32, images.Pixels())
	for k := range min(texts, n) {
		images.Batch(sample, []int{k * n / min(texts, n)})
		list := lists.Map(sample, func(v float32) int32 { return int32(v) })
		for len(list) > 0 && int(list[len(list)-1]) >= tokens.Texts() { // padding and the end
			list = list[:len(list)-1]
		}
		if list = list[:(len(list)+1)/2]; len(list) == 0 {
			continue
		}
		begin := tokens.Decode(list)
		err := run.Continue(ctx, list, drawn, coder.Sampling{Temperature: 0.7, TopP: 1, Seed: uint64(k + 1)}, func(token int32) error {
			list = append(list, token)
			return nil
		})
		if err != nil {
			return nil, err
		}
		text := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") } // a token may be a part of a character
		t.Row(text(begin), text(strings.TrimPrefix(tokens.Decode(list), begin)))
	}
	return []doc.Block{&doc.Group{Title: "Continuations", Blocks: []doc.Block{
		doc.Remark("The first half of the tokens of some measured texts, and at most %d tokens that the model draws behind it, with the temperature 0.7.", drawn), t}}}, nil
}

// attended draws where the tokens of the first measured text attend.
func attended(ctx context.Context, run *tessera.Run, images *data.Images) ([]doc.Block, error) {
	list, err := figures.AttentionOfTexts(ctx, run, images.First(1))
	if err != nil || list == nil {
		return nil, err
	}
	f, err := figures.TokenAttention(list...)
	if err != nil {
		return nil, err
	}
	return section("Attention", "Where the heads of the last layer with attention attend in a measured text: a row for each token, a column for each token to which it attends. "+
		"The darker a cell, the larger the weight.", f), nil
}

// words lists tokens of the whole vocabulary with their neighbours.
func words(ctx context.Context, run *tessera.Run, _ *data.Images) ([]doc.Block, error) {
	const most, near = 20, 6
	if !numbered(ctx, run) || run.Tokens().Exact() { // bytes and their pairs are no words
		return nil, nil
	}
	t := &doc.Table{Key: "words", Columns: []doc.Column{{Key: "word", Title: "word"}, {Key: "nearest", Title: "nearest words", Wrap: true}}}
	n := run.Tokens().Texts()
	for k := range min(most, n) {
		word := run.Tokens().Name(int32(k * n / min(most, n)))
		list, err := run.Neighbours([]string{word}, nil, near)
		if errors.Is(err, tessera.ErrNoWords) {
			return nil, nil
		} else if err != nil { // a vector of zeros, or a token that is no word
			continue
		}
		t.Row(word, strings.Join(lists.Map(list, func(n coder.Neighbour) string { return n.Token }), ", "))
	}
	return []doc.Block{&doc.Group{Title: "Words", Blocks: []doc.Block{
		doc.Remark("Words, evenly spread over the vocabulary, and those whose vectors have the largest cosine with theirs, the nearest first."), t}}}, nil
}
