package page

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/train/evaluation"
)

// Units returns the units of a run in the order of the mean size of their use, the first count of them. split is the measured one, "" for the
// default of a page.
func Units(ctx context.Context, run *tessera.Run, split data.Split, count int) (*doc.Document, error) {
	v, facts, err := unitView(ctx, run, split)
	if err != nil {
		return nil, err
	}
	names := show.OutputNames(ctx, run)
	unused := 0
	for _, one := range v.usage.each {
		if one.active == 0 {
			unused++
		}
	}
	facts.Add("units", "units", v.usage.k)
	facts.Add("unused", "used by no "+v.noun(), unused)
	d := &doc.Document{}
	d.Add(facts, v.list(names, count), doc.Remark("%s", v.useText()))
	return d, nil
}

// list lists the units with the largest mean use, at most count, with the largest values of their atoms and the samples that use them most,
// where these have names.
func (v *view) list(names []string, count int) *doc.Table {
	name, title := show.PartNames(v.run, names)
	signed := slices.ContainsFunc(v.usage.each, func(one unitUse) bool { return one.mean < 0 || one.max < 0 })
	t := &doc.Table{Key: "atoms", Columns: []doc.Column{{Key: "unit", Title: "unit"}, {Key: "active", Title: "used by", About: "share of the samples that use it"},
		{Key: "mean", Title: "mean use"}}}
	most := "mean use"
	if signed {
		most = "mean |use|"
		t.Columns = append(t.Columns, doc.Column{Key: "size", Title: most})
	}
	t.Columns = append(t.Columns, doc.Column{Key: "max", Title: "largest use"})
	if v.direct && names != nil {
		t.Columns = append(t.Columns, doc.Column{Key: "columns", Title: title, Wrap: true})
	}
	if v.names != nil {
		t.Columns = append(t.Columns, doc.Column{Key: "samples", Title: v.noun() + "s with most of it", Wrap: true})
	}
	order := largestFirst(v.usage.k, func(j int) float64 { return v.usage.each[j].size })
	for _, j := range order[:min(count, len(order))] {
		one := v.usage.each[j]
		row := []any{doc.Index(j), one.active, one.mean}
		if signed {
			row = append(row, one.size)
		}
		row = append(row, one.max)
		if v.direct && names != nil {
			row = append(row, name(atom(v.atoms, j), names))
		}
		if v.names != nil {
			row = append(row, strings.Join(lists.Map(one.top[:min(topNames, len(one.top))], func(i int) string { return v.names[v.number(i)] }), "; "))
		}
		t.Row(row...)
	}
	if len(order) > count {
		t.Notes = []string{fmt.Sprintf("%s with the largest %s, of %s", numeral.Of(count, "unit"), most, numeral.Count(len(order)))}
	}
	return t
}

// topNames is the number of samples that a list names for each unit.
const topNames = 3

// Unit describes unit j of a run: the samples that use it most, the units that are used with it, its use by class, and the values
// that it changes, at most count of each.
func Unit(ctx context.Context, run *tessera.Run, split data.Split, j, count int) (*doc.Document, error) {
	v, facts, err := unitView(ctx, run, split)
	if err != nil {
		return nil, err
	}
	one := v.usage.each[j]
	facts.Add("unit", "unit", doc.Index(j))
	facts.Add("active", "share that use it", one.active)
	facts.Add("mean", "mean use", one.mean)
	facts.Add("max", "largest use", one.max)
	d := &doc.Document{}
	d.Add(facts)
	if one.active == 0 {
		d.Add(doc.Warning("no measured %s uses it", v.noun()))
	}
	for _, t := range []*doc.Table{v.users(j, count), v.company(j, count)} {
		if len(t.Rows) > 0 {
			d.Add(t)
		}
	}
	if len(v.usage.byOne) > 0 {
		t := &doc.Table{Key: "classes", Title: "Use by class", Columns: doc.Columns("class", "mean use")}
		t.Columns[1].Key = "mean"
		for _, c := range largestFirst(len(v.classes), func(c int) float64 { return v.usage.byOne[c][j] }) {
			t.Row(v.classes[c], v.usage.byOne[c][j])
		}
		d.Add(t)
	}
	changed, err := v.changed(ctx, j, count)
	if err != nil {
		return nil, err
	}
	if changed != nil {
		d.Add(changed)
	}
	d.Add(doc.Remark("%s", v.useText()))
	return d, nil
}

