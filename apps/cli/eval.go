package cli

import (
	"fmt"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/losses"
	"tessera/metrics"
)

func init() {
	Commands.Register("eval", "Measure a run on the test images, or on another split", func() Command {
		return &evalCommand{runFlags: forRuns(), previewFlag: previewFlag{automatic}}
	})
}

type evalCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	metricFlags
	previewFlag
	splitFlag
	rawFlag
	jsonFlag
	In       []string       `flag:"in" each:"true" is:"file" without:"split" doc:"measure the samples of this file or folder instead, with the labels and columns that it has; may be repeated"`
	Atoms    bool           `flag:"atoms" doc:"also measure how many atoms are used and how much they overlap; takes several seconds"`
	Classes  bool           `flag:"classes" doc:"also measure precision and recall of every class that a head predicts"`
	Operator morph.Operator `flag:"operator" doc:"operator of the max-approximation, by default the first"`
	Radius   int            `flag:"radius" want:"> 0" doc:"radius of the operator's element in pixels (default 1)"`
	Element  morph.Element  `flag:"element" doc:"structuring element of --operator: disk, square, row, column, or rows of 0 and 1 as in \"010 111 010\" (default disk)"`
}

func (f *evalCommand) Help() Help {
	return Help{
		Long: "Measure a run on images that it was not fitted to: the test images of its data set, or those that it held out for validation. " +
			"For comparison, up to 10000 of the fitted images are measured too. Where no images are held out, the numbers are of fitted images, and the table says so.\n\n" +
			"--split measures one split alone: choose settings by --split validation. --in measures other samples, in the formats that `tessera encode` reads, with their labels and columns by the names of the training.",
		Examples: []string{"tessera eval runs/shallow-nonneg-kl --svm", "tessera eval runs/classifier --split validation", "tessera eval runs/photos --in others --in more.npy",
			"tessera eval runs/shallow-nonneg-kl --operator opening --radius 2 --atoms"},
	}
}

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
		cmd.say("%s is not finished: epoch %d of %d; `tessera resume %s` continues it", r.Path, s.Epoch, s.Epochs, r.Path)
	}
	measured, err := f.measure(cmd, r, chosen)
	if err != nil {
		return err
	}
	if measured.Unread != nil {
		warn(cmd, "the fitted images are not measured: "+measured.Unread.Error())
	}
	if f.Metrics != nil && !anyApplies(measured) {
		return usagef("eval %s: none of these metrics has a value:\n  %s", r.Path, strings.Join(withoutValue(measured), "\n  "))
	}
	if err := cmd.Show(show.RunDocument(r, measured, f.Metrics != nil), f.JSON); err != nil {
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
	source := data.Measuring(like(cmd.Context(), r), f.columns(r, chosen)...)
	var all []*data.Images
	var classes [][]string
	for _, path := range f.In {
		rows, err := readFrom(cmd, r, path, source)
		if err != nil {
			return nil, err
		}
		for _, c := range data.InFiles(r.InFile(r.Columns(losses.Code))) { // others are left out with their metrics
			if _, ok := rows.Column(c.Name); !ok {
				return nil, &data.Error{Path: path, Problem: fmt.Sprintf("has no column %q, from which codes are computed", c.Name),
					Hint: "give it under the name that it has in the file of the training"}
			}
		}
		all, classes = append(all, rows.Images), append(classes, rows.Classes)
	}
	for i, images := range all { // labels of files with different classes have no common meaning
		if !slices.Equal(classes[i], classes[0]) {
			all[i] = images.WithLabels(nil)
		}
	}
	images, err := data.Joined(r.Shape(), all...)
	if err != nil {
		return nil, err
	}
	measured, err := r.EvaluateImages(cmd.Context(), strings.Join(f.In, " "), images, chosen)
	if err != nil {
		return nil, err
	}
	report := evaluation.ReportOf(r.Model, measured)
	if f.Metrics == nil {
		noteMissing(cmd, report, r.Model.FirstMeasures()...)
	}
	return report, nil
}

// columns describes what is read from a file of samples: what the model, its thresholds and the metrics read.
func (f *evalCommand) columns(r *tessera.Run, chosen metrics.Selection) []data.Column {
	columns, source := r.Measured(), r.Origin.Placed(r.Model.Dataset.Source)
	more := data.ColumnsOf(source, data.SearchDirs(f.Data))
	read := metrics.ColumnsOf(chosen, source)
	more = lists.Only(more, func(c data.Column) bool { return slices.Contains(read, c.Name) })
	for _, head := range r.ClassHeads() { // first, with the names of their groups
		more = append(r.DecisionColumns(head), more...)
	}
	for _, c := range r.InFile(more) {
		if !slices.ContainsFunc(columns, func(o data.Column) bool { return o.Name == c.Name }) {
			columns = append(columns, c)
		}
	}
	return columns
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

// noteMissing explains why metrics have no value; no names means all that were requested.
func noteMissing(cmd *Call, r *evaluation.Report, names ...string) {
	for _, line := range withoutValue(r, names...) {
		cmd.say("no value of %s", line)
	}
}

// withoutValue returns the metrics without a value, one text for each reason: "svm_accuracy, svm_std: the data set has no labels".
func withoutValue(r *evaluation.Report, of ...string) (lines []string) {
	var reasons []string
	names := map[string][]string{}
	for _, v := range r.Values {
		if v.Missing == "" || applies(v.Name, r) || len(of) > 0 && !slices.Contains(of, v.Name[strings.LastIndex(v.Name, ".")+1:]) {
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

func applies(name string, r *evaluation.Report) bool {
	_, ok := r.Number(name)
	if r.Fitted != nil && !ok {
		_, ok = r.Fitted.Number(name)
	}
	return ok
}
