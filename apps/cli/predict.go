package cli

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/metrics"
)

func init() {
	Commands.Register("predict", "Predict classes or numbers of images or vectors, or entries of a matrix", func() Command { return &predictCommand{runFlags: forRuns()} })
}

type predictCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	In    string          `flag:"in" required:"true" is:"file" doc:"input file or folder"`
	Out   string          `flag:"out,o" is:"output" doc:"file to write, .csv" default:"standard output"`
	Head  string          `flag:"head" doc:"head that predicts, for models with several heads that are compared with classes or numbers"`
	Given string          `flag:"given" is:"file" doc:"file with entries of new rows, for a matrix_factorisation"`
	style data.TableStyle // of the input
	All   bool            `flag:"probabilities" doc:"add a column with the probability of each class"`
}

func (f *predictCommand) Help() Help {
	return Help{
		Long: "Predict the class of each sample with a classifier: its name, the name of the most probable class, and the probability of that class, as " +
			"CSV with the separator and the decimal sign of the input. The input is read as `tessera encode` reads it, with the columns that the head is computed from. Classes have the names that they had in the training: those of a column of labels, of " +
			"folders, or of a published data set; labels without names are numbers. " +
			"Of a head that a loss compares with a column of numbers, predict these numbers: their columns have the names of the targets in the file of the training.\n\n" +
			"Of a matrix_factorisation, predict the entries of a matrix: the input is a .csv file with a line for each pair of a row and a column, whose columns are found " +
			"as those of the data set (row, column, value) or are the first two. If it has the true values too, their root mean squared error is told. Rows that were not fitted are " +
			"predicted from entries of them in a file like that of the training (--given), without fitting the model again.\n\n" +
			"Of a model with the loss masked_token, predict words: wherever a text has <mask>, the most likely word, and the next ones with their probabilities.",
		Examples: []string{"tessera predict runs/flowers --in new.csv", "tessera predict runs/photos --in photos -o classes.csv --probabilities",
			"tessera predict runs/ratings --in pairs.csv --given new-users.csv"},
	}
}

