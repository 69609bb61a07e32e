package coder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/vectors"
)

// ErrNoTexts is the error for a model that compares nothing with texts.
var ErrNoTexts = errors.New("it compares its samples with no texts: want a loss contrastive between a value of the samples and one of a column of tokens with names")

// Prompt is a text that describes the samples of a class.
type Prompt struct{ Class, Text string }

// ZeroShot classifies samples by texts about the classes, without a classifier (Radford et al. 2021): the class whose texts have the value that is most
// similar, by the cosine, to the value of the sample. The value of several texts of a class is the mean of their unit vectors.
type ZeroShot struct {
	Classes []string

	coder   *Coder
	value   string // of the samples
	classes []float32
}

// ZeroShot returns a classifier by prompts. A text that the model cannot read is a [*data.Error].
func (c *Coder) ZeroShot(prompts []Prompt) (*ZeroShot, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	z := &ZeroShot{coder: c}
	text, tokens, err := c.texts()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	if len(prompts) == 0 {
		return nil, &data.Error{Problem: "there is no text", Hint: "give at least one for each class"}
	}
	if z.value = c.trained.Spec.Pair().First; z.value == text {
		z.value = c.trained.Spec.Pair().Second
	}
	var all []float32
	for _, p := range prompts {
		list, err := wordsOf(tokens, p.Text)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	values, err := c.ValueOf(text, map[string][]float32{tokens.Name: all})
	if err != nil {
		return nil, err
	}
	width := len(values) / len(prompts)
	for i, p := range prompts {
		at := slices.Index(z.Classes, p.Class)
		if at < 0 {
			at, z.Classes, z.classes = len(z.Classes), append(z.Classes, p.Class), append(z.classes, make([]float32, width)...)
		}
		row := values[i*width : (i+1)*width]
		size := max(vectors.Norm(row), math.SmallestNonzeroFloat32)
		for k, v := range row {
			z.classes[at*width+k] += float32(float64(v) / size)
		}
	}
	return z, nil
}

// texts returns the value that is computed from a column of tokens with names alone, and that column.
func (c *Coder) texts() (value string, tokens data.Column, err error) {
	pair := c.trained.Spec.Pair()
	if pair == nil {
		return "", tokens, ErrNoTexts
	}
	for _, name := range []string{pair.Second, pair.First} {
		columns := c.Columns(name)
		if len(columns) == 1 && columns[0].Type == data.Whole && len(columns[0].Shape) == 1 && columns[0].Names != nil {
			return name, columns[0], nil
		}
	}
	return "", tokens, ErrNoTexts
}

// padding is the word of the places behind a text.
const padding = "<pad>"

// wordsOf returns the numbers of the words of a text, filled up with padding.
func wordsOf(column data.Column, text string) (list []float32, err error) {
	words := strings.Fields(strings.ToLower(text))
	wrong := func(format string, args ...any) error {
		return &data.Error{Problem: fmt.Sprintf("the text %.60q ", text) + fmt.Sprintf(format, args...)}
	}
	pad := slices.Index(column.Names, padding)
	switch size := column.Size(); {
	case len(words) == 0:
		return nil, wrong("is empty")
	case len(words) > size || len(words) < size && pad < 0:
		return nil, wrong("has %d words, want %d", len(words), size)
	}
	for _, word := range words {
		i := slices.Index(column.Names, word)
		if i < 0 {
			return nil, wrong("has the word %.40q, which the training had not: %s", word, table.Suggest(word, column.Names))
		}
		list = append(list, float32(i))
	}
	for len(list) < column.Size() {
		list = append(list, float32(pad))
	}
	return list, nil
}

// Columns returns the columns from which the value of samples is computed.
func (z *ZeroShot) Columns() []data.Column { return z.coder.Columns(z.value) }

// Similarities returns the cosine of every sample and every class, row by row.
func (z *ZeroShot) Similarities(ctx context.Context, samples *data.Images) ([]float32, error) {
	values, err := z.coder.ValuesOf(ctx, z.value, samples)
	if err != nil {
		return nil, err
	}
	width := len(z.classes) / len(z.Classes)
	similar := make([]float32, 0, samples.Len()*len(z.Classes))
	for i := range samples.Len() {
		for j := range z.Classes {
			similar = append(similar, float32(vectors.Cosine(z.classes[j*width:(j+1)*width], values[i*width:(i+1)*width])))
		}
	}
	return similar, nil
}
