package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/internal/lists"
	"tessera/internal/sweep"
)

// survey returns the table of a page without published rows: a row for each setting, with mean and range over its seeds, and a
// row for each model without a trial. A metric that does not apply to a model is "–". If the settings have several data sets, a
// column names them.
func (r Reproduction) survey(ctx context.Context, s *sweep.Sweep, results *sweep.Results, all []shown, o tessera.Options) (*doc.Table, error) {
	about := []string{"model", "images", "epochs", "seeds"}
	several := slices.ContainsFunc(all, func(one shown) bool { return one.Dataset != all[0].Dataset })
	if several {
		about = slices.Insert(about, 1, "data set")
	}
	columns := r.Columns
	var drawn map[string][][]float64 // by trial
	if r.Drawing != nil {
		var err error
		if drawn, err = r.Drawing.measure(ctx, s, results, o); err != nil {
			return nil, err
		}
		columns = slices.Concat(columns, drawnColumns)
	}
	t := &doc.Table{Columns: doc.Columns(slices.Concat(about, columns, []string{"seconds"})...)}
	for i, setting := range results.Settings {
		numbers := make([][]float64, len(columns)+1) // of every column, over the seeds
		var images, passes []float64
		measured := map[string]bool{}
		for _, row := range results.Trials {
			if row.Metrics == nil || !slices.Contains(setting.Trials, row.Trial) {
				continue
			}
			measured[row.Trial] = true
			for j, name := range r.Columns {
				if v, ok := row.Metrics.Number(name); ok {
					numbers[j] = append(numbers[j], v)
				}
			}
			for j, some := range drawn[row.Trial] {
				numbers[len(r.Columns)+j] = append(numbers[len(r.Columns)+j], some...)
			}
		}
		for _, trial := range s.Trials {
			if !slices.Contains(setting.Trials, trial.ID) || !measured[trial.ID] {
				continue
			}
			epochs, seconds, err := trial.Spent()
			if err != nil {
				return t, err
			}
			fitted, err := trial.Fitted()
			if err != nil {
				return t, err
			}
			images = append(images, float64(fitted))
			if epochs > 0 {
				passes = append(passes, float64(epochs))
				numbers[len(columns)] = append(numbers[len(columns)], seconds)
			}
		}
		cells := []any{strings.TrimSpace(all[i].Model + " " + all[i].Values), ranged(images), ranged(passes), fmt.Sprintf("%d of %d", len(setting.Seeds), len(setting.Trials))}
		if several {
			cells = slices.Insert(cells, 1, any(all[i].Dataset))
		}
		for _, over := range numbers {
			cells = append(cells, ranged(over))
		}
		t.Row(cells...)
	}
	for _, u := range s.Unfit {
		row := slices.Repeat([]any{"–"}, len(t.Columns))
		row[0], row[len(about)-1] = strings.TrimSpace(u.Model+" "+u.Values), "0 of 0"
		t.Row(row...)
	}
	return t, nil
}

// ranged formats the mean of some numbers to three digits, followed by their range if they differ: "0.012 (0.011 to 0.013)".
func ranged(numbers []float64) string {
	if len(numbers) == 0 {
		return "–"
	}
	short := func(v float64) string {
		if math.Abs(v) >= 100 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	mean, low, high := short(lists.Sum(numbers)/float64(len(numbers))), short(slices.Min(numbers)), short(slices.Max(numbers))
	if low == high {
		return mean
	}
	return fmt.Sprintf("%s (%s to %s)", mean, low, high)
}

// surveyed writes the table of a page without published rows.
func (p *Page) surveyed(d *doc.Document) {
	d.Add(p.Survey, doc.Remark("%s", "`images` is the number of fitted images, `epochs` that of epochs or iterations. Means over the finished seeds, with the range in parentheses if the seeds differ; – where a metric does not apply. `seconds` is the wall time "+
		"of the training on one thread, without the measurement: it depends on the machine and on what else runs there."))
	if drawing := p.Drawing; drawing != nil {
		d.Add(doc.Remark("`precision` and `recall` compare %d drawn images with as many test images, by the codes of `%s`, for %d seeds of the images of each run "+
			"([Kynkäänniemi et al. 2019](https://arxiv.org/abs/1904.06991)). For the last two the codes are drawn from a mixture of normal distributions.",
			drawing.Count, drawing.Features, len(drawing.Seeds)))
	}
	if len(p.With) > 0 {
		d.Add(doc.Remark("The metrics have the settings %s.", code("--with "+strings.Join(p.With, " --with "))))
	}
}
