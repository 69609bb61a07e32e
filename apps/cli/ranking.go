package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/classical"
	"tessera/internal/lists"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// ranking is what is shown of measured numbers of components.
type ranking struct {
	classical.Ranking
	noun  string // "components" or "units"
	marks []rankMark
	parts *doc.Table // of the most stable number; nil for none
}

// rankMark marks the row with the best value of a measure.
type rankMark struct {
	name         string
	measure, row int
}

// ranked marks the numbers that the measures suggest.
func ranked(of *classical.Ranking, noun string) *ranking {
	r := &ranking{Ranking: *of, noun: noun}
	for i, m := range r.Measures {
		switch m.Choice {
		case classical.Simplest:
			r.simplest(i)
		case classical.Lowest:
			r.mark(m.Mark, i, r.best(i, 1))
		case classical.Highest:
			r.mark(m.Mark, i, r.best(i, -1))
		case classical.Bend:
			var x, y []float64
			for _, row := range r.Rows {
				x, y = append(x, float64(row.Components)), append(y, *row.Values[i])
			}
			r.mark(m.Mark, i, classical.Elbow(x, y))
		}
	}
	return r
}

// value returns a value of a row.
func (r *ranking) value(row classical.Ranked, measure int) metrics.Value {
	v := metrics.NotApplicable("")
	if of := row.Values[measure]; of != nil {
		v = metrics.Number(*of)
	}
	v.Name = r.Measures[measure].Name
	return v
}

// best returns the first row with the smallest sign*value of a measure, -1 if none has the measure.
func (r *ranking) best(measure int, sign float64) int {
	best := -1
	for i, row := range r.Rows {
		if v := row.Values[measure]; v != nil && (best < 0 || sign**v < sign**r.Rows[best].Values[measure]) {
			best = i
		}
	}
	return best
}

// mark marks a row; -1 marks none.
func (r *ranking) mark(name string, measure, row int) {
	if row >= 0 {
		r.marks = append(r.marks, rankMark{name, measure, row})
	}
}

// simplest marks the lowest value of a measure, and the fewest components whose value is at most one standard error above it.
//
// Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, the one-standard-error rule.
func (r *ranking) simplest(measure int) {
	lowest := r.best(measure, 1)
	if lowest < 0 {
		return
	}
	few, limit := lowest, *r.Rows[lowest].Values[measure]+r.Rows[lowest].Deviation
	for i, row := range r.Rows {
		if v := row.Values[measure]; v != nil && *v <= limit && row.Components < r.Rows[few].Components {
			few = i
		}
	}
	r.mark("least", measure, lowest)
	r.mark("fewest within one standard error", measure, few)
}

// named lists the parts of a consensus by the names of their largest columns, and shows those of the most stable number.
func (r *ranking) named(columns []string) *ranking {
	for _, row := range r.Rows {
		for j := range row.Parts {
			if n := row.Atoms.Pixels(); columns != nil {
				row.Parts[j].Columns = show.PartName(row.Atoms.Values[j*n:(j+1)*n], columns)
			}
		}
	}
	if len(r.marks) == 0 {
		return r
	}
	best := r.Rows[r.marks[0].row]
	r.parts = &doc.Table{Title: fmt.Sprintf("Parts of %d components", best.Components), Columns: []doc.Column{{Title: "part"}, {Title: "fits"}, {Title: "similarity"}}}
	if columns != nil {
		r.parts.Columns = append(r.parts.Columns, doc.Column{Title: "largest columns", Wrap: true})
	}
	for j, p := range best.Parts {
		r.parts.Row([]any{j, p.Seeds, p.Similarity, p.Columns}[:len(r.parts.Columns)]...)
	}
	return r
}

// marked returns the names of some marks.
func (r *ranking) marked(which func(rankMark) bool) (names []string) {
	for _, m := range r.marks {
		if which(m) {
			names = append(names, m.name)
		}
	}
	return names
}

