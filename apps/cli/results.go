package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/metrics"
	"tessera/show/figures"
	"tessera/train/evaluation"
	"tessera/train/folder"
)

// results prints the results of a training: a short table, the true parts that were found, if known, and the path of the
// picture of the atoms.
func results(cmd *cobra.Command, r *tessera.Run) error {
	t := newTable(cmd.OutOrStdout())
	t.row("run", r.Path)
	passes := "epochs"
	if r.Model.Baseline != nil {
		passes = "iterations"
	}
	t.row(passes, r.Result.Epochs)
	if r.Result.BestEpoch > 0 {
		t.row("best epoch", r.Result.BestEpoch)
	}
	measured, err := measure(cmd, r)
	if err != nil {
		return err
	}
	if measured != nil {
		printMeasured(t, measured)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := parts(cmd, r); err != nil {
		return err
	}
	if err := atoms(cmd, r); err != nil || measured == nil {
		return err
	}
	warnUseless(cmd, r, measured.Values)
	return nil
}

// summarised are the metrics that the table of a training shows.
var summarised = []string{"mse", "hoyer", "dead_units", "useful_units", "negative_weights"}

// measure measures a trained run. It returns nil if the images are missing: the run is complete without them.
func measure(cmd *cobra.Command, r *tessera.Run) (*evaluation.Report, error) {
	chosen, err := metrics.Select(append([]string{"accuracy"}, summarised...)...)
	if err != nil {
		return nil, err
	}
	for i := range chosen {
		chosen[i].Optional = true
	}
	measured, err := r.Report(cmd.Context(), chosen)
	var missing *data.Error
	if errors.As(err, &missing) {
		fmt.Fprintln(cmd.ErrOrStderr(), "tessera: not measured:", err)
		return nil, nil
	}
	return measured, err
}

// printMeasured adds the rows of the metrics to the table of a training.
func printMeasured(t columns, r *evaluation.Report) {
	sampleRows(t, r)
	for _, name := range summarised {
		reportRow(t, strings.ReplaceAll(name, "_", " "), name, r)
	}
	for _, v := range r.Shown() { // one for each head
		if m, _ := metrics.MeasureOf(v.Name); m.Name == "accuracy" {
			reportRow(t, v.Name, v.Name, r)
		}
	}
}

// parts prints how many of the true parts were found.
func parts(cmd *cobra.Command, r *tessera.Run) error {
	found, err := r.Parts(cmd.Context())
	if err != nil || len(found) == 0 {
		return err
	}
	t := newTable(cmd.OutOrStdout())
	fmt.Fprintln(t.out)
	t.row("parts", "found", "least cosine", "as")
	for len(found) > 0 {
		kind := found[0].Kind
		end := slices.IndexFunc(found, func(p tessera.FoundPart) bool { return p.Kind != kind })
		if end < 0 {
			end = len(found)
		}
		t.row(kind, countFound(found[:end]), leastCosine(found[:end]), foundAs(found[:end]))
		found = found[end:]
	}
	return t.flush()
}

func countFound(parts []tessera.FoundPart) string {
	n := 0
	for _, p := range parts {
		if p.Found {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(parts))
}

func leastCosine(parts []tessera.FoundPart) string {
	least := slices.MinFunc(parts, func(a, b tessera.FoundPart) int {
		if a.Cosine < b.Cosine {
			return -1
		}
		return 1
	})
	return fmt.Sprintf("%.3f", least.Cosine)
}

// foundAs lists the atoms, or the bias, that match the true parts.
func foundAs(parts []tessera.FoundPart) string {
	var names []string
	for _, p := range parts {
		switch {
		case !p.Found:
		case p.Atom == metrics.BiasAtom:
			names = append(names, "bias")
		default:
			names = append(names, fmt.Sprint("atom ", p.Atom))
		}
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.ReplaceAll(strings.Join(names, ", "), ", atom", "")
}

// atoms draws the run's atoms into its folder and prints the path.
func atoms(cmd *cobra.Command, r *tessera.Run) error {
	path, err := picture(r)
	if err == nil && path != "" {
		fmt.Fprintln(cmd.OutOrStdout(), "\natoms ", path)
	}
	return err
}

// picture draws the run's atoms into its folder; path is "" if it has none.
func picture(r *tessera.Run) (path string, err error) {
	a := r.Atoms()
	if a == nil {
		return "", nil
	}
	figure, err := figures.Atoms(a)
	if err != nil {
		return "", err
	}
	path = filepath.Join(r.Path, folder.Picture)
	if err := figure.Save(path); err != nil {
		return "", &folder.WriteError{Path: path, Err: err}
	}
	return path, nil
}

// columns prints aligned columns.
type columns struct{ out *tabwriter.Writer }

func newTable(out io.Writer) columns {
	return columns{tabwriter.NewWriter(&trimmed{out: out}, 0, 0, 2, ' ', 0)}
}

// row prints one row.
func (t columns) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = cellText(cell)
	}
	fmt.Fprintln(t.out, strings.Join(texts, "\t"))
}

// trimmed is an output without spaces at the ends of lines: those that align empty cells.
type trimmed struct {
	out    io.Writer
	spaces []byte // that are written if something follows in their line
}

// Write implements [io.Writer].
func (t *trimmed) Write(p []byte) (int, error) {
	var kept []byte
	for _, b := range p {
		switch b {
		case ' ':
			t.spaces = append(t.spaces, b)
			continue
		case '\n':
			t.spaces = t.spaces[:0]
		}
		kept = append(append(kept, t.spaces...), b)
		t.spaces = t.spaces[:0]
	}
	if _, err := t.out.Write(kept); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t columns) flush() error { return t.out.Flush() }

func cellText(cell any) string {
	if v, ok := cell.(float64); ok {
		return number(v)
	}
	return fmt.Sprint(cell)
}

// valueText prints the named value, "-" if it is not applicable or was not measured.
func valueText(values metrics.Values, name string) string {
	v, ok := values.Number(name)
	if !ok {
		return "-"
	}
	if m, _ := metrics.MeasureOf(name); m.Count {
		return fmt.Sprint(int(v))
	}
	return number(v)
}
