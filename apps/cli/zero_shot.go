package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/numeral"
	"tessera/internal/train/evaluation"
)

func init() {
	Commands.Register("zero-shot", "Classify samples by texts about the classes, with a model of pictures and texts", func() Command {
		return &zeroShotCommand{runFlags: forRuns()}
	})
}

type zeroShotCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	splitFlag
	jsonFlag
	Prompts string `flag:"prompts" is:"file" doc:"file of texts: a line for each class, or a .csv file with the columns class and prompt" default:"the names of the classes"`
	In      string `flag:"in" is:"file" doc:"file or folder of samples to classify" default:"the samples of the run are measured"`
	Out     string `flag:"out,o" is:"output" doc:"file of the classes of --in, .csv" default:"standard output"`
}

func (f *zeroShotCommand) Help() Help {
	return Help{
		Long: "Classify samples by texts, without a classifier: a model with the loss contrastive between a value of the samples and one of a column of tokens gives every " +
			"sample the class whose text has the most similar value, by the cosine. Several texts of a class in a .csv file (class, prompt) are averaged. " +
			"Without --in it classifies the labelled samples that eval measures, and prints the accuracy; with it, it writes the class of each sample as CSV.",
		Examples: []string{"tessera zero-shot runs/clip-swimmer", "tessera zero-shot runs/clip-swimmer --prompts prompts.csv --in new.png"},
	}
}

func (f *zeroShotCommand) Do(cmd *Call) error {
	if err := tableOutput(&f.Out, "classes"); err != nil {
		return err
	}
	if f.Out != "" && f.In == "" {
		return usagef("--out: is for the classes of the samples in --in")
	}
	if err := outputFile(f, f.Out, f.In, f.Prompts); err != nil {
		return err
	}
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Model.Pair() == nil {
		return usagef("zero-shot: %s: %w", r.Path, tessera.ErrNoTexts)
	}
	prompts, err := readPrompts(cmd.Context(), f.Prompts)
	if err != nil {
		return err
	}
	var sample *evaluation.Sample
	if f.In == "" || prompts == nil {
		if sample, err = r.Sample(cmd.Context(), cmp.Or(data.Split(f.Split), data.TestSplit)); err != nil {
			return err
		}
	}
	if prompts == nil {
		for _, class := range sample.Classes {
			prompts = append(prompts, coder.Prompt{Class: class, Text: class})
		}
		if prompts == nil {
			return usagef("--prompts: the classes of the data set of %s have no names: give a text for each class", r.Path)
		}
	}
	z, err := r.ZeroShot(prompts)
	if wrong, ok := errors.AsType[*data.Error](err); ok {
		wrong.Path = f.Prompts
	}
	if errors.Is(err, tessera.ErrNoTexts) {
		return usagef("zero-shot: %w", err)
	}
	if err != nil {
		return err
	}
	if f.In == "" {
		return f.measure(cmd, sample, z)
	}
	rows, err := readSamples(cmd, r, f.In, z.Columns()...)
	if err != nil {
		return err
	}
	similar, err := z.Similarities(cmd.Context(), rows.Images)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		w := csv.NewWriter(out)
		_ = w.Write([]string{"name", "class", "similarity"}) // the error is kept
		for i := range rows.Len() {
			row := similar[i*len(z.Classes):][:len(z.Classes)]
			best := largest(row)
			_ = w.Write([]string{nameOf(rows.Names, i), z.Classes[best], strconv.FormatFloat(float64(row[best]), 'g', -1, 32)})
		}
		w.Flush()
		return w.Error()
	}
	return writeTable(cmd, f.Out, write)
}

func largest(row []float32) (best int) {
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}

// readPrompts reads a file of texts; nil for no file.
func readPrompts(ctx context.Context, path string) (list []coder.Prompt, err error) {
	if path == "" {
		return nil, nil
	}
	text, err := data.ReadText(ctx, path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(strings.ToLower(path), ".csv") {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, coder.Prompt{Class: line, Text: line})
			}
		}
	} else {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			return nil, data.FileError("", path, err)
		}
		class, prompt := -1, -1
		if len(rows) > 0 {
			class, prompt = slices.Index(rows[0], "class"), slices.Index(rows[0], "prompt")
		}
		if class < 0 || prompt < 0 {
			return nil, &data.Error{Path: path, Problem: "has no columns class and prompt", Hint: "write them in the first line"}
		}
		for _, row := range rows[1:] {
			list = append(list, coder.Prompt{Class: row[class], Text: row[prompt]})
		}
	}
	if len(list) == 0 {
		return nil, &data.Error{Path: path, Problem: "has no texts"}
	}
	return list, nil
}

// measure reports the share of the labelled samples of the run's data set that get their class.
func (f *zeroShotCommand) measure(cmd *Call, sample *evaluation.Sample, z *coder.ZeroShot) error {
	images := sample.Images.Scaled(nil)
	similar, err := z.Similarities(cmd.Context(), images)
	if err != nil {
		return err
	}
	names, right, counted := sample.Classes, 0, 0
	for i, label := range images.Labels() {
		if label < 0 || label >= len(names) {
			continue
		}
		if at := slices.Index(z.Classes, names[label]); at >= 0 {
			counted++
			if largest(similar[i*len(z.Classes):][:len(z.Classes)]) == at {
				right++
			}
		}
	}
	if counted == 0 {
		return usagef("zero-shot: no sample has one of the classes of the texts (%s): their accuracy cannot be told", strings.Join(z.Classes[:min(3, len(z.Classes))], ", "))
	}
	a := attack.AccuracyOf(right, counted)
	d := &doc.Document{}
	d.Add(&doc.Facts{Facts: []doc.Fact{
		{Key: "classes", Title: "classes", Value: len(z.Classes)}, {Key: "samples", Title: "samples", Value: counted},
		{Key: "accuracy", Title: "accuracy", Value: a.Value}, {Key: "interval", Title: "95 % interval", Value: numeral.Interval(a.Low, a.High)},
		{Key: "chance", Title: "by chance", Value: 1 / float64(len(z.Classes))},
	}})
	return cmd.Show(d, f.JSON)
}
