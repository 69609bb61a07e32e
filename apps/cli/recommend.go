package cli

import (
	"cmp"
	"fmt"
	"slices"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/numeral"
)

func init() {
	Commands.Register("recommend", "List the columns of a matrix with the largest predictions for a row", func() Command {
		return &recommendCommand{runFlags: forRuns(), Count: 10}
	})
}

type recommendCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Row   string `flag:"row" required:"true" doc:"name of the row, such as a user"`
	Count int    `flag:"count,n" want:"> 0" doc:"number of columns"`
	Given string `flag:"given" is:"file" doc:"file with entries of new rows"`
	Known bool   `flag:"known" doc:"also list columns of which the row has an entry"`
}

func (f *recommendCommand) Help() Help {
	return Help{
		Long: "List the columns with the largest predictions of a matrix_factorisation for a row, such as films for a user, by name. Columns of which the row has an " +
			"entry are left out: those in the file of the training that the model saw, or those in --given, which computes the code of the row without fitting the model again. " +
			"`tessera eval` measures recommendations by entries that were hidden (`leave` of the data set): ranking_ndcg and others.",
		Examples: []string{"tessera recommend runs/ratings --row u3", "tessera recommend runs/ratings --row u77 --given new-users.csv -n 5 --json"},
	}
}

func (f *recommendCommand) Do(cmd *Call) error {
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	if !r.PredictsEntries() {
		return usagef("recommend: %s: %w", r.Path, tessera.ErrNoMatrix)
	}
	further, err := entriesGiven(cmd, r, f.Given)
	if err != nil {
		return err
	}
	known, entries, err := f.known(cmd, r, further)
	if err != nil {
		return err
	}
	columns := r.ColumnNames()
	values, err := r.PredictEntries(&data.Pairs{Rows: slices.Repeat([]string{f.Row}, len(columns)), Columns: columns}, further)
	if err != nil {
		return err
	}
	var best []int
	for j := range columns {
		if f.Known || !known[columns[j]] {
			best = append(best, j)
		}
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	t := &doc.Table{Key: "columns", Columns: []doc.Column{{Key: "column", Title: "column"}, {Key: "prediction", Title: "prediction"}}}
	for _, j := range best[:min(f.Count, len(best))] {
		t.Row(columns[j], values[j])
	}
	facts := &doc.Facts{Facts: []doc.Fact{{Key: "row", Title: "row", Value: f.Row}}}
	if known != nil {
		facts.Facts = append(facts.Facts, doc.Fact{Key: "known", Title: "known entries", Value: len(known)})
	}
	if entries != nil && len(best) > 0 {
		if low, high := entries.Range(); values[best[0]] > float64(high) {
			facts.Facts = append(facts.Facts, doc.Fact{Key: "range", Title: "training values",
				Value: fmt.Sprintf("%s to %s; larger predictions order the columns", numeral.Float(float64(low)), numeral.Float(float64(high)))})
		}
	}
	d := &doc.Document{}
	d.Add(facts)
	d.Add(t)
	return cmd.Show(d, f.JSON)
}

// known returns the columns of which the row has an entry: those in the given file, or those that the model saw in its training. With
// --known it is nil if the file of the training is missing. entries are those that the model saw; nil with --given.
func (f *recommendCommand) known(cmd *Call, r *tessera.Run, further *data.Images) (known map[string]bool, entries *data.Images, err error) {
	known = map[string]bool{}
	if further != nil {
		names := further.ValueNames()
		if i := slices.Index(further.RowNames(), f.Row); i >= 0 {
			columns, _ := further.Entries(i)
			for _, j := range columns {
				if names == nil {
					known[fmt.Sprint(j)] = true
				} else {
					known[names[j]] = true
				}
			}
			return known, nil, nil
		}
	}
	rows := r.RowNames()
	i := slices.Index(rows, f.Row)
	if i < 0 {
		return nil, nil, usagef("--row: the model was not fitted to a row %q: %s; or give its entries: --given", f.Row, table.Suggest(f.Row, rows))
	}
	sample, err := r.Sample(cmd.Context(), data.TrainSplit)
	if err != nil && f.Known && cmd.Context().Err() == nil { // predictions do not need the file of the training
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	columns := r.ColumnNames()
	for j, seen := range sample.Images.Subset([]int{i}).All()[data.ObservedColumn] {
		if seen != 0 {
			known[columns[j]] = true
		}
	}
	return known, sample.Images, nil
}