// unitView opens the view of a run, and says on what it is measured.
func unitView(ctx context.Context, run *tessera.Run, split data.Split) (*view, *doc.Facts, error) {
	if split == "" {
		split = evaluation.PlanOf(run.Model).First
	}
	sample, err := run.Sample(ctx, split)
	if err != nil {
		return nil, nil, err
	}
	v, err := newView(run, sample)
	if err != nil {
		return nil, nil, err
	}
	f := &doc.Facts{}
	f.Add("split", "split", string(split))
	f.Add("samples", v.noun()+"s", v.n)
	return v, f, nil
}

// useText says what the use of a unit is.
func (v *view) useText() string {
	use := "activation"
	if v.direct {
		use = "activation times length of its atom"
	}
	return fmt.Sprintf("Use is %s. A unit counts as used where that is above %g %% of the largest use in the %s.", use, 100*activeShare, v.noun())
}

// largestFirst returns the indices below n in descending order of size, equal ones in their order.
func largestFirst(n int, size func(i int) float64) []int {
	order := lists.Range(0, n)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	return order
}

// users lists the samples that use unit j most.
func (v *view) users(j, count int) *doc.Table {
	t := &doc.Table{Key: "top", Title: fmt.Sprintf("The %ss that use it most", v.noun()), Columns: []doc.Column{{Key: "number", Title: "number"}, {Key: "use", Title: "use"}}}
	if v.names != nil {
		t.Columns = append(t.Columns, doc.Column{Key: "name", Title: "name"})
	}
	if v.classes != nil {
		t.Columns = append(t.Columns, doc.Column{Key: "class", Title: "class"})
	}
	for _, i := range largestFirst(v.n, func(i int) float64 { return math.Abs(v.usage.of(i, j)) })[:min(count, v.n)] {
		if v.usage.of(i, j) == 0 {
			break
		}
		row := []any{doc.Index(v.number(i)), v.usage.of(i, j)}
		if v.names != nil {
			row = append(row, v.names[v.number(i)])
		}
		if v.classes != nil {
			class := ""
			if c := v.labels[i]; c >= 0 && c < len(v.classes) {
				class = v.classes[c]
			}
			row = append(row, class)
		}
		t.Row(row...)
	}
	return t
}

// company lists the units whose use is most correlated with that of unit j over all samples, positive correlations only.
func (v *view) company(j, count int) *doc.Table {
	t := &doc.Table{Key: "near", Title: "Units that are used with it", Columns: doc.Columns("unit", "correlation")}
	if v.direct {
		t.Columns = append(t.Columns, doc.Column{Key: "cosine", Title: "cosine of the atoms"})
	}
	correlations := v.usage.correlationsWith(j)
	for _, other := range largestFirst(v.usage.k, func(i int) float64 { return correlations[i] }) {
		if len(t.Rows) == count || correlations[other] <= 0 {
			break
		}
		row := []any{doc.Index(other), correlations[other]}
		if v.direct {
			row = append(row, cosine(v.atoms, j, other))
		}
		t.Row(row...)
	}
	return t
}

// correlationsWith returns the correlations (Pearson) of the use of unit j with that of every other unit, 0 for j itself and for a
// unit whose use does not vary.
func (u *usage) correlationsWith(j int) []float64 {
	means, squares, products := make([]float64, u.k), make([]float64, u.k), make([]float64, u.k)
	for other := range u.k {
		means[other] = u.each[other].mean
	}
	for i := range u.n {
		own := u.of(i, j) - means[j]
		for other := range u.k {
			d := u.of(i, other) - means[other]
			squares[other] += d * d
			products[other] += own * d
		}
	}
	for other := range u.k {
		if scale := math.Sqrt(squares[j] * squares[other]); scale > 0 && other != j {
			products[other] /= scale
		} else {
			products[other] = 0
		}
	}
	return products
}

// changed lists the values that unit j changes most: those of its atom, or those of the decoder's output at its largest
// activation. It is nil without a decoder of codes alone, and for images, whose values have no names.
func (v *view) changed(ctx context.Context, j, count int) (*doc.Table, error) {
	names := show.OutputNames(ctx, v.run)
	if names == nil {
		return nil, nil
	}
	title, values := "Largest values of its atom", []float32(nil)
	if v.direct {
		values = atom(v.atoms, j)
	} else if v.run.Decodes() == nil {
		var err error
		if values, err = v.effects(j, 1); err != nil {
			return nil, err
		}
		title = "What it changes at its largest activation"
	} else {
		return nil, nil
	}
	t := &doc.Table{Key: "values", Title: title, Columns: doc.Columns("column", "value")}
	for _, i := range largestFirst(len(values), func(i int) float64 { return math.Abs(float64(values[i])) })[:min(count, len(values))] {
		if values[i] != 0 {
			t.Row(names[i], float64(values[i]))
		}
	}
	return t, nil
}
