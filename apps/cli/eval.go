package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tessera"
	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

func init() {
	Commands.Register("eval", "Measure a run on the test images, or on another split", func() Command {
		return &evalCommand{runFlags: forRuns(), previewFlag: previewFlag{automatic}}
	})
}

// evalCommand is the command eval.
type evalCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	metricFlags
	previewFlag
	splitFlag
	rawFlag
	jsonFlag
	In       []string       `flag:"in" each:"true" is:"file" without:"split" doc:"measure the images of this file or folder instead; may be repeated"`
	Atoms    bool           `flag:"atoms" doc:"also measure how many atoms are used and how much they overlap; takes several seconds"`
	Classes  bool           `flag:"classes" doc:"also measure precision and recall of every class that a head predicts"`
	Operator morph.Operator `flag:"operator" doc:"operator of the max-approximation, by default the first"`
	Radius   int            `flag:"radius" want:"> 0" doc:"radius of the operator's element in pixels (default 1)"`
	Element  morph.Element  `flag:"element" doc:"structuring element of --operator: disk, square, row, column, or rows of 0 and 1 as in \"010 111 010\" (default disk)"`
}

// Help implements [Command].
func (f *evalCommand) Help() Help {
	return Help{
		Long: "Measure a run on images that it was not fitted to: the test images of its data set, or those that it held out for validation. " +
			"For comparison, up to 10000 of the fitted images are measured too. Where no images are held out, the numbers are of fitted images, and the table says so.\n\n" +
			"--split measures one split alone: choose settings by --split validation. --in measures other images, in the formats that `tessera encode` reads.",
		Examples: []string{"tessera eval runs/shallow-nonneg-kl --svm", "tessera eval runs/classifier --split validation", "tessera eval runs/photos --in others --in more.npy",
			"tessera eval runs/shallow-nonneg-kl --operator opening --radius 2 --atoms"},
	}
}

// Do implements [Command]: it opens and measures a run.
func (f *evalCommand) Do(cmd *Call) error {
	run := f.Folder
	options, err := f.options()
	if err != nil {
		return err
	}
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	options.Raw = f.Raw
	options.Warn = func(text string) { warn(cmd, text) }
	r, err := tessera.Open(run, options)
	if err != nil {
		return err
	}
	defer r.Close()
	if s := train.StatusOf(run); s.State == train.Interrupted {
		fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s is not finished: epoch %d of %d; `tessera resume %s` continues it\n", r.Path, s.Epoch, s.Epochs, r.Path)
	}
	measured, err := f.measure(cmd, r, chosen)
	if err != nil {
		return err
	}
	if measured.Unread != nil {
		warn(cmd, "the fitted images are not measured: "+measured.Unread.Error())
	}
	warnOf(cmd, r, measured)
	if f.Metrics != nil && !anyApplies(measured) {
		return usagef("eval %s: none of these metrics has a value:\n  %s", r.Path, strings.Join(withoutValue(measured), "\n  "))
	}
	if f.JSON {
		err = printJSON(cmd.OutOrStdout(), measured)
	} else {
		err = printReport(cmd.OutOrStdout(), measured, f.Metrics != nil)
	}
	if err != nil {
		return err
	}
	if f.Metrics != nil { // JSON has null for them
		noteMissing(cmd, measured)
	}
	if f.JSON {
		return nil
	}
	return f.previewFlag.show(cmd, r)
}

// measure measures the run on the images that the flags select.
func (f *evalCommand) measure(cmd *Call, r *tessera.Run, chosen metrics.Selection) (*evaluation.Report, error) {
	if f.Split == "" && len(f.In) == 0 {
		return r.Report(cmd.Context(), chosen)
	}
	if len(f.In) == 0 {
		measured, err := r.EvaluateOn(cmd.Context(), data.Split(f.Split), chosen)
		if err != nil {
			return nil, err
		}
		return evaluation.ReportOf(r.Model, measured), nil
	}
	var all []*data.Images
	for _, path := range f.In {
		rows, err := readSamples(cmd, r, path)
		if err != nil {
			return nil, err
		}
		all = append(all, rows.Images)
	}
	images, err := joined(r.Shape(), all)
	if err != nil {
		return nil, err
	}
	measured, err := r.EvaluateImages(cmd.Context(), strings.Join(f.In, " "), images, chosen)
	if err != nil {
		return nil, err
	}
	return evaluation.ReportOf(r.Model, measured), nil
}

// joined returns the images of several files as one set without labels: the classes of one file may differ from those of
// another file and from those of the training.
func joined(shape []int, all []*data.Images) (*data.Images, error) {
	var values []float32
	missing := false
	for _, images := range all {
		values, missing = append(values, images.Raw()...), missing || images.Holed()
	}
	images, err := data.NewFloats(shape, values, nil)
	if err == nil && missing {
		images = images.WithMissing()
	}
	return images, err
}

// chosen returns the metrics of the flags, with their settings.
func (f *evalCommand) chosen() (metrics.Selection, error) {
	var others []string
	if f.Atoms {
		others = []string{"hoyer_atoms_dilated", "used_units", "jaccard"}
	}
	if f.Classes {
		others = append(others, "per_class")
	}
	chosen, err := f.metricFlags.chosen(others...)
	if err != nil {
		return nil, err
	}
	for _, setting := range []struct {
		key   string
		value any
	}{{"operator", string(f.Operator)}, {"element", string(f.Element)}, {"radius", f.Radius}} {
		if setting.value == "" || setting.value == 0 {
			continue
		}
		if err := chosen.Set(setting.key, setting.value); err != nil {
			return nil, usageError{err}
		}
	}
	return chosen, nil
}