func (f *predictCommand) Do(cmd *Call) error {
	run := f.Folder
	if err := tableOutput(&f.Out, "predictions"); err != nil {
		return err
	}
	if err := outputFile(f, f.Out, f.In, f.Given); err != nil {
		return err
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	f.style = data.StyleOf(cmd.Context(), f.In, r.Model.Dataset.Source)
	if r.PredictsEntries() {
		return f.entries(cmd, r)
	}
	if r.FillsBlanks() {
		return f.blanks(cmd, r)
	}
	if f.Given != "" {
		return usagef("--given: %s: %w", run, tessera.ErrNoMatrix)
	}
	heads, numbers := r.ClassHeads(), metrics.TargetsOf(r)
	heads = lists.Add(heads, lists.Map(numbers, func(t metrics.Target) string { return t.Value })...)
	head := f.Head
	if len(heads) > 1 && head == "" || len(heads) > 0 && head != "" && !slices.Contains(heads, head) {
		return usagef("--head: got %q, want one of %s", head, strings.Join(heads, ", "))
	} else if len(heads) == 0 {
		return fmt.Errorf("%s: %w", run, tessera.ErrNoClasses)
	} else if head == "" {
		head = heads[0]
	}
	columns := r.DecisionColumns(head)
	rows, err := readSamples(cmd, r, f.In, columns...)
	if err != nil {
		return err
	}
	all, err := given(cmd, r, rows, columns)
	if err != nil {
		return err
	}
	if !slices.Contains(r.ClassHeads(), head) {
		return f.numbers(cmd, r, numbers[slices.IndexFunc(numbers, func(t metrics.Target) bool { return t.Value == head })], all, rows.Names)
	}
	p, err := r.Centred().PredictFrom(head, all)
	if err != nil {
		return err
	}
	if fitted := r.PostHoc(); fitted != "" {
		cmd.say("fitted after the training: %s", fitted)
	}
	return f.write(cmd, func(w io.Writer) error { return f.table(w, p, rows.Names) })
}

func (f *predictCommand) write(cmd *Call, write func(io.Writer) error) error {
	return writeTable(cmd, f.Out, write)
}

// tableOutput checks the name of a table, and sets it to "" for the standard output, "-".
func tableOutput(out *string, what string) error {
	if *out == "-" {
		*out = ""
	}
	if format, err := data.FormatOf(*out); *out != "" && (err != nil || format != "csv") {
		return usagef("--out: %q: %s are a table: give a name that ends in .csv, or none for the standard output", *out, what)
	}
	return nil
}

// writeTable writes a table to a file, "" for the standard output.
func writeTable(cmd *Call, out string, write func(io.Writer) error) error {
	if out == "" {
		return write(cmd.OutOrStdout())
	}
	if err := atomicfile.Write(out, write); err != nil {
		return writing(out, err)
	}
	return cmd.wrote(out)
}

func (f *predictCommand) numbers(cmd *Call, r *tessera.Run, t metrics.Target, columns map[string][]float32, names []string) error {
	if f.All {
		return usagef("--probabilities: the head %s predicts numbers, not classes", t.Value)
	}
	values, err := r.Centred().ValueOf(t.Value, columns)
	if err != nil {
		return err
	}
	head := []string{"name"}
	for i := range t.Size {
		head = append(head, t.Name(i))
	}
	return f.write(cmd, func(out io.Writer) error {
		w := f.writer(out)
		_ = w.Write(head) // the error is kept
		for i := range len(values) / t.Size {
			line := []string{nameOf(names, i)}
			for _, v := range values[i*t.Size : (i+1)*t.Size] {
				line = append(line, f.number(v))
			}
			_ = w.Write(line)
		}
		w.Flush()
		return w.Error()
	})
}

// nameOf returns the name of sample i, or its number if it has no name.
func nameOf(names []string, i int) string {
	if names == nil {
		return strconv.Itoa(i)
	}
	return names[i]
}

// entries predicts entries of a matrix.
func (f *predictCommand) entries(cmd *Call, r *tessera.Run) error {
	if f.Head != "" || f.All {
		return usagef("--head, --probabilities: %s predicts entries of a matrix, not classes", r.Path)
	}
	like := data.SparseOf(r.Origin.Placed(r.Model.Dataset.Source))
	pairs, err := data.ReadPairs(cmd.Context(), f.In, like)
	if err != nil {
		return err
	}
	warn(cmd, pairs.Notes...)
	further, err := entriesGiven(cmd, r, f.Given)
	if err != nil {
		return err
	}
	values, err := r.PredictEntries(pairs, further)
	if unknown, ok := errors.AsType[*data.Error](err); ok {
		unknown.Path = f.In
	}
	if err != nil {
		return err
	}
	if pairs.Values != nil {
		squares := 0.0
		for i, v := range values {
			d := v - float64(pairs.Values[i])
			squares += d * d
		}
		cmd.say("%s: root mean squared error %s, of %s", f.In, numeral.Float(math.Sqrt(squares/float64(len(values)))), numeral.Of(len(values), "entry"))
	}
	return f.write(cmd, func(out io.Writer) error {
		w := f.writer(out)
		_ = w.Write([]string{"row", "column", "prediction"}) // the error is kept
		for i, v := range values {
			_ = w.Write([]string{pairs.Rows[i], pairs.Columns[i], f.number(float32(v))})
		}
		w.Flush()
		return w.Error()
	})
}

// blanks predicts the words at the places of <mask> in texts.
func (f *predictCommand) blanks(cmd *Call, r *tessera.Run) error {
	if f.Head != "" || f.Given != "" {
		return usagef("--head, --given: %s predicts words of texts, not classes or entries of a matrix", r.Path)
	}
	rows, err := readSamples(cmd, r, f.In)
	if err != nil {
		return err
	}
	p, blanks, err := r.FillBlanks(cmd.Context(), rows.Images)
	if err != nil {
		return err
	}
	if len(blanks) == 0 {
		return &data.Error{Path: f.In, Problem: "no text has a <mask>: there is no word to predict", Hint: "write <mask> in the place of a word"}
	}
	const shown = 5 // words
	return f.write(cmd, func(out io.Writer) error {
		w := f.writer(out)
		head := []string{"name", "place", "word", "probability", "next words"}
		if f.All {
			head = append(head, p.Classes...)
		}
		_ = w.Write(head) // the error is kept
		for i, blank := range blanks {
			row := p.Probabilities[i*len(p.Classes):][:len(p.Classes)]
			order := lists.Range(0, len(row))
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
			next := lists.Map(order[1:min(shown, len(order))], func(k int) string { return fmt.Sprintf("%s %.2g", p.Classes[k], row[k]) })
			line := []string{nameOf(rows.Names, blank.Sample), strconv.Itoa(blank.Place), p.Classes[order[0]], f.number(row[order[0]]), strings.Join(next, ", ")}
			for _, v := range row {
				if f.All {
					line = append(line, f.number(v))
				}
			}
			_ = w.Write(line)
		}
		w.Flush()
		return w.Error()
	})
}

// entriesGiven reads the entries of further rows, nil for no file.
func entriesGiven(cmd *Call, r *tessera.Run, path string) (*data.Images, error) {
	if path == "" {
		return nil, nil
	}
	rows, err := data.ReadRows(cmd.Context(), path, r.Shape(), like(cmd.Context(), r))
	if err != nil {
		return nil, err
	}
	warn(cmd, rows.Notes...)
	return rows.Images, nil
}

// table writes a line for each sample. Samples without names are numbered.
func (f *predictCommand) table(out io.Writer, p *tessera.Prediction, names []string) error {
	w := f.writer(out)
	head := []string{"name", "class", "probability"}
	if f.All {
		head = append(head, p.Classes...)
	}
	_ = w.Write(head) // the error is kept
	for i, class := range p.Labels {
		line := []string{nameOf(names, i), p.Classes[class], f.number(p.Probability(i))}
		for j := range p.Classes {
			if f.All {
				line = append(line, f.number(p.Probabilities[i*len(p.Classes)+j]))
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// writer returns a writer of lines with the separator of the input.
func (f *predictCommand) writer(out io.Writer) *csv.Writer {
	w := csv.NewWriter(out)
	if f.style.Separator != 0 {
		w.Comma = f.style.Separator
	}
	return w
}

// number formats a prediction with the fewest digits that identify the number, and the decimal sign of the input.
func (f *predictCommand) number(v float32) string {
	text := strconv.FormatFloat(float64(v), 'g', -1, 32)
	if f.style.Decimal == "," {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text
}
