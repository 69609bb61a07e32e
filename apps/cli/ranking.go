package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/classical"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// ranking contains measurements for numbers of components. The first metric has a standard error.
type ranking struct {
	noun    string   // "components" or "units"
	metrics []string // names of the values of a row
	rows    []rankRow
	marks   []rankMark
	parts   *doc.Table // of the most stable number; nil for none
}

// rankRow is what was measured for one number of components.
type rankRow struct {
	components int
	deviation  float64
	values     []metrics.Value
	object     any // is printed as JSON
}

// rankMark marks the row with the best value of a metric.
type rankMark struct{ name, metric, row int }

// markNames lists the names of marks.
var markNames = []string{"least", "fewest within one standard error", "highest likelihood", "least bic", "highest silhouette", "elbow", "most stable"}

const (
	least = iota
	fewest
	likeliest
	leastBIC
	apart
	elbow
	stable
)

// add adds a row. A nil value is not applicable.
func (r *ranking) add(object any, components int, deviation float64, values ...*float64) {
	row := rankRow{components: components, deviation: deviation, object: object}
	for i, v := range values {
		one := metrics.NotApplicable("")
		if v != nil {
			one = metrics.Number(*v)
		}
		one.Name = r.metrics[i]
		row.values = append(row.values, one)
	}
	r.rows = append(r.rows, row)
}

// best returns the first row with the smallest sign*value of a metric, -1 if none has the metric.
func (r *ranking) best(metric int, sign float64) int {
	best := -1
	for i, row := range r.rows {
		if v := row.values[metric]; v.Missing == "" && (best < 0 || sign*v.Number < sign*r.rows[best].values[metric].Number) {
			best = i
		}
	}
	return best
}

// mark marks a row; -1 marks none.
func (r *ranking) mark(name, metric, row int) {
	if row >= 0 {
		r.marks = append(r.marks, rankMark{name, metric, row})
	}
}

// simplest marks the lowest value of the first metric, and the fewest components whose value is at most one standard error above
// it.
//
// Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, the one-standard-error rule.
func (r *ranking) simplest() *ranking {
	lowest := r.best(0, 1)
	if lowest < 0 {
		return r
	}
	few, limit := lowest, r.rows[lowest].values[0].Number+r.rows[lowest].deviation
	for i, row := range r.rows {
		if row.values[0].Number <= limit && row.components < r.rows[few].components {
			few = i
		}
	}
	r.mark(least, 0, lowest)
	r.mark(fewest, 0, few)
	return r
}

func rankedErrors(list []classical.RankError) *ranking {
	r := &ranking{noun: "components", metrics: []string{"held-out mse"}}
	for _, e := range list {
		r.add(e, e.Components, e.Deviation, &e.MSE)
	}
	return r.simplest()
}

func rankedEntries(list []classical.RankEntries) *ranking {
	r := &ranking{noun: "components", metrics: []string{"held-out rmse", "rmse of fitted entries"}}
	for _, e := range list {
		r.add(e, e.Components, e.Deviation, &e.HeldOut, &e.Fitted)
	}
	return r.simplest()
}

func rankedUnits(list []rankUnits) *ranking {
	r := &ranking{noun: "units", metrics: []string{"held-out mse", "mse of the other entries", "units in use"}}
	for _, u := range list {
		r.add(u, u.Components, u.Deviation, &u.HeldOut, &u.Fitted, &u.Used)
	}
	return r.simplest()
}

func rankedDensities(list []classical.RankDensity) *ranking {
	r := &ranking{noun: "components", metrics: []string{"held-out log-likelihood", "bic", "silhouette"}}
	if !slices.ContainsFunc(list, func(d classical.RankDensity) bool { return d.Silhouette != nil }) {
		r.metrics = r.metrics[:2]
	}
	for _, d := range list {
		r.add(d, d.Components, d.Deviation, []*float64{&d.LogLikelihood, &d.BIC, d.Silhouette}[:len(r.metrics)]...)
	}
	r.mark(likeliest, 0, r.best(0, -1))
	r.mark(leastBIC, 1, r.best(1, 1))
	if len(r.metrics) > 2 {
		r.mark(apart, 2, r.best(2, -1))
	}
	return r
}

// rankedClusters sorts the numbers, because the elbow is a property of the curve.
func rankedClusters(list []classical.RankClusters) *ranking {
	r := &ranking{noun: "components", metrics: []string{"held-out mse", "mse of all samples", "silhouette"}}
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b classical.RankClusters) int { return a.Components - b.Components })
	var x, y []float64
	for _, c := range sorted {
		r.add(c, c.Components, c.Deviation, &c.HeldOut, &c.MSE, c.Silhouette)
		x, y = append(x, float64(c.Components)), append(y, c.MSE)
	}
	r.mark(elbow, 1, classical.Elbow(x, y))
	r.mark(apart, 2, r.best(2, -1))
	return r
}