// printReport prints metrics as a table, with one column for held-out images and one for fitted images. Metrics that do not
// apply are omitted unless they were selected by name.
func printReport(out io.Writer, r *evaluation.Report, named bool) error {
	t := newTable(out)
	t.row("model", r.Model)
	t.row("dataset", r.Dataset)
	if r.PostHoc != "" {
		t.row("post-hoc", r.PostHoc)
	}
	sampleRows(t, r)
	settings := map[string]any{}
	var keys []string
	r.Each(func(key string, value any) {
		if !slices.ContainsFunc(r.Values, func(v metrics.Value) bool { return v.Name == key }) {
			settings[key] = value
		}
		keys = append(keys, key)
	})
	for _, key := range inOrder(keys, r) {
		if value, ok := settings[key]; ok {
			t.row(key, value)
		} else if named || applies(key, r) {
			reportRow(t, key, key, r)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	return printTables(out, r.Tables)
}

// printTables prints the tables of metrics, each after an empty line, with its notes.
func printTables(out io.Writer, tables []*metrics.Table) error {
	for _, table := range tables {
		fmt.Fprintln(out)
		t := newTable(out)
		heads := []any{table.Of}
		for _, c := range table.Columns {
			heads = append(heads, c)
		}
		t.row(heads...)
		for _, r := range table.Rows {
			row := []any{r.Name}
			for _, v := range r.Numbers {
				switch {
				case math.IsNaN(v):
					row = append(row, "-")
				case v == math.Trunc(v):
					row = append(row, int(v))
				default:
					row = append(row, v)
				}
			}
			t.row(row...)
		}
		if err := t.flush(); err != nil {
			return err
		}
		for _, note := range table.Notes {
			fmt.Fprintln(out, "note: "+note)
		}
	}
	return nil
}

// noteMissing explains why metrics that were requested by name have no value.
func noteMissing(cmd *Call, r *evaluation.Report) {
	for _, line := range withoutValue(r) {
		fmt.Fprintf(cmd.ErrOrStderr(), "tessera: no value of %s\n", line)
	}
}

// withoutValue returns the metrics without a value, one text for each reason: "svm_accuracy, svm_std: the data set has no labels".
func withoutValue(r *evaluation.Report) (lines []string) {
	var reasons []string
	names := map[string][]string{}
	for _, v := range r.Values {
		if v.Missing == "" || applies(v.Name, r) {
			continue
		}
		if names[v.Missing] == nil {
			reasons = append(reasons, v.Missing)
		}
		names[v.Missing] = append(names[v.Missing], v.Name)
	}
	for _, reason := range reasons {
		lines = append(lines, strings.Join(names[reason], ", ")+": "+reason)
	}
	return lines
}

// anyApplies reports whether any measured metric has a value or a table.
func anyApplies(r *evaluation.Report) bool {
	return len(r.Values) == 0 || len(r.Tables) > 0 || slices.ContainsFunc(r.Values, func(v metrics.Value) bool { return v.Missing == "" || applies(v.Name, r) })
}

// inOrder sorts metrics: first those that a classifier without a decoder optimises; useful_units comes after dead_units,
// because the two are read together.
func inOrder(keys []string, r *evaluation.Report) []string {
	place := map[string]int{}
	for i, key := range keys {
		place[key] = 2 * (i + 1)
	}
	for _, key := range keys {
		if m, _ := metrics.MeasureOf(key); isClassification(m.Name) && !reconstructs(r) {
			place[key] = 0
		}
	}
	if dead, ok := place["dead_units"]; ok && place["useful_units"] > 0 {
		place["useful_units"] = dead + 1
	}
	return slices.SortedStableFunc(slices.Values(keys), func(a, b string) int { return cmp.Compare(place[a], place[b]) })
}

// applies reports whether a metric has a value.
func applies(name string, r *evaluation.Report) bool {
	_, ok := r.Number(name)
	if r.Fitted != nil && !ok {
		_, ok = r.Fitted.Number(name)
	}
	return ok
}

// reconstructs reports whether a measured model has a decoder.
func reconstructs(r *evaluation.Report) bool { _, ok := r.Number("mse"); return ok }

// isClassification reports whether a metric measures a head that a loss compares with labels.
func isClassification(metric string) bool {
	return slices.Contains([]string{"accuracy", "nll", "ece", "brier", "macro_precision", "macro_recall", "least_recall"}, metric)
}

// sampleRows names the measured images: first the held-out ones, next to them the fitted ones.
func sampleRows(t *columns, r *evaluation.Report) {
	split := r.Split
	if r.Note != "" {
		split += " (" + r.Note + ")"
	}
	if r.Fitted == nil {
		t.row("split", split)
		t.row(r.Counted(), r.Images)
		return
	}
	t.row("split", split, r.Fitted.Split+" (fitted)")
	fitted := fmt.Sprint(r.Fitted.Images)
	if r.Fitted.Images < r.FittedImages {
		fitted += fmt.Sprintf(" of %d", r.FittedImages)
	}
	t.row(r.Counted(), r.Images, fitted)
}

// reportRow prints one metric of both samples; metrics that do not depend on images have one value.
func reportRow(t *columns, title, name string, r *evaluation.Report) {
	row := []any{title, valueText(r.Values, name)}
	if r.Fitted != nil {
		if _, ok := r.Fitted.Find(name); ok {
			row = append(row, valueText(r.Fitted.Values, name))
		}
	}
	t.row(row...)
}

// warnOf warns of the weaknesses that the measured values of a run show.
func warnOf(cmd *Call, r *tessera.Run, measured *evaluation.Report) {
	for _, f := range train.Findings(r.Model, r.Path, r.Shape(), r.Units(), measured) {
		warn(cmd, f.String())
	}
}