// atEdges returns a warning for each end of the range whose number is marked as best: the best number may be outside.
func (r *ranking) atEdges() (list []string) {
	for _, edge := range r.edges() {
		names := strings.Join(r.marked(func(m rankMark) bool { return r.Rows[m.row].Components == edge.components }), ", ")
		list = append(list, fmt.Sprintf("%d, the best number (%s), is the %s of those compared, and a %s one may be better: give --ranks %s ones too",
			edge.components, names, edge.which, edge.beyond, edge.beyond))
	}
	return list
}

// rankEdge is a best number at an end of the range of those compared.
type rankEdge struct {
	components    int
	which, beyond string // "smallest" and "smaller", or "largest" and "larger"
}

// edges returns the marked ends of the range. 1 is no such end, since no number is smaller.
func (r *ranking) edges() (list []rankEdge) {
	if len(r.Rows) == 0 {
		return nil
	}
	compare := func(a, b classical.Ranked) int { return cmp.Compare(a.Components, b.Components) }
	least, most := slices.MinFunc(r.Rows, compare).Components, slices.MaxFunc(r.Rows, compare).Components
	marked := func(components int) bool {
		return least < most && slices.ContainsFunc(r.marks, func(m rankMark) bool { return r.Rows[m.row].Components == components }) // one number is no range
	}
	if least > 1 && marked(least) {
		list = append(list, rankEdge{least, "smallest", "smaller"})
	}
	if marked(most) {
		list = append(list, rankEdge{most, "largest", "larger"})
	}
	return list
}

// document returns a row for each number, with the marks in the last column. In JSON the rows have the marks, and the end of the range at
// which a best number is.
func (r *ranking) document() *doc.Document {
	names := r.names()
	columns := append(doc.Columns(r.noun, names[0], "standard error"), doc.Columns(names[1:]...)...)
	t := &doc.Table{Columns: append(columns, doc.Column{Wrap: true})}
	list := []map[string]any{}
	for i, row := range r.Rows {
		cells, one := []any{row.Components}, map[string]any{"components": row.Components, "standard_error": row.Deviation}
		for k, m := range r.Measures {
			v := r.value(row, k)
			cells, one[m.Key] = append(cells, show.Value(metrics.Values{v}, v.Name)), row.Values[k]
			if k == 0 {
				cells = append(cells, row.Deviation)
			}
		}
		if row.Parts != nil {
			one["left_out"], one["parts"] = row.LeftOut, row.Parts
		}
		marks := r.marked(func(m rankMark) bool { return m.row == i })
		t.Row(append(cells, strings.Join(marks, ", "))...)
		for _, edge := range r.edges() {
			if edge.components == row.Components && marks != nil {
				one["edge"] = edge.which
			}
		}
		if marks != nil {
			one["marks"] = marks
		}
		list = append(list, one)
	}
	d := &doc.Document{Data: list}
	d.Add(t)
	if r.parts != nil {
		d.Add(r.parts)
	}
	return d
}

func (r *ranking) names() []string {
	return lists.Map(r.Measures, func(m classical.RankMeasure) string { return m.Name })
}

// draw writes a figure: each metric over the number of components, the first with bars of one standard error. Each mark has
// points of another colour.
func (r *ranking) draw(path string) error {
	names := r.names()
	lines := []figures.SweptLine{{Name: "measured; bars: one standard error of the " + names[0]}}
	for _, row := range r.Rows {
		point := figures.SweptPoint{X: float64(row.Components), Deviation: metrics.Values{{Name: names[0], Number: row.Deviation}}}
		for k := range names {
			point.Mean = append(point.Mean, r.value(row, k))
		}
		lines[0].Points = append(lines[0].Points, point)
	}
	for i, m := range r.marks {
		same := func(o rankMark) bool { return o.measure == m.measure && o.row == m.row }
		if slices.ContainsFunc(r.marks[:i], same) {
			continue
		}
		row := r.Rows[m.row]
		lines = append(lines, figures.SweptLine{Name: fmt.Sprintf("%s: %d", strings.Join(r.marked(same), ", "), row.Components), Apart: true,
			Points: []figures.SweptPoint{{X: float64(row.Components), Mean: metrics.Values{r.value(row, m.measure)}}}})
	}
	f, err := figures.Swept(r.noun, names, lines)
	if err != nil {
		return usagef("--figure: %v", err)
	}
	if err := f.Save(path); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}
