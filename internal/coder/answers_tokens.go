package coder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/tokens"
	"tessera/internal/volume"
	"tessera/metrics"
)

// ofTokens returns an error if a value that the keys name has none for each token.
func (s *Answers) ofTokens(run *Coder) error {
	wrong := func(format string, args ...any) error {
		return &data.Error{Dataset: answersName, Path: s.Run, Problem: "tokens: " + fmt.Sprintf(format, args...)}
	}
	if run.Tokens() == nil {
		return wrong("the run reads no texts")
	}
	n := run.Shape()[0]
	has := func(value string) bool {
		shape := run.ShapeOf(value)
		return len(shape) > 1 && shape[0] == n
	}
	values := []string{s.Value}
	for _, of := range s.Columns {
		values = append(values, of[0])
	}
	for _, value := range values {
		if others := lists.Only(append(run.Values(), run.Named()...), has); !has(value) && len(others) == 0 {
			return wrong("%s has the shape %v, want (%d tokens, features), which no value of the run has", value, run.ShapeOf(value), n)
		} else if !has(value) {
			return wrong("%s has the shape %v, want (%d tokens, features), as %s", value, run.ShapeOf(value), n, table.Quoted(others))
		}
	}
	return nil
}

// followers returns the names of the classes of tokens: the vocabulary, nil if the run reads no texts. Equal names have their numbers.
func followers(run *Coder) []string {
	t := run.Tokens()
	if t == nil {
		return nil
	}
	names, count := make([]string, t.Size()), map[string]int{}
	for i := range names {
		names[i] = t.Word(int32(i))
		count[names[i]]++
	}
	for i, name := range names {
		if count[name] > 1 {
			names[i] = name + "#" + strconv.Itoa(i)
		}
	}
	return names
}

// place is a token of a text.
type place struct{ text, token int }

// atTokens is [Answers.answered] with the tokens of texts as samples. N-grams, whose numbers lie behind those of tokens, are none.
func (s *Answers) atTokens(ctx context.Context, run *Coder, texts *data.Images, columns []string) (*data.Images, error) {
	if texts == nil {
		return nil, nil
	}
	t, n := run.Tokens(), texts.Pixels()
	var places []place
	var labels []int
	var names []string
	row, list := make([]float32, n), make([]int32, n)
	for text := range texts.Len() {
		texts.Batch(row, []int{text})
		for i, v := range row {
			list[i] = int32(v)
		}
		for i, token := range list {
			if token == t.Pad() || token == t.End() || int(token) >= t.Size() {
				continue
			}
			label := data.UnknownLabel
			if i+1 < n && list[i+1] != t.Pad() && int(list[i+1]) < t.Size() {
				label = int(list[i+1])
			}
			places, labels, names = append(places, place{text, i}), append(labels, label), append(names, inText(t, list, i))
		}
	}
	if len(places) == 0 {
		return nil, s.uncomputed(fmt.Errorf("no text has a token"))
	}
	values := map[string][]float32{}
	for _, name := range s.values(columns) {
		values[name] = make([]float32, 0, len(places)*volume.Of(s.shapeOf(run, name)))
	}
	centred, from, next := run.Centred(), 0, 0 // the first text of a block, and its first place
	err := centred.inBlocks(ctx, texts, s.reads(run, columns), func(given map[string][]float32) error {
		end, count := next, 0
		for name := range values {
			all, err := centred.restored(name, given)
			if err != nil {
				return err
			}
			width := volume.Of(s.shapeOf(run, name))
			count = len(all) / (n * width)
			for end = next; end < len(places) && places[end].text < from+count; end++ {
				at := ((places[end].text-from)*n + places[end].token) * width
				values[name] = append(values[name], all[at:at+width]...)
			}
		}
		from, next = from+count, end
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var images *data.Images
	if err == nil {
		images, err = data.NewFloats(s.shapeOf(run, s.Value), values[s.Value], labels)
	}
	var further []*data.Values
	for _, name := range columns {
		if of := s.Columns[name]; of != nil {
			further = append(further, data.FloatColumn(name, s.shapeOf(run, of[0]), values[of[0]]))
		}
	}
	if err == nil {
		images, err = images.WithColumns(further...)
	}
	if err != nil {
		return nil, s.uncomputed(err)
	}
	images = images.WithSampleNames(names)
	if language := run.Language(); language != nil && language.Shift == 1 && run.follows(s.Value, language.Value) {
		images.Downstream = s.nextTokens(language, texts, places)
	}
	return images, nil
}

// The number of tokens of a text that the name of a sample shows before and after its own.
const before, after = 6, 3

// inText returns a token in its text: many waiters [who] like some cooks.
func inText(t *tokens.Tokenizer, list []int32, i int) string {
	space := ""
	if t.Kind == tokens.Words {
		space = " "
	}
	text := t.Decode(list[max(0, i-before):i]) + space + "[" + t.Name(list[i]) + "]" + space + t.Decode(list[i+1:min(len(list), i+1+after)])
	quoted := strconv.Quote(strings.TrimSpace(text)) // without line feeds and parts of characters
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// nextTokens returns [data.Images.Downstream] for the values at places of texts: the logits of the token that follows. Other tokens of these
// texts keep their values.
func (s *Answers) nextTokens(language *metrics.Language, texts *data.Images, places []place) func([]int, []float32, func(int, []float32) error) error {
	return func(rows []int, samples []float32, do func(i int, logits []float32) error) error {
		run, err := s.open(nil)
		if err != nil {
			return err
		}
		defer run.Close()
		order := lists.Range(0, len(rows)) // samples in the order of their texts
		slices.SortStableFunc(order, func(i, j int) int { return places[rows[i]].text - places[rows[j]].text })
		var ofText [][]int // the samples of each text
		for _, i := range order {
			if last := len(ofText) - 1; last >= 0 && places[rows[ofText[last][0]]].text == places[rows[i]].text {
				ofText[last] = append(ofText[last], i)
			} else {
				ofText = append(ofText, []int{i})
			}
		}
		at := lists.Map(ofText, func(list []int) int { return places[rows[list[0]]].text })
		centred, n := run.Centred(), texts.Pixels()
		width, classes := volume.Of(run.ShapeOf(s.Value)), volume.Of(run.ShapeOf(language.Value))/n // values of a text, logits of a token
		err = centred.inBlocks(context.Background(), texts.Subset(at), s.reads(run.Coder, nil), func(given map[string][]float32) error {
			all, err := centred.restored(s.Value, given)
			for values := range slices.Chunk(all, max(1, blockValues/(n*classes))*width) {
				of := ofText[:len(values)/width]
				for text, list := range of {
					for _, i := range list {
						token := places[rows[i]].token
						copy(values[text*width+token*width/n:], samples[i*width/n:(i+1)*width/n])
					}
				}
				logits, wrong := run.after(s.Value, language.Value, values)
				err = cmp.Or(err, wrong)
				for text, list := range of {
					for _, i := range list {
						if err == nil {
							err = do(i, logits[(text*n+places[rows[i]].token)*classes:][:classes])
						}
					}
				}
				ofText = ofText[len(of):]
			}
			return err
		})
		return s.uncomputed(err)
	}
}
