package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/internal/atomicfile"
)

func predictCommand() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict RUN --in FILE",
		Short: "Predict the classes of images or vectors",
		Long: "Predict the class of each sample with a classifier: its name, the name of the most probable class, and the probability of that class, as " +
			"CSV. The input is read as `tessera encode` reads it. Classes have the names that they had in the training: those of a column of labels, of " +
			"folders, or of a published data set; labels without names are numbers.",
		Example: "  tessera predict runs/flowers --in new.csv\n  tessera predict runs/photos --in photos -o classes.csv --probabilities",
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.predict(cmd, args[0]) }),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&f.in, "in", "", "input file or folder")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "file to write, .csv (default standard output)")
	cmd.Flags().StringVar(&f.head, "head", "", "head that predicts, for models with several classifiers")
	cmd.Flags().BoolVar(&f.all, "probabilities", false, "add a column with the probability of each class")
	_ = cmd.MarkFlagRequired("in")
	return cmd
}

// predictFlags are the flags of predict.
type predictFlags struct {
	runFlags
	in, out, head string
	all           bool
}

func (f *predictFlags) predict(cmd *cobra.Command, run string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	if format, err := data.FormatOf(f.out); f.out != "" && (err != nil || format != "csv") {
		return usagef("--out: %q: predictions are a table: give a name that ends in .csv", f.out)
	}
	if err := outputFile(f.in, f.out); err != nil {
		return err
	}
	r, err := tessera.Open(run, options)
	if err != nil {
		return err
	}
	defer r.Close()
	if heads := r.ClassHeads(); len(heads) > 1 && f.head == "" || len(heads) > 0 && f.head != "" && !slices.Contains(heads, f.head) {
		return usagef("--head: got %q, want one of %s", f.head, strings.Join(heads, ", "))
	} else if len(heads) == 0 {
		return fmt.Errorf("%s: %w", run, tessera.ErrNoClasses)
	}
	rows, err := readSamples(cmd, r, f.in)
	if err != nil {
		return err
	}
	p, err := r.Predict(f.head, rows.Float32())
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return f.table(w, p, rows.Names) }
	if f.out == "" {
		return write(cmd.OutOrStdout())
	}
	if err := atomicfile.Write(f.out, write); err != nil {
		return writing(f.out, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), f.out)
	return nil
}

// table writes a line for each sample: samples without names have numbers.
func (f *predictFlags) table(out io.Writer, p *tessera.Prediction, names []string) error {
	w := csv.NewWriter(out)
	head := []string{"name", "class", "probability"}
	if f.all {
		head = append(head, p.Classes...)
	}
	_ = w.Write(head) // the error is kept
	for i, class := range p.Labels {
		name := strconv.Itoa(i)
		if names != nil {
			name = names[i]
		}
		line := []string{name, p.Classes[class], probability(p.Probability(i))}
		for j := range p.Classes {
			if f.all {
				line = append(line, probability(p.Probabilities[i*len(p.Classes)+j]))
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// probability is the shortest text that is read as the same number.
func probability(p float32) string { return strconv.FormatFloat(float64(p), 'g', -1, 32) }