// rankedConsensus marks the most stable number and lists its parts by the names of their largest columns.
func rankedConsensus(list []classical.RankConsensus, names []string) *ranking {
	r := &ranking{noun: "components", metrics: []string{"mse of the fits", "mse of the consensus", "stability"}}
	for _, c := range list {
		for j := range c.Parts {
			if names != nil {
				c.Parts[j].Columns = show.PartName(c.Atoms.Values[j*c.Atoms.Pixels():(j+1)*c.Atoms.Pixels()], names)
			}
		}
		r.add(c, c.Components, c.Deviation, &c.MSE, &c.Consensus, c.Stability)
	}
	best := r.best(2, -1)
	if r.mark(stable, 2, best); best < 0 {
		return r
	}
	c := list[best]
	r.parts = &doc.Table{Title: fmt.Sprintf("Parts of %d components", c.Components), Columns: []doc.Column{{Title: "part"}, {Title: "fits"}, {Title: "similarity"}}}
	if names != nil {
		r.parts.Columns = append(r.parts.Columns, doc.Column{Title: "largest columns", Wrap: true})
	}
	for j, p := range c.Parts {
		r.parts.Row([]any{j, p.Seeds, p.Similarity, p.Columns}[:len(r.parts.Columns)]...)
	}
	return r
}

// named returns the names of some marks as a list.
func (r *ranking) named(which func(rankMark) bool) string {
	var names []string
	for _, m := range r.marks {
		if which(m) {
			names = append(names, markNames[m.name])
		}
	}
	return strings.Join(names, ", ")
}

// atEdges returns a warning for each end of the range whose number is marked as best: the best number may be outside.
func (r *ranking) atEdges() (list []string) {
	for _, edge := range r.edges() {
		names := r.named(func(m rankMark) bool { return r.rows[m.row].components == edge.components })
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
	if len(r.rows) == 0 {
		return nil
	}
	compare := func(a, b rankRow) int { return cmp.Compare(a.components, b.components) }
	least, most := slices.MinFunc(r.rows, compare).components, slices.MaxFunc(r.rows, compare).components
	marked := func(components int) bool {
		return least < most && slices.ContainsFunc(r.marks, func(m rankMark) bool { return r.rows[m.row].components == components }) // one number is no range
	}
	if least > 1 && marked(least) {
		list = append(list, rankEdge{least, "smallest", "smaller"})
	}
	if marked(most) {
		list = append(list, rankEdge{most, "largest", "larger"})
	}
	return list
}

// document returns a row for each number, with the marks in the last column. In JSON the rows are those of package classical with the
// marks, and the end of the range at which a best number is.
func (r *ranking) document() (*doc.Document, error) {
	columns := append(doc.Columns(r.noun, r.metrics[0], "standard error"), doc.Columns(r.metrics[1:]...)...)
	t := &doc.Table{Columns: append(columns, doc.Column{Wrap: true})}
	list := []map[string]any{}
	for i, row := range r.rows {
		cells := []any{row.components}
		for k, v := range row.values {
			cells = append(cells, show.Value(metrics.Values{v}, v.Name))
			if k == 0 {
				cells = append(cells, row.deviation)
			}
		}
		t.Row(append(cells, r.named(func(m rankMark) bool { return m.row == i }))...)
		object, err := json.Marshal(row.object)
		if err != nil {
			return nil, err
		}
		one := map[string]any{}
		if err := json.Unmarshal(object, &one); err != nil {
			return nil, err
		}
		var marks []string
		for _, m := range r.marks {
			if m.row == i {
				marks = append(marks, markNames[m.name])
			}
		}
		for _, edge := range r.edges() {
			if edge.components == row.components && marks != nil {
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
	return d, nil
}

// draw writes a figure: each metric over the number of components, the first with bars of one standard error. Each mark has
// points of another colour.
func (r *ranking) draw(path string) error {
	lines := []figures.SweptLine{{Name: "measured; bars: one standard error of the " + r.metrics[0]}}
	for _, row := range r.rows {
		lines[0].Points = append(lines[0].Points, figures.SweptPoint{X: float64(row.components), Mean: row.values,
			Deviation: metrics.Values{{Name: r.metrics[0], Number: row.deviation}}})
	}
	for i, m := range r.marks {
		same := func(o rankMark) bool { return o.metric == m.metric && o.row == m.row }
		if slices.ContainsFunc(r.marks[:i], same) {
			continue
		}
		names := r.named(same)
		row := r.rows[m.row]
		lines = append(lines, figures.SweptLine{Name: fmt.Sprintf("%s: %d", names, row.components), Apart: true,
			Points: []figures.SweptPoint{{X: float64(row.components), Mean: row.values[m.metric : m.metric+1]}}})
	}
	f, err := figures.Swept(r.noun, r.metrics, lines)
	if err != nil {
		return usagef("--figure: %v", err)
	}
	if err := f.Save(path); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}
